//! Where connections are accepted, and what lies between the socket and HTTP.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::file::FilePath;
use super::host::Host;
use super::network::Networks;
use super::protocol::Protocol;
use crate::limits;

/// One place to accept connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// What routes, metrics and logs call it: as it was named, or else its address. Unique, but for addresses with port 0.
    pub name: String,
    /// The address to bind.
    pub address: Address,
    /// TLS, when it is spoken here.
    pub tls: Option<Tls>,
    /// Who begins its connections with the PROXY protocol (version 1 or 2); must, and may. Others
    /// speak for themselves.
    pub proxy_protocol: Option<Networks>,
    /// What is spoken here. Where it is not HTTP there are no routes, and nobody begins with the PROXY protocol.
    pub protocol: Protocol,
}

impl Listen {
    /// Plain HTTP at `address`.
    pub fn plain(address: Address) -> Listen {
        Listen {
            name: address.to_string(),
            address,
            tls: None,
            proxy_protocol: None,
            protocol: Protocol::default(),
        }
    }

    /// Whether the kernel chooses its port.
    pub fn is_any_port(&self) -> bool {
        match &self.address {
            Address::Tcp(address) => address.port() == 0,
            Address::Unix(_) => false,
        }
    }

    /// Whether requests come by it.
    pub fn is_http(&self) -> bool {
        match self.protocol {
            Protocol::Http(_) => true,
            Protocol::Memcached(..)
            | Protocol::Echo(_)
            | Protocol::Sink(_)
            | Protocol::Responder(_) => false,
        }
    }
}

impl Default for Listen {
    fn default() -> Listen {
        Listen::plain(Address::Tcp(limits::LISTEN_DEFAULT))
    }
}

/// An address to bind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// TCP over IPv4 or IPv6. Port 0 lets the kernel choose.
    Tcp(SocketAddr),
    /// A Unix stream socket at this path.
    Unix(PathBuf),
}

/// As it is written in a configuration: `127.0.0.1:80`, `[::]:80`, `unix:/run/onrush.sock`.
impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(out),
            Address::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}

/// TLS towards clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// Never empty. The names in them choose (SNI); the first is for clients that name none of
    /// them.
    pub certificates: Vec<Certificate>,
    /// Which versions and cipher suites.
    pub profile: TlsProfile,
    /// Whether clients show certificates.
    pub clients: ClientCertificates,
    /// Response to requests for hosts of another certificate.
    pub misdirected: Misdirected,
    /// Other rules about client certificates, for clients that ask for certain names (SNI).
    pub names: Vec<NamedClients>,
}

impl Tls {
    /// All authorities of clients.
    pub fn authorities(&self) -> impl Iterator<Item = &ClientAuthorities> {
        let named = self.names.iter().map(|rule| &rule.clients);
        let all = [&self.clients].into_iter().chain(named);
        all.filter_map(ClientCertificates::authorities)
    }

    /// With a certificate made at the start and everything else at its default.
    pub fn self_signed() -> Tls {
        Tls::with(vec![Certificate::SelfSigned])
    }

    /// With these certificates, of which there is one at least, and everything else at its default.
    pub fn with(certificates: Vec<Certificate>) -> Tls {
        Tls {
            certificates,
            profile: TlsProfile::default(),
            clients: ClientCertificates::default(),
            misdirected: Misdirected::default(),
            names: Vec::new(),
        }
    }
}

/// Response to a request whose host is covered by another certificate than that of its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Misdirected {
    /// 421 (RFC 9110 15.5.20).
    #[default]
    Refuse,
    /// The response of its route.
    Serve,
}

/// A certificate chain and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Certificate {
    /// PEM files. Whether they exist and belong together is not known here.
    Files {
        /// The chain, the server's own certificate first.
        certificate: FilePath,
        /// Its private key.
        key: FilePath,
        /// An OCSP response in DER, which is sent with it.
        staple: Option<FilePath>,
    },
    /// Made at the start, for this machine's names; for local use.
    SelfSigned,
}

/// Which versions and cipher suites are spoken; the names are those of Mozilla's recommendations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsProfile {
    /// TLS 1.3 alone.
    Modern,
    /// TLS 1.2 with forward secrecy and authenticated encryption, and TLS 1.3.
    #[default]
    Intermediate,
}

/// A rule for clients that ask for one of these hosts (SNI).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedClients {
    /// Never empty.
    pub hosts: Vec<Host>,
    /// Whether these clients show certificates.
    pub clients: ClientCertificates,
}

/// Whether clients show certificates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ClientCertificates {
    /// They are not asked.
    #[default]
    Ignored,
    /// They may; a certificate that is shown must be signed by one of these authorities.
    Optional(ClientAuthorities),
    /// They must.
    Required(ClientAuthorities),
}

impl ClientCertificates {
    /// The authorities, where clients are asked for certificates.
    pub fn authorities(&self) -> Option<&ClientAuthorities> {
        match self {
            ClientCertificates::Ignored => None,
            ClientCertificates::Optional(authorities)
            | ClientCertificates::Required(authorities) => Some(authorities),
        }
    }
}

/// The authorities that certificates of clients are verified by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientAuthorities {
    /// A PEM file with their certificates.
    pub file: FilePath,
    /// Files of certificate revocation lists, PEM or DER. None: nothing has been revoked.
    pub revocation_lists: Vec<FilePath>,
}

impl ClientAuthorities {
    /// All files that are read.
    pub fn files(&self) -> impl Iterator<Item = &FilePath> {
        [&self.file].into_iter().chain(&self.revocation_lists)
    }
}
