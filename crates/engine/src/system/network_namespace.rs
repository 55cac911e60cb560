//! Which network namespace we are in, by a number that no other gets until the machine starts anew.
//!
//! The number of its file (`/proc/self/ns/net`) is given again as soon as the namespace is gone. rustix has no safe form
//! of this question, so it stands here, in the one crate with `unsafe`, for whoever is given it as a function.

use std::io;
use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// The cookie of the network namespace that this thread is in (Linux 5.14). An older kernel does not know the question
/// (ENOPROTOOPT), which is the error then.
pub fn network_namespace_cookie() -> io::Result<u64> {
    let flags = SocketFlags::CLOEXEC;
    // A socket without an address belongs to the namespace all the same, and every kernel has this kind.
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
    let mut cookie = 0u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `cookie`, which is that long and takes any bytes, and their
    // number to `length`; both outlive the call.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    match outcome {
        0 => Ok(cookie),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::{UnshareFlags, unshare_unsafe};

    #[test]
    fn a_namespace_has_one_cookie_and_another_namespace_another() {
        let Ok(ours) = network_namespace_cookie() else {
            eprintln!("skipped: this kernel has no cookies of network namespaces (Linux 5.14 has)");
            return;
        };
        assert_eq!(network_namespace_cookie().ok(), Some(ours));
        let other = std::thread::spawn(|| {
            // SAFETY: a network namespace of this thread's own takes nothing that another thread relies on.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.ok()?;
            network_namespace_cookie().ok()
        });
        match other.join().expect("a result") {
            Some(other) => assert_ne!(other, ours),
            None => eprintln!("skipped: a network namespace takes root"),
        }
    }
}
