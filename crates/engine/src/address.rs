//! Where a socket listens, connects to or comes from: TCP over IPv4 or IPv6, or a Unix path.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// The address of a stream socket.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Address {
    /// TCP over IPv4 or IPv6.
    Tcp(SocketAddr),
    /// A Unix domain socket in the file system.
    Unix(PathBuf),
}

/// Where a TCP connection comes from, as far as that is not left to the kernel.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Source {
    /// An address of this machine, of the same family as the peer's.
    pub address: Option<IpAddr>,
    /// The ports of which the kernel takes a free one; from Linux 6.3 on. Those outside of net.ipv4.ip_local_port_range
    /// are never taken (ip(7), IP_LOCAL_PORT_RANGE).
    pub ports: Option<RangeInclusive<u16>>,
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Address::Tcp(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}
