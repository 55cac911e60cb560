//! Binding sockets to one network interface, independent of the routes.

use std::io;
use std::os::fd::AsFd;

use crate::socket::option::set_option;

/// Restricts `socket` to the interface with this index, for sending and receiving (SO_BINDTOIFINDEX, Linux 5.1).
///
/// # Errors
/// `EPERM` where the kernel requires CAP_NET_RAW: before Linux 5.7, or when the socket is bound to another interface.
/// An index without an interface fails only when something is sent.
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
    fn socket_sends_only_on_bound_interface() {
        let to = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let address = to.local_addr().expect("it has one");
        // The loopback has index 1 in every namespace; no machine has an interface with the second index.
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
