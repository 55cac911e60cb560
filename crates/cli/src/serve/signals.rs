//! Signals of a running server. SIGHUP reloads the configuration, SIGUSR2 upgrades the program, SIGUSR1 reopens the
//! access log; the first SIGINT, SIGTERM or SIGQUIT ends the server gracefully, the second one at once.

use std::io;
use std::sync::mpsc::Sender;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use signal_hook::low_level::signal_name;

use super::server_command::ServerCommand;

/// Signals that end the server.
const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGQUIT];

/// Installs the handlers: from now on no signal ends the process by itself.
pub(super) fn catch() -> io::Result<Signals> {
    Signals::new([&ENDING[..], &[SIGHUP, SIGUSR1, SIGUSR2]].concat())
}

/// Starts a thread that turns signals into commands, including signals received since [`catch`].
pub(super) fn wait(mut arrived: Signals, asked: Sender<ServerCommand>) -> io::Result<()> {
    let waiting = move || {
        for signal in arrived.forever() {
            let name = signal_name(signal).unwrap_or("a signal");
            let asks = match signal {
                SIGHUP => ServerCommand::Reload,
                SIGUSR2 => ServerCommand::Upgrade,
                SIGUSR1 => ServerCommand::Reopen,
                _ => ServerCommand::End(name),
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
