//! The thread of an admin interface.

use std::io;
use std::rc::Rc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use onrush_engine::{Address, Core, Handle, Io, Listener};

use crate::desk::Desk;
use crate::desk::setup::Setup;
use crate::exchange;

/// An admin interface; it ends when this is dropped.
pub struct Admin {
    address: Address,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Admin {
    /// Listens on a thread of its own.
    ///
    /// # Errors
    /// When there is no thread, or the kernel refuses what a core needs.
    pub fn start(setup: Setup) -> io::Result<Admin> {
        let address = setup.claim.address().clone();
        let (report, reports) = std::sync::mpsc::channel();
        let run = move || {
            // Few clients: what costs the least memory.
            let listening = Core::new(0, Io::Epoll)
                .and_then(|core| Ok((Listener::new(&core, &setup.claim)?, core)));
            match listening {
                Ok((listener, core)) => {
                    // Whoever started it waits for this.
                    let _ = report.send(Ok(core.handle()));
                    let desk = Rc::new(Desk::new(core.clone(), setup));
                    core.spawn(exchange::accept_all(listener, desk));
                    core.run();
                }
                Err(error) => {
                    let _ = report.send(Err(error));
                }
            }
        };
        let thread = thread::Builder::new().name("admin".into()).spawn(run)?;
        let handle = reports.recv().map_err(io::Error::other)?;
        Ok(Admin {
            address,
            handle: handle.map_err(|error| io::Error::other(error.to_string()))?,
            thread: Some(thread),
        })
    }

    /// Where it is.
    pub fn address(&self) -> &Address {
        &self.address
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.handle.stop(LAST_WORDS);
        // Its panic has been printed, and has ended the process.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// How long a response that has begun may take when the process ends.
const LAST_WORDS: Duration = Duration::from_millis(200);
