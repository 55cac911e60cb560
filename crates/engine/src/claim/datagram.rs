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

/// An address that this process receives datagrams on, with a socket for each core. Made before any core starts, so that a taken
/// address is one clear error, and by whoever has the right to take it. What arrives before a core has its socket waits there.
///
/// The kernel chooses the socket of a datagram by a hash of both addresses (SO_REUSEPORT): one flow is one core's.
#[derive(Debug)]
pub struct DatagramClaim {
    address: SocketAddr,
    receive_buffer: usize,
    /// By the number of the core; those that were taken are gone.
    sockets: Mutex<Vec<Option<OwnedFd>>>,
}

impl DatagramClaim {
    /// Claims `address` for cores number 0 to `cores`, without the last. Port 0 becomes a free port; see [`DatagramClaim::address`].
    /// The kernel is asked to keep `receive_buffer` bytes of what waits in each socket; see [`DatagramClaim::receive_buffer`].
    ///
    /// # Errors
    /// `EADDRINUSE` when anybody receives there already, also another Onrush. `EACCES`, `EADDRNOTAVAIL` and so on as in bind(2).
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
            // It counts what it needs itself, and doubles what it is asked for (socket(7)).
            receive_buffer: given.and_then(Result::ok).unwrap_or_default() / 2,
            sockets: Mutex::new(sockets.into_iter().map(Some).collect()),
        })
    }

    /// The address with the port that was chosen.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many bytes the kernel keeps in each socket: less than was asked for where this process may not have more than the
    /// sysctl `net.core.rmem_max` says.
    pub fn receive_buffer(&self) -> usize {
        self.receive_buffer
    }

    /// The socket of a core, which takes it once.
    pub(crate) fn take(&self, core: usize) -> Result<OwnedFd, Errno> {
        // Nothing that runs under the lock can panic.
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
    // Only now: it was alone on its address when it was bound, and from here on its like may join it.
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
        keep_waiting(socket, receive_buffer)?;
    }
    Ok((sockets, bound))
}

/// Asks the kernel to keep so many bytes, with the rights of an administrator where the process has them.
fn keep_waiting(socket: &OwnedFd, receive_buffer: Option<u32>) -> Result<(), Errno> {
    let Some(bytes) = receive_buffer else {
        return Ok(());
    };
    let bytes = bytes as usize;
    match set_socket_recv_buffer_size_force(socket, bytes) {
        Err(Errno::PERM) => set_socket_recv_buffer_size(socket, bytes),
        outcome => outcome,
    }
}

/// A socket for datagrams of the family of `address`, which has none yet.
pub(crate) fn open(address: SocketAddr) -> Result<OwnedFd, Errno> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::DGRAM, flags, None)?;
    if address.is_ipv6() {
        // As for listeners: an address means what it says.
        set_ipv6_v6only(&socket, true)?;
    }
    Ok(socket)
}
