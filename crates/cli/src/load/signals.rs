//! SIGINT and SIGTERM: the first one ends a run in good order, a later one ends the program.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use onrush_load::error::Error;
use onrush_load::run::StopHandle;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::exit::EXIT_INTERRUPTED;
use super::live;

/// Signals within this time after the first count as one: it is too short for a second Ctrl-C.
const DUPLICATE_WINDOW: Duration = Duration::from_millis(100);

/// Whether the first signal ends the program.
static ENDS_ON_FIRST_SIGNAL: AtomicBool = AtomicBool::new(false);

/// Makes the first signal end the program: from now on the program only waits for readers, which may never come.
pub(super) fn end_on_first_signal() {
    ENDS_ON_FIRST_SIGNAL.store(true, Ordering::Relaxed);
}

pub(super) fn stop_on_signal(stopper: StopHandle) -> Result<(), Error> {
    on_signal(move || stopper.stop())
}

/// Makes the first signal call `end`, and a later one end the program.
pub(super) fn on_signal(end: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| Error::Invalid(format!("signals cannot be caught: {error}")))?;
    let wait = move || {
        let mut signals = signals.forever();
        signals.next();
        if !ENDS_ON_FIRST_SIGNAL.load(Ordering::Relaxed) {
            let first = Instant::now();
            end();
            // timeout(1) sends one signal to the program and, at the same moment, one to its process group.
            while signals.next().is_some() && first.elapsed() < DUPLICATE_WINDOW {}
        }
        live::restore_terminal();
        eprintln!("interrupted: ended without waiting for the results");
        std::process::exit(EXIT_INTERRUPTED.into());
    };
    thread::Builder::new()
        .name("signals".into())
        .spawn(wait)
        .map(drop)
        .map_err(|error| Error::Invalid(format!("cannot start the thread for signals: {error}")))
}
