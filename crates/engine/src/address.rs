//! Addresses of stream sockets: TCP over IPv4 or IPv6, or a Unix path.

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

/// The local side of a TCP connection; the kernel chooses what is not set.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Source {
    /// An address of this machine, of the same family as the peer's.
    pub address: Option<IpAddr>,
    /// Range of local ports, from Linux 6.3 on, within net.ipv4.ip_local_port_range (ip(7), IP_LOCAL_PORT_RANGE).
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
