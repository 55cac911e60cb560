//! Sockets that a service manager has opened and passed to this process (socket activation, sd_listen_fds(3)).
//!
//! Such a socket has one queue, which all cores share and which this process never closes. A listener for each core
//! would need SO_REUSEPORT set by the manager and sockets of the manager's user; a shared queue works with every unit.

use std::env;
use std::fmt;
use std::net::SocketAddr;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::net::sockopt::{socket_acceptconn, socket_type};
use rustix::net::{SocketAddrAny, SocketAddrUnix, SocketType, getsockname};

use crate::address::Address;

/// The environment variables by which sockets are passed. Child processes must not inherit them.
pub const PASSED_VARIABLES: [&str; 3] = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"];

/// The first descriptor that is passed (SD_LISTEN_FDS_START).
const FIRST: RawFd = 3;

/// Limit on passed sockets: the default limit of a service's descriptors.
const PASSED_MAX: RawFd = 1024;

/// A listening socket that another process has opened and keeps.
#[derive(Debug)]
pub struct PassedSocket {
    /// The manager's name for it (`FileDescriptorName=`, by default the name of the unit).
    pub name: String,
    /// The address on which it listens.
    pub address: Address,
    pub(crate) socket: OwnedFd,
}

/// Why a passed socket cannot be used.
#[derive(Debug)]
pub enum PassedError {
    /// `LISTEN_PID` is not a process ID; contains its value.
    Process(String),
    /// `LISTEN_FDS` is not a valid number of sockets; contains its value.
    Count(String),
    /// The descriptor with this number and name is not a listening TCP or Unix socket.
    NotListening(RawFd, String),
}

impl fmt::Display for PassedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PassedError::Process(value) => write!(
                f,
                "LISTEN_PID={value:?} in the environment is not a process ID: expected the PID of the process that the sockets are for, or no LISTEN_PID if no sockets are passed"
            ),
            PassedError::Count(value) => write!(
                f,
                "LISTEN_FDS={value:?} in the environment is not a number of passed sockets: expected 0 to {PASSED_MAX}"
            ),
            PassedError::NotListening(number, name) => write!(
                f,
                "descriptor {number} ({name}), passed by the service manager, is not a listening TCP or Unix stream socket: expected ListenStream= in the .socket unit, and no Accept=yes"
            ),
        }
    }
}

impl std::error::Error for PassedError {}

/// Takes the sockets passed to this process; empty on later calls. To be called before any other file is opened.
///
/// # Errors
/// See [`PassedError`].
pub fn passed() -> Result<Vec<PassedSocket>, PassedError> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let value = |name| env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    match process_of(value("LISTEN_PID").as_deref())? {
        Some(process) if process == process::id() => {}
        _ => return Ok(Vec::new()),
    }
    let count = count_of(value("LISTEN_FDS").as_deref())?;
    if TAKEN.swap(true, Ordering::Relaxed) {
        return Ok(Vec::new());
    }
    let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':');
    (FIRST..FIRST + count)
        .map(|descriptor| {
            let name = names.next().filter(|name| !name.is_empty());
            take(descriptor, name.unwrap_or("unnamed").to_owned())
        })
        .collect()
}

/// The process that sockets were passed to, from `LISTEN_PID`.
fn process_of(value: Option<&str>) -> Result<Option<u32>, PassedError> {
    let Some(text) = value else {
        return Ok(None);
    };
    match text.parse() {
        Ok(0) | Err(_) => Err(PassedError::Process(text.to_owned())),
        Ok(process) => Ok(Some(process)),
    }
}

fn count_of(value: Option<&str>) -> Result<RawFd, PassedError> {
    let text = value.unwrap_or("0");
    let count = text.parse().ok();
    let count = count.filter(|count| (0..=PASSED_MAX).contains(count));
    count.ok_or_else(|| PassedError::Count(text.to_owned()))
}

fn take(descriptor: RawFd, name: String) -> Result<PassedSocket, PassedError> {
    let wrong = |name: &str| PassedError::NotListening(descriptor, name.to_owned());
    // SAFETY: the environment states that the descriptor was opened for this process alone, and `TAKEN` that it is
    // taken once. If it is closed or not a listener, it is forgotten before any other use.
    let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
    match address_of(&socket) {
        Some(address) => Ok(PassedSocket {
            name,
            address,
            socket,
        }),
        None => {
            std::mem::forget(socket);
            Err(wrong(&name))
        }
    }
}

/// The address of a listening socket, otherwise `None`. Also sets CLOEXEC, so that child processes do not inherit it.
fn address_of(socket: &OwnedFd) -> Option<Address> {
    let flags = fcntl_getfd(socket).ok()?;
    let is_listener =
        socket_type(socket).ok()? == SocketType::STREAM && socket_acceptconn(socket).ok()?;
    if !is_listener {
        return None;
    }
    fcntl_setfd(socket, flags | FdFlags::CLOEXEC).ok()?;
    let address = getsockname(socket).ok()?;
    if let Ok(tcp) = SocketAddr::try_from(address.clone()) {
        return Some(Address::Tcp(tcp));
    }
    unix_path(address)
}

fn unix_path(address: SocketAddrAny) -> Option<Address> {
    let unix = SocketAddrUnix::try_from(address).ok()?;
    let path = unix.path_bytes()?;
    let path = std::ffi::OsStr::from_bytes(path);
    (!path.is_empty()).then(|| Address::Unix(Path::new(path).to_path_buf()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_listen_variables_are_errors() {
        assert_eq!(process_of(None).ok(), Some(None));
        assert_eq!(process_of(Some("7")).ok(), Some(Some(7)));
        assert_eq!(count_of(None).ok(), Some(0));
        assert_eq!(count_of(Some("1024")).ok(), Some(1024));
        for wrong in ["abc", "", "-1", "0", "4294967296", " 7"] {
            let said = process_of(Some(wrong)).expect_err(wrong).to_string();
            let begin = format!("LISTEN_PID={wrong:?} in the environment is not a process ID");
            assert!(said.starts_with(&begin), "{said}");
        }
        for wrong in ["abc", "", "-1", "1025", "99999999999"] {
            let said = count_of(Some(wrong)).expect_err(wrong).to_string();
            let begin = format!(
                "LISTEN_FDS={wrong:?} in the environment is not a number of passed sockets"
            );
            assert!(said.starts_with(&begin), "{said}");
            assert!(said.ends_with("expected 0 to 1024"), "{said}");
        }
    }
}
