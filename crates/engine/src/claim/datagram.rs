//! The claim on an address for datagrams, made once for all cores.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;
use rustix::net::sockopt::{
    set_ipv6_v6only, set_socket_recv_buffer_size, set_socket_recv_buffer_size_force,
    set_socket_reuseport, socket_recv_buffer_size,
};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with};

use crate::error::{Error, Op};

/// An address that this process receives datagrams on, with a socket for each core. Made before any core starts, while
/// the process still has the rights to bind. Datagrams that arrive before a core uses its socket wait in it.
///
/// The kernel selects the socket of a datagram by a hash of both addresses (SO_REUSEPORT), so a flow stays on one core.
#[derive(Debug)]
pub struct DatagramClaim {
    address: SocketAddr,
    receive_buffer: usize,
    /// By core number; `None` once taken.
    sockets: Mutex<Vec<Option<OwnedFd>>>,
}

impl DatagramClaim {
    /// Claims `address` for `cores` cores. Port 0 becomes a free port; see [`DatagramClaim::address`]. `receive_buffer`
    /// is the requested size of each socket's receive buffer in bytes; see [`DatagramClaim::receive_buffer`].
    ///
    /// # Errors
    /// `EADDRINUSE` when another process already receives there. `EACCES`, `EADDRNOTAVAIL` and so on as in bind(2).
    pub fn new(
        address: SocketAddr,
        cores: usize,
        receive_buffer: Option<u32>,
    ) -> Result<Self, Error> {
        let opened = open_all(address, cores, receive_buffer);
        let (sockets, address) = opened.map_err(|errno| Error::os(Op::Bind, errno))?;
        let given = sockets.first().map(socket_recv_buffer_size);
        Ok(Self {
            address,
            // The kernel doubles the requested value to allow for its own overhead (socket(7)).
            receive_buffer: given.and_then(Result::ok).unwrap_or_default() / 2,
            sockets: Mutex::new(sockets.into_iter().map(Some).collect()),
        })
    }

    /// The address, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Size of each socket's receive buffer in bytes; may be limited by the sysctl `net.core.rmem_max`.
    pub fn receive_buffer(&self) -> usize {
        self.receive_buffer
    }

    /// The socket of a core; each can be taken once.
    pub(crate) fn take(&self, core: usize) -> Result<OwnedFd, Errno> {
        // No code under the lock can panic.
        let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        let socket = sockets.get_mut(core).and_then(Option::take);
        socket.ok_or(Errno::ADDRINUSE)
    }
}

fn open_all(
    address: SocketAddr,
    cores: usize,
    receive_buffer: Option<u32>,
) -> Result<(Vec<OwnedFd>, SocketAddr), Errno> {
    let first = open(address)?;
    bind(&first, &address)?;
    // Set after bind, which failed if the address was in use; the other sockets may now join.
    set_socket_reuseport(&first, true)?;
    let bound = SocketAddr::try_from(getsockname(&first)?).map_err(|_| Errno::AFNOSUPPORT)?;
    let mut sockets = vec![first];
    for _ in 1..cores {
        let socket = open(address)?;
        set_socket_reuseport(&socket, true)?;
        bind(&socket, &bound)?;
        sockets.push(socket);
    }
    for socket in &sockets {
        set_receive_buffer(socket, receive_buffer)?;
    }
    Ok((sockets, bound))
}

/// Requests a receive buffer of this size, above `rmem_max` if the process has CAP_NET_ADMIN.
fn set_receive_buffer(socket: &OwnedFd, receive_buffer: Option<u32>) -> Result<(), Errno> {
    let Some(bytes) = receive_buffer else {
        return Ok(());
    };
    let bytes = bytes as usize;
    match set_socket_recv_buffer_size_force(socket, bytes) {
        Err(Errno::PERM) => set_socket_recv_buffer_size(socket, bytes),
        outcome => outcome,
    }
}

pub(crate) fn open(address: SocketAddr) -> Result<OwnedFd, Errno> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::DGRAM, flags, None)?;
    if address.is_ipv6() {
        // As for listeners: an IPv6 address does not include IPv4.
        set_ipv6_v6only(&socket, true)?;
    }
    Ok(socket)
}
