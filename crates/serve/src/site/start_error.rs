//! Errors of starting a server.

use std::fmt;
use std::io;

use onrush_config::plan::LogTarget;
use onrush_engine::{Address, Errno, Error, Kind};

use crate::site::check::cannot_serve;

/// Why a server did not start. Nothing of it is left.
#[derive(Debug)]
pub enum StartError {
    /// The configured driver is not available.
    Driver(String),
    /// The plan names CPUs that this process may not use.
    Cpus(String),
    /// Connections cannot be distributed by CPU, as configured.
    Accept(String),
    /// An address cannot be listened on.
    Listen(Address, Error),
    /// The access log cannot be opened.
    AccessLog(LogTarget, io::Error),
    /// The exporter of spans cannot be started.
    Tracing(io::Error),
    /// The thread that checks passwords cannot be started.
    Thread(io::Error),
    /// A directory that was accessible a moment ago can no longer be opened.
    Directory(String, Error),
    /// The limit on open files is lower than what the cores need before the first connection.
    Descriptors {
        /// Number needed.
        needed: u64,
        /// The limit.
        limit: u64,
    },
    /// The process to replace listens in a different manner: what differs.
    Handover(&'static str),
    /// A service manager has passed sockets that the plan does not use.
    Passed {
        /// Their addresses, and their names in the manager.
        unwanted: Vec<(Address, String)>,
        /// Addresses of the plan without a passed socket.
        without: Vec<String>,
    },
    /// The resolver of server names cannot be started.
    Resolver(io::Error),
    /// A core cannot be started.
    Core(Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Driver(why) | StartError::Cpus(why) => f.write_str(why),
            StartError::Accept(why) => write!(
                f,
                "cannot distribute connections by CPU (accept = \"cpu\"): {why}"
            ),
            StartError::Listen(address, error) => {
                write!(f, "cannot listen on {address}: ")?;
                match why_not_listening(address, error) {
                    Some(why) => f.write_str(why),
                    None => error.fmt(f),
                }
            }
            StartError::Directory(path, error) => f.write_str(&cannot_serve(path, error)),
            StartError::AccessLog(target, error) => match target {
                LogTarget::File(path) => {
                    write!(f, "cannot write the access log {}: {error}", path.display())
                }
                _ => write!(f, "cannot start the access log: {error}"),
            },
            StartError::Tracing(error) => {
                write!(f, "cannot start a thread to send spans: {error}")
            }
            StartError::Thread(error) => {
                write!(f, "cannot start a thread to check passwords: {error}")
            }
            StartError::Descriptors { needed, limit } => write!(
                f,
                "too few file descriptors: {needed} are needed before the first connection, and this process may have {limit}; raise the limit (ulimit -n) or use fewer --threads"
            ),
            StartError::Handover(what) => write!(
                f,
                "cannot take over from the running server: {what} must stay the same; stop it and start this one"
            ),
            StartError::Passed { unwanted, without } => f.write_str(&not_wanted(unwanted, without)),
            StartError::Resolver(error) => {
                write!(f, "cannot resolve the names of servers: {error}")
            }
            StartError::Core(error) => write!(f, "cannot start: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// Lists sockets without a `[[listen]]`, and `[[listen]]` addresses without a socket: most likely they are meant for
/// each other.
fn not_wanted(unwanted: &[(Address, String)], without: &[String]) -> String {
    let sockets: Vec<String> = unwanted
        .iter()
        .map(|(address, name)| format!("{address} ({name})"))
        .collect();
    let (sockets, these) = match &sockets[..] {
        [one] => (format!("the socket {one}"), "this address"),
        several => (
            format!("the sockets {}", several.join(", ")),
            "these addresses",
        ),
    };
    let without = match without {
        [] => {
            return format!(
                "the service manager has passed {sockets}, and every [[listen]] has a socket already: remove it from the .socket unit"
            );
        }
        [one] => format!(
            "the [[listen]] {one} has no socket: give both the same address, here or in the .socket unit"
        ),
        several => format!(
            "of [[listen]] {} have no socket: give one of them the same address, here or in the .socket unit",
            several.join(", ")
        ),
    };
    // ListenStream=80 means [::]:80.
    let is_port_alone = |address: &Address| match address {
        Address::Tcp(address) => address.is_ipv6() && address.ip().is_unspecified(),
        Address::Unix(_) => false,
    };
    let hint = match unwanted.iter().any(|(address, _)| is_port_alone(address)) {
        true => " (a port alone is [::] in a .socket unit)",
        false => "",
    };
    format!(
        "the service manager has passed {sockets}, and no [[listen]] has {these}{hint}; {without}"
    )
}

/// Explains a kernel error and what the user can do.
fn why_not_listening(address: &Address, error: &Error) -> Option<&'static str> {
    let Kind::Os(errno) = error.kind else {
        return None;
    };
    match (address, errno) {
        (Address::Tcp(_), Errno::ADDRINUSE) => {
            Some("another program uses it; stop it or choose another --listen address")
        }
        (Address::Unix(_), Errno::ADDRINUSE) => Some(
            "another program uses it, or a file that is not a socket has this name; choose another --listen address",
        ),
        (Address::Tcp(_), Errno::ADDRNOTAVAIL) => {
            Some("this machine does not have that address; 0.0.0.0 means all of its addresses")
        }
        (Address::Tcp(_), Errno::ACCESS) => {
            Some("permission denied; ports below 1024 need CAP_NET_BIND_SERVICE")
        }
        (Address::Unix(_), Errno::NOENT | Errno::NOTDIR) => {
            Some("the directory of the socket does not exist")
        }
        (Address::Unix(_), Errno::ACCESS | Errno::PERM | Errno::ROFS) => {
            Some("the directory of the socket cannot be written to")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_engine::Op;

    #[test]
    fn start_errors_have_cause_and_remedy() {
        let listen = |address: Address, errno| {
            StartError::Listen(address, Error::new(Op::Listen, Kind::Os(errno))).to_string()
        };
        let tcp = || Address::Tcp(([10, 0, 0, 1], 80).into());
        let unix = || Address::Unix("/run/a.sock".into());
        let passed = |addresses: &[&str], without: &[&str]| {
            let address = |text: &&str| Address::Tcp(text.parse().expect("an address"));
            let named = addresses
                .iter()
                .map(|text| (address(text), "web".to_owned()));
            StartError::Passed {
                unwanted: named.collect(),
                without: without.iter().map(|&text| text.to_owned()).collect(),
            }
            .to_string()
        };
        for (said, part) in [
            (
                passed(&["[::]:80"], &["0.0.0.0:80"]),
                "the socket [::]:80 (web), and no [[listen]] has this address (a port alone is [::] in a .socket unit); the [[listen]] 0.0.0.0:80 has no socket",
            ),
            (
                passed(&["10.0.0.1:1", "10.0.0.1:2"], &["10.0.0.1:3", "10.0.0.1:4"]),
                "the sockets 10.0.0.1:1 (web), 10.0.0.1:2 (web), and no [[listen]] has these addresses; of [[listen]] 10.0.0.1:3, 10.0.0.1:4 have no socket",
            ),
            (
                passed(&["10.0.0.1:1"], &[]),
                "the socket 10.0.0.1:1 (web), and every [[listen]] has a socket already",
            ),
            (
                listen(tcp(), Errno::ADDRINUSE),
                "cannot listen on 10.0.0.1:80: another program uses it",
            ),
            (
                listen(tcp(), Errno::ADDRNOTAVAIL),
                "does not have that address",
            ),
            (listen(tcp(), Errno::ACCESS), "CAP_NET_BIND_SERVICE"),
            (listen(tcp(), Errno::NOBUFS), "listen: "),
            (listen(unix(), Errno::ACCESS), "cannot be written to"),
            (
                listen(unix(), Errno::NOENT),
                "directory of the socket does not exist",
            ),
        ] {
            assert!(said.contains(part), "{said}");
        }
    }
}
