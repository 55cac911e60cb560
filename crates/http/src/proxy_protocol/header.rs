//! Contents of a PROXY protocol header.

use std::net::{IpAddr, SocketAddr};

use crate::refusal::Refusal;
use crate::write::HeadWriter;

/// Header borrowed from the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyHeader<'b> {
    /// Origin of the connection.
    pub origin: Origin<'b>,
    /// Host name that the client requested: with TLS, its SNI (2.2.2).
    pub authority: Option<&'b str>,
    /// The application protocol negotiated with the client (2.2.1).
    pub alpn: Option<&'b [u8]>,
    /// TLS state of the client's connection, if the proxy sent it (2.2.6).
    pub tls: Option<ClientTls>,
    /// Length of the header in the input.
    pub bytes: usize,
}

/// Origin of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin<'b> {
    /// The proxy itself, for a health check. Use the connection's own addresses.
    Local,
    /// A client with unknown addresses or an unsupported family. Use the connection's own addresses.
    Unknown,
    /// A TCP connection. In a parsed header both addresses have the same family.
    Ip {
        /// The client.
        source: SocketAddr,
        /// Address that the client connected to.
        destination: SocketAddr,
    },
    /// A Unix stream socket: paths without padding, often empty.
    Unix {
        /// The client.
        source: &'b [u8],
        /// Path that the client connected to.
        destination: &'b [u8],
    },
}

/// TLS between the client and the proxy (2.2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientTls {
    /// The client used TLS.
    pub over_tls: bool,
    /// The client presented a certificate, on this connection or earlier in its session.
    pub certificate: bool,
    /// The certificate was verified successfully.
    pub verified: bool,
}

pub(super) const NO_HEADER: Refusal = Refusal::bad("no PROXY protocol header");
pub(super) const MALFORMED: Refusal = Refusal::bad("malformed PROXY protocol header");

/// Addresses and ports of one family, as both versions require.
pub(super) struct AddressPair {
    pub(super) source: (u16, IpAddr),
    pub(super) destination: (u16, IpAddr),
}

/// Converts IPv4-mapped addresses, as a dual-stack listener reports them, to IPv4; if only one address is IPv4, it is
/// written in mapped form.
pub(super) fn pair_of(origin: &Origin<'_>) -> Option<AddressPair> {
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
    Some(AddressPair {
        source: address(source),
        destination: address(destination),
    })
}

impl AddressPair {
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
