//! What signals mean to a server that runs: SIGHUP has it read its configuration again, SIGUSR2 has the next program take its
//! place, SIGUSR1 has it open its access log anew; the first SIGINT, SIGTERM or SIGQUIT ends it in good order, the second one at
//! once.

use std::io;
use std::sync::mpsc::Sender;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use signal_hook::low_level::signal_name;

use super::asked::Asked;

/// Those that end it.
const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGQUIT];

/// Catches signals from now on: none of them ends the process by itself.
///
/// # Errors
/// When the system does not let the process handle them.
pub(super) fn catch() -> io::Result<Signals> {
    Signals::new([&ENDING[..], &[SIGHUP, SIGUSR1, SIGUSR2]].concat())
}

/// Waits for signals on a thread of its own, and sends on what they ask for; those that have come since they are caught, too.
///
/// # Errors
/// When the system has no thread.
pub(super) fn wait(mut arrived: Signals, asked: Sender<Asked>) -> io::Result<()> {
    let waiting = move || {
        for signal in arrived.forever() {
            let name = signal_name(signal).unwrap_or("a signal");
            let asks = match signal {
                SIGHUP => Asked::Reload,
                SIGUSR2 => Asked::Upgrade,
                SIGUSR1 => Asked::Reopen,
                _ => Asked::End(name),
            };
            if asked.send(asks).is_err() {
                return;
            }
        }
    };
    thread::Builder::new()
        .name("signals".into())
        .spawn(waiting)
        .map(|_| ())
}
