//! What signals mean to a server that runs: the first SIGINT, SIGTERM or SIGQUIT ends it in good order, the second one at
//! once; those that other servers give a meaning of their own end nothing here.

use std::io;
use std::time::Duration;

use onrush_engine::Handle;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator;
use signal_hook::low_level::signal_name;

/// Those that end it.
const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGQUIT];

/// Those that scripts send for a reload, new log files or an upgrade (nginx's meanings). Their default is to end the
/// process (signal(7)), with every request in flight.
const UNKNOWN: [i32; 3] = [SIGHUP, SIGUSR1, SIGUSR2];

/// Takes the signals of the process from when it is made.
pub(super) struct Signals {
    arrived: iterator::Signals,
}

impl Signals {
    /// # Errors
    /// When the system does not let the process handle them.
    pub(super) fn new() -> io::Result<Signals> {
        let arrived = iterator::Signals::new([ENDING, UNKNOWN].concat())?;
        Ok(Signals { arrived })
    }

    /// Waits for one that ends the server; its name.
    pub(super) fn wait_for_end(&mut self) -> &'static str {
        for signal in self.arrived.forever() {
            let name = signal_name(signal).unwrap_or("a signal");
            if ENDING.contains(&signal) {
                return name;
            }
            tracing::warn!(
                "{name} has no meaning here, nothing was done: onrush serve reads its configuration when it starts; \
                 SIGTERM ends it"
            );
        }
        unreachable!("the iterator has no end while nobody closes it")
    }

    /// The next one that ends the server ends it at once.
    pub(super) fn hasten(mut self, handles: Vec<Handle>) {
        // Without it a second signal does nothing, and the server still ends.
        let _ = std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || {
                self.wait_for_end();
                handles
                    .iter()
                    .for_each(|handle| handle.stop(Duration::ZERO));
            });
    }
}
