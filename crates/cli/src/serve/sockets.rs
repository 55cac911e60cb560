//! Files of Unix sockets that are listened on: one that is deleted, or replaced, leads nobody to the server any more, which
//! notices nothing of that by itself.

use std::io;
use std::thread;
use std::time::Duration;

use super::admin::InForce;

/// How often they are looked at: a call of the kernel for each.
const INTERVAL: Duration = Duration::from_secs(2);

/// Says of each once when it is gone, for as long as the process runs.
///
/// # Errors
/// When there is no thread for it.
pub(super) fn watch(in_force: InForce) -> io::Result<()> {
    let watch = move || {
        let mut said = Vec::new();
        loop {
            thread::sleep(INTERVAL);
            let gone = in_force.sockets_gone();
            for address in gone.iter().filter(|address| !said.contains(*address)) {
                tracing::error!(
                    event = "socket_gone",
                    address,
                    "the file of {address} is gone, or another one has its name: nobody reaches this server there, which listens on; start it anew"
                );
            }
            said = gone;
        }
    };
    thread::Builder::new().name("sockets".into()).spawn(watch)?;
    Ok(())
}
