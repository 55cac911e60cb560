//! Listeners: addresses, and the layers between the socket and HTTP.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::file::FilePath;
use super::host::Host;
use super::network::Networks;
use super::protocol::Protocol;
use crate::limits;

/// A listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Name in routes, metrics and logs: the configured one, or the address. Unique except for addresses with port 0.
    pub name: String,
    /// Address to bind.
    pub address: Address,
    /// TLS, if enabled.
    pub tls: Option<Tls>,
    /// Clients whose connections must begin with a PROXY protocol header (version 1 or 2). Others must not send one.
    pub proxy_protocol: Option<Networks>,
    /// Application protocol. Without HTTP there are neither routes nor PROXY protocol.
    pub protocol: Protocol,
}

impl Listener {
    /// A listener for plain HTTP.
    pub fn plain(address: Address) -> Listener {
        Listener {
            name: address.to_string(),
            address,
            tls: None,
            proxy_protocol: None,
            protocol: Protocol::default(),
        }
    }

    /// Whether the kernel chooses the port.
    pub fn has_ephemeral_port(&self) -> bool {
        match &self.address {
            Address::Tcp(address) => address.port() == 0,
            Address::Unix(_) => false,
        }
    }

    /// Whether the listener accepts HTTP requests.
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

impl Default for Listener {
    fn default() -> Listener {
        Listener::plain(Address::Tcp(limits::LISTEN_DEFAULT))
    }
}

/// Address to bind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// TCP over IPv4 or IPv6. With port 0 the kernel chooses a port.
    Tcp(SocketAddr),
    /// A Unix stream socket at this path.
    Unix(PathBuf),
}

/// Formats as in a configuration: `127.0.0.1:80`, `[::]:80`, `unix:/run/onrush.sock`.
impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(out),
            Address::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}

/// TLS settings of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// Certificates, selected by SNI; the first is the default. Never empty.
    pub certificates: Vec<Certificate>,
    /// TLS versions and cipher suites.
    pub profile: TlsProfile,
    /// Whether clients present certificates.
    pub clients: ClientCertificates,
    /// Response to requests for hosts of another certificate.
    pub misdirected: MisdirectedRequests,
    /// Different rules about client certificates for certain host names (SNI).
    pub names: Vec<SniClientRule>,
}

impl Tls {
    /// Certificate authorities of all rules.
    pub fn authorities(&self) -> impl Iterator<Item = &ClientAuthorities> {
        let named = self.names.iter().map(|rule| &rule.clients);
        let all = [&self.clients].into_iter().chain(named);
        all.filter_map(ClientCertificates::authorities)
    }

    /// Default settings with a certificate that is generated at the start.
    pub fn self_signed() -> Tls {
        Tls::with(vec![Certificate::SelfSigned])
    }

    /// Default settings with at least one certificate.
    pub fn with(certificates: Vec<Certificate>) -> Tls {
        Tls {
            certificates,
            profile: TlsProfile::default(),
            clients: ClientCertificates::default(),
            misdirected: MisdirectedRequests::default(),
            names: Vec::new(),
        }
    }
}

/// Response to a request whose host is covered by another certificate than that of its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MisdirectedRequests {
    /// 421 (RFC 9110, 15.5.20).
    #[default]
    Refuse,
    /// The response of its route.
    Serve,
}

/// A certificate chain and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Certificate {
    /// PEM files. Their existence and contents are not checked here.
    Files {
        /// Certificate chain, the server's own certificate first.
        certificate: FilePath,
        /// Private key.
        key: FilePath,
        /// OCSP response in DER to staple.
        staple: Option<FilePath>,
    },
    /// Self-signed, generated at the start for this machine's names; for local use.
    SelfSigned,
}

/// TLS versions and cipher suites, named as in Mozilla's recommendations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsProfile {
    /// TLS 1.3 only.
    Modern,
    /// TLS 1.2 with forward secrecy and authenticated encryption, and TLS 1.3.
    #[default]
    Intermediate,
}

/// Rule for clients that request one of these hosts (SNI).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SniClientRule {
    /// Host names; never empty.
    pub hosts: Vec<Host>,
    /// Whether these clients present certificates.
    pub clients: ClientCertificates,
}

/// Whether clients present certificates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ClientCertificates {
    /// Not requested.
    #[default]
    Ignored,
    /// Requested; a certificate that is presented must be valid.
    Optional(ClientAuthorities),
    /// Required.
    Required(ClientAuthorities),
}

impl ClientCertificates {
    /// Certificate authorities, if certificates are requested.
    pub fn authorities(&self) -> Option<&ClientAuthorities> {
        match self {
            ClientCertificates::Ignored => None,
            ClientCertificates::Optional(authorities)
            | ClientCertificates::Required(authorities) => Some(authorities),
        }
    }
}

/// Certificate authorities of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientAuthorities {
    /// PEM file with the certificates of the authorities.
    pub file: FilePath,
    /// Files of certificate revocation lists, PEM or DER.
    pub revocation_lists: Vec<FilePath>,
}

impl ClientAuthorities {
    /// All files of the authorities.
    pub fn files(&self) -> impl Iterator<Item = &FilePath> {
        [&self.file].into_iter().chain(&self.revocation_lists)
    }
}
