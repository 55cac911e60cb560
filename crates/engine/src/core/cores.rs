//! The cores of a process: a thread for each.

use std::thread::JoinHandle;
use std::time::Duration;

use crate::clock;
use crate::core::Core;
use crate::core::handle::Handle;
use crate::driver::choice::Io;
use crate::error::{Error, Kind, Op};
use crate::socket::unsent::Extra;
use crate::system::cpu;

/// The driver and the CPUs of [`start`].
#[derive(Clone, Debug)]
pub struct Setup {
    /// Never [`Io::Auto`] when it was chosen by [`crate::choose`].
    pub io: Io,
    /// The CPU of each core; `None` leaves the core unpinned.
    pub cpus: Vec<Option<usize>>,
}

/// Running cores.
pub struct Cores<T> {
    handles: Vec<Handle>,
    /// A thread returns `None` only if its core could not be made, and then there is no `Cores`.
    threads: Vec<JoinHandle<Option<T>>>,
}

/// Starts one thread per entry of `setup.cpus`, makes a core on each and calls `main` with it. [`Cores::join`] returns
/// the results of `main`, which spawns its tasks and calls [`Core::run`].
///
/// # Errors
/// When a core cannot be made; cores that have started are stopped.
pub fn start<T, F>(setup: &Setup, main: F) -> Result<Cores<T>, Error>
where
    T: Send + 'static,
    F: FnOnce(Core) -> T + Send + Clone + 'static,
{
    let (report, reports) = std::sync::mpsc::channel();
    let mut threads = Vec::new();
    let cores = setup.cpus.len();
    for (id, &cpu) in setup.cpus.iter().enumerate() {
        let (main, own_report, io) = (main.clone(), report.clone(), setup.io);
        let run = move || {
            let core = pinned_core(id, io, cpu);
            if let Ok(core) = &core {
                core.inner().state.borrow_mut().sockets.extra = Extra::of_core(cores);
            }
            // The receiver lives until all cores have reported.
            let made = core.as_ref().map(Core::handle).map_err(|&error| error);
            let _ = own_report.send((id, made));
            drop(own_report);
            // If this core failed, `start` returns the error and joins no thread.
            core.ok().map(main)
        };
        let spawned = std::thread::Builder::new()
            .name(format!("core-{id}"))
            .spawn(run);
        match spawned {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                let errno =
                    rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::AGAIN);
                // Reported like a core that cannot be made; the cores before it are stopped below.
                let _ = report.send((id, Err(Error::os(Op::Start, errno))));
                break;
            }
        }
    }
    drop(report);
    let mut outcomes: Vec<(usize, Result<Handle, Error>)> = reports.iter().collect();
    outcomes.sort_unstable_by_key(|&(id, _)| id);
    let handles: Vec<Handle> = outcomes
        .iter()
        .filter_map(|(_, outcome)| outcome.clone().ok())
        .collect();
    if let Some(error) = outcomes
        .iter()
        .find_map(|(_, outcome)| outcome.as_ref().err())
    {
        handles
            .iter()
            .for_each(|handle| handle.stop(Duration::ZERO));
        return Err(*error);
    }
    Ok(Cores { handles, threads })
}

fn pinned_core(id: usize, io: Io, cpu: Option<usize>) -> Result<Core, Error> {
    if let Some(cpu) = cpu {
        cpu::pin(cpu).map_err(|errno| Error::new(Op::Start, Kind::Os(errno)))?;
    }
    clock::disable_timer_slack();
    Core::new(id, io)
}

impl<T> Cores<T> {
    /// Asks all cores to stop and gives their tasks `drain` to finish.
    pub fn stop(&self, drain: Duration) {
        self.handles.iter().for_each(|handle| handle.stop(drain));
    }

    /// The handles of the cores, in order.
    pub fn handles(&self) -> Vec<Handle> {
        self.handles.clone()
    }

    /// Whether all cores have ended.
    pub fn is_finished(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Waits for all cores and returns the results of their `main`, in the order of the cores.
    ///
    /// # Panics
    /// When a core panicked.
    pub fn join(self) -> Vec<T> {
        self.threads
            .into_iter()
            .map(|thread| match thread.join() {
                Ok(value) => value.expect("every core was made, or `start` had failed"),
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .collect()
    }
}
