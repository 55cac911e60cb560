//! What a header of the PROXY protocol says.

use std::net::{IpAddr, SocketAddr};

use crate::refusal::Refusal;
use crate::write::HeadWriter;

/// What stands at the start of a connection, borrowed from the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyHeader<'b> {
    /// Whom the proxy speaks for.
    pub origin: Origin<'b>,
    /// The host name the client asked for, in TLS its server name (2.2.2).
    pub authority: Option<&'b str>,
    /// The application protocol negotiated with the client (2.2.1).
    pub alpn: Option<&'b [u8]>,
    /// Present if the proxy says whether TLS was spoken with the client (2.2.6).
    pub tls: Option<ClientTls>,
    /// Length of the header in the input.
    pub bytes: usize,
}

/// Whom a connection was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin<'b> {
    /// Nobody: the proxy connects on its own behalf, to check our health. The connection's own addresses count.
    Local,
    /// Somebody whose addresses are not told, or not in a form we know. The connection's own addresses count.
    Unknown,
    /// A TCP connection. Both addresses are of the same family when read.
    Ip {
        /// The client.
        source: SocketAddr,
        /// What it connected to.
        destination: SocketAddr,
    },
    /// A connection over a Unix stream socket: paths without the padding, often empty.
    Unix {
        /// The client.
        source: &'b [u8],
        /// What it connected to.
        destination: &'b [u8],
    },
}

/// What a proxy says of TLS between the client and itself (2.2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientTls {
    /// The client spoke TLS.
    pub spoken: bool,
    /// The client presented a certificate, on this connection or earlier in its session.
    pub certificate: bool,
    /// That certificate was verified, and found good.
    pub verified: bool,
}

pub(super) const NO_HEADER: Refusal = Refusal::bad("no PROXY protocol header");
pub(super) const MALFORMED: Refusal = Refusal::bad("malformed PROXY protocol header");

/// Ports and addresses of one family, as both versions want them.
pub(super) struct Pair {
    pub(super) source: (u16, IpAddr),
    pub(super) destination: (u16, IpAddr),
}

/// What a listener for both families calls `::ffff:192.0.2.1` is an IPv4 client; if only one of the two is IPv4 it is
/// written in that form.
pub(super) fn pair_of(origin: &Origin<'_>) -> Option<Pair> {
    let Origin::Ip {
        source,
        destination,
    } = origin
    else {
        return None;
    };
    let plain = |socket: &SocketAddr| (socket.port(), socket.ip().to_canonical());
    let mapped = |socket: &SocketAddr| match socket.ip() {
        IpAddr::V4(address) => (socket.port(), IpAddr::V6(address.to_ipv6_mapped())),
        IpAddr::V6(_) => (socket.port(), socket.ip()),
    };
    let are_both_ipv4 = plain(source).1.is_ipv4() && plain(destination).1.is_ipv4();
    let address = if are_both_ipv4 { plain } else { mapped };
    Some(Pair {
        source: address(source),
        destination: address(destination),
    })
}

impl Pair {
    pub(super) fn write(&self, writer: &mut HeadWriter<'_>) {
        for (_, address) in [self.source, self.destination] {
            match address {
                IpAddr::V4(address) => writer.raw(&address.octets()),
                IpAddr::V6(address) => writer.raw(&address.octets()),
            };
        }
        for (port, _) in [self.source, self.destination] {
            writer.raw(&port.to_be_bytes());
        }
    }
}
