//! Watches the files of Unix sockets: when one is deleted or replaced, clients no longer reach the server, which does
//! not notice that by itself.

use std::io;
use std::thread;
use std::time::Duration;

use super::admin::ActiveConfiguration;

/// Interval of the checks. A check costs one system call per socket.
const INTERVAL: Duration = Duration::from_secs(2);

/// Starts a thread that logs each socket once when its file is gone.
pub(super) fn watch(in_force: ActiveConfiguration) -> io::Result<()> {
    let watch = move || {
        let mut said = Vec::new();
        loop {
            thread::sleep(INTERVAL);
            let gone = in_force.sockets_gone();
            for address in gone.iter().filter(|address| !said.contains(*address)) {
                tracing::error!(
                    event = "socket_gone",
                    address,
                    "the socket file {address} is gone or was replaced: no client can connect to it; restart the server"
                );
            }
            said = gone;
        }
    };
    thread::Builder::new().name("sockets".into()).spawn(watch)?;
    Ok(())
}
