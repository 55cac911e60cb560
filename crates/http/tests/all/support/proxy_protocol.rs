//! Owned PROXY protocol headers, and properties of arbitrary bytes.

use std::net::SocketAddr;

use onrush_http::Parsed;
use onrush_http::proxy_protocol::{self, ClientTls, Origin};

use super::check::{self, Measured};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) origin: Owned,
    pub(crate) authority: Option<String>,
    pub(crate) alpn: Option<Vec<u8>>,
    pub(crate) tls: Option<ClientTls>,
    pub(crate) bytes: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owned {
    Local,
    Unknown,
    Ip(SocketAddr, SocketAddr),
    Unix(Vec<u8>, Vec<u8>),
}

impl Measured for Told {
    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Parses a header from exactly these bytes.
pub(crate) fn read(input: &[u8]) -> Parsed<Told> {
    match proxy_protocol::parse(input) {
        Parsed::Complete(header) => Parsed::Complete(Told {
            origin: owned(&header.origin),
            authority: header.authority.map(String::from),
            alpn: header.alpn.map(<[u8]>::to_vec),
            tls: header.tls,
            bytes: header.bytes,
        }),
        Parsed::Partial => Parsed::Partial,
        Parsed::Refused(refusal) => Parsed::Refused(refusal),
    }
}

pub(crate) fn owned(origin: &Origin<'_>) -> Owned {
    match *origin {
        Origin::Local => Owned::Local,
        Origin::Unknown => Owned::Unknown,
        Origin::Ip {
            source,
            destination,
        } => Owned::Ip(source, destination),
        Origin::Unix {
            source,
            destination,
        } => Owned::Unix(source.to_vec(), destination.to_vec()),
    }
}

/// Parses every prefix, and checks that `ppp` finds the same addresses.
pub(crate) fn check(input: &[u8]) -> Parsed<Told> {
    let whole = check::prefixes_agree(input, read);
    if let Parsed::Complete(told) = &whole
        && let Owned::Ip(source, destination) = told.origin
    {
        let found = by_ppp(&input[..told.bytes]);
        assert_eq!(
            found,
            Some((source, destination)),
            "{}",
            input.escape_ascii()
        );
    }
    whole
}

/// Addresses that `ppp` finds in a header, which must be all of `input`.
pub(crate) fn by_ppp(input: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
    match ppp::HeaderResult::parse(input) {
        ppp::HeaderResult::V1(header) => {
            let header = header.ok()?;
            assert_eq!(header.header.len(), input.len());
            match header.addresses {
                ppp::v1::Addresses::Tcp4(ip) => Some(of_ipv4(ip)),
                ppp::v1::Addresses::Tcp6(ip) => Some(of_ipv6(ip)),
                ppp::v1::Addresses::Unknown => None,
            }
        }
        ppp::HeaderResult::V2(header) => {
            let header = header.ok()?;
            assert_eq!(header.len(), input.len());
            match header.addresses {
                ppp::v2::Addresses::IPv4(ip) => Some(of_ipv4(ip)),
                ppp::v2::Addresses::IPv6(ip) => Some(of_ipv6(ip)),
                ppp::v2::Addresses::Unix(_) | ppp::v2::Addresses::Unspecified => None,
            }
        }
    }
}

fn of_ipv4(ip: ppp::v2::IPv4) -> (SocketAddr, SocketAddr) {
    (
        (ip.source_address, ip.source_port).into(),
        (ip.destination_address, ip.destination_port).into(),
    )
}

fn of_ipv6(ip: ppp::v2::IPv6) -> (SocketAddr, SocketAddr) {
    (
        (ip.source_address, ip.source_port).into(),
        (ip.destination_address, ip.destination_port).into(),
    )
}
