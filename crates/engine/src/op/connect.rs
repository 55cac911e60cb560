//! Connecting to a peer. Both kernel drivers start it without blocking and wait for writability.

use std::ffi::c_int;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;
use std::task::Poll;

use rustix::io::Errno;
use rustix::net::sockopt::set_tcp_nodelay;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, socket_with,
};

use crate::address::{Address, Source};
use crate::driver::operations::Operations;
use crate::error::{Error, Op};
use crate::socket::key::Key;
use crate::socket::option::set_option;
use crate::state::State;
use crate::task::id::TaskId;

impl State {
    /// Opens a socket and starts to connect it; [`State::poll_connect`] reports the outcome.
    pub(crate) fn connect(&mut self, source: &Source, address: &Address) -> Result<Key, Error> {
        let open = || {
            let descriptor = socket(address).map_err(|errno| Error::os(Op::Connect, errno))?;
            bind_source(source, &descriptor, address)
                .map_err(|errno| Error::os(Op::Bind, errno))?;
            start(&descriptor, address).map_err(|errno| Error::os(Op::Connect, errno))?;
            Ok(descriptor)
        };
        let key = self
            .driver
            .connect(source, address, open, &mut self.sockets)?;
        self.sockets[key].can_discard = matches!(address, Address::Tcp(_));
        Ok(key)
    }

    pub(crate) fn poll_connect(&mut self, key: Key, task: TaskId) -> Poll<Result<(), Error>> {
        let outcome = self
            .connect_outcome(key)
            .map_err(|errno| Error::os(Op::Connect, errno));
        self.finish_send(key, outcome, Op::Connect, task)
    }

    fn connect_outcome(&mut self, key: Key) -> Result<(), Errno> {
        let socket = &mut self.sockets[key];
        if !socket.writable {
            return Err(Errno::AGAIN);
        }
        self.driver.connected(socket)
    }
}

fn socket(address: &Address) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let family = match address {
        Address::Tcp(address) if address.is_ipv4() => AddressFamily::INET,
        Address::Tcp(_) => AddressFamily::INET6,
        Address::Unix(_) => AddressFamily::UNIX,
    };
    socket_with(family, SocketType::STREAM, flags, None)
}

/// Sets the local address and ports of a connection that is not yet made.
fn bind_source(source: &Source, descriptor: &OwnedFd, address: &Address) -> Result<(), Errno> {
    let Address::Tcp(_) = address else {
        return Ok(());
    };
    if let Some(ports) = &source.ports {
        // Here and below the IPv4 option is right for IPv6 sockets, too.
        set_option(
            descriptor,
            libc::IPPROTO_IP,
            IP_LOCAL_PORT_RANGE,
            packed(ports),
        )?;
    }
    let Some(address) = source.address else {
        return Ok(());
    };
    // A port assigned by bind(2) would be taken for all peers. Assigned by connect(2), it can be shared by connections
    // to different peers, so each address has 64 k ports per peer.
    set_option(
        descriptor,
        libc::IPPROTO_IP,
        libc::IP_BIND_ADDRESS_NO_PORT,
        1,
    )?;
    bind(descriptor, &SocketAddr::new(address, 0))
}

/// From linux/in.h; missing in libc.
const IP_LOCAL_PORT_RANGE: c_int = 51;

/// The upper bound in the upper half, the lower one in the lower (ip(7)).
fn packed(ports: &RangeInclusive<u16>) -> c_int {
    let (low, high) = (u32::from(*ports.start()), u32::from(*ports.end()));
    (high << 16 | low).cast_signed()
}

fn start(descriptor: &OwnedFd, address: &Address) -> Result<(), Errno> {
    let started = match address {
        Address::Tcp(address) => {
            // Requests are sent whole; waiting for an acknowledgement to fill a packet (Nagle) only delays them.
            set_tcp_nodelay(descriptor, true)?;
            connect(descriptor, address)
        }
        Address::Unix(path) => connect(descriptor, &SocketAddrUnix::new(path)?),
    };
    match started {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(()),
        // unix(7): the listener's queue is full. A refusal, because no event would report writability.
        Err(Errno::AGAIN) => Err(Errno::CONNREFUSED),
        Err(errno) => Err(errno),
    }
}
