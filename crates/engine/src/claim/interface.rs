//! Sockets that send and receive by one interface only, whatever the routes say.

use std::io;
use std::os::fd::AsFd;

use crate::socket::option::set_option;

/// From now on what `socket` sends leaves by the interface with this index, and it receives only what came in by it
/// (SO_BINDTOIFINDEX, Linux 5.1).
///
/// # Errors
/// `EPERM` where the kernel wants CAP_NET_RAW for that: before Linux 5.7, or when the socket is bound to another one.
/// That there is no such interface is said when something is sent.
pub fn bind_to_interface(socket: impl AsFd, index: u32) -> io::Result<()> {
    let index = index.cast_signed();
    let outcome = set_option(socket, libc::SOL_SOCKET, libc::SO_BINDTOIFINDEX, index);
    Ok(outcome?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn a_socket_sends_by_its_interface_or_not_at_all() {
        let to = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let address = to.local_addr().expect("it has one");
        // The loopback is the first in every namespace; nobody has that many.
        for (index, arrives) in [(1, true), (i32::MAX as u32, false)] {
            let from = UdpSocket::bind("127.0.0.1:0").expect("a port");
            if let Err(error) = bind_to_interface(&from, index) {
                assert_eq!(error.raw_os_error(), Some(libc::EPERM));
                eprintln!("skipped: this kernel wants CAP_NET_RAW for that");
                return;
            }
            assert_eq!(from.send_to(b"x", address).is_ok(), arrives, "{index}");
        }
        assert_eq!(to.recv(&mut [0; 2]).expect("one was sent"), 1);
    }
}
