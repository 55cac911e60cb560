//! The thread of an admin interface.

use std::io;
use std::rc::Rc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use onrush_engine::{Address, Core, Handle, Io, Listener};

use crate::context::Context;
use crate::context::setup::Setup;
use crate::exchange;

/// A running admin interface; it stops when this is dropped.
pub struct Admin {
    address: Address,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Admin {
    /// Starts the interface on a thread of its own.
    ///
    /// # Errors
    /// If the thread cannot be started, or the kernel refuses a resource of the core.
    pub fn start(setup: Setup) -> io::Result<Admin> {
        let address = setup.claim.address().clone();
        let (report, reports) = std::sync::mpsc::channel();
        let run = move || {
            // Few clients: epoll uses the least memory.
            let listening = Core::new(0, Io::Epoll)
                .and_then(|core| Ok((Listener::new(&core, &setup.claim)?, core)));
            match listening {
                Ok((listener, core)) => {
                    // The caller waits for this message.
                    let _ = report.send(Ok(core.handle()));
                    let desk = Rc::new(Context::new(core.clone(), setup));
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

    /// Address of the interface.
    pub fn address(&self) -> &Address {
        &self.address
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.handle.stop(STOP_TIMEOUT);
        // The result does not matter: a panic of the thread has ended the process.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Time limit for responses in progress when the process ends.
const STOP_TIMEOUT: Duration = Duration::from_millis(200);
