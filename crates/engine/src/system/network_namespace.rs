//! Identifies the current network namespace by a cookie that is unique until the machine reboots.
//!
//! The inode of its file (`/proc/self/ns/net`) is reused after the namespace is gone. rustix has no safe wrapper.

use std::io;
use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// The cookie of this thread's network namespace (Linux 5.14). An older kernel returns the error ENOPROTOOPT.
pub fn network_namespace_cookie() -> io::Result<u64> {
    let flags = SocketFlags::CLOEXEC;
    // An unbound socket also belongs to the namespace, and every kernel has this kind.
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
    let mut cookie = 0u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `cookie`, which is that long and for which all bytes are
    // valid, and their number to `length`; both outlive the call.
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
    fn cookies_identify_namespaces() {
        let Ok(ours) = network_namespace_cookie() else {
            eprintln!("skipped: this kernel has no cookies of network namespaces (Linux 5.14 has)");
            return;
        };
        assert_eq!(network_namespace_cookie().ok(), Some(ours));
        let other = std::thread::spawn(|| {
            // SAFETY: other threads do not depend on the network namespace of this thread.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.ok()?;
            network_namespace_cookie().ok()
        });
        match other.join().expect("a result") {
            Some(other) => assert_ne!(other, ours),
            None => eprintln!("skipped: a network namespace takes root"),
        }
    }
}
