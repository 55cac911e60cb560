//! Groups of servers: balancing, connections and retries.

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use super::file::FilePath;
use super::health::{Eject, EjectOn, Health};
use crate::limits;

/// A group of servers that serve the same requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Name of the group; for a single server in a route, its address as [`ServerAddress`] displays it.
    pub name: String,
    /// Load-balancing algorithm.
    pub balance: Balance,
    /// Servers; never empty, and without duplicate addresses.
    pub servers: Vec<Server>,
    /// Time in which a server that has recovered reaches its full share of requests.
    pub slow_start: Option<Duration>,
    /// Session persistence by cookie.
    pub sticky: Option<Sticky>,
    /// Maximum number of requests that wait when all servers are at their connection limit; further ones are refused.
    pub queue_max: usize,
    /// Active health checks.
    pub health: Option<Health>,
    /// Ejection by the outcome of requests; `None` for none.
    pub eject: Option<Eject>,
    /// Retry policy.
    pub retries: Retries,
    /// Maximum number of idle connections of each core to each server.
    pub connections_idle_max: usize,
    /// When an idle connection may be reused.
    pub reuse: Reuse,
    /// Number of connections that each core opens to each server in advance.
    pub preconnect: usize,
    /// HTTP version towards the servers.
    pub protocol: UpstreamProtocol,
    /// TLS towards the servers.
    pub tls: Option<UpstreamTls>,
    /// PROXY protocol header sent to servers.
    pub proxy_protocol: Option<ProxyVersion>,
    /// Maximum pause between queries for a name that does not resolve.
    pub resolve_retry: Duration,
}

impl Upstream {
    /// A group with default settings.
    pub fn new(name: String, servers: Vec<Server>) -> Upstream {
        Upstream {
            name,
            balance: Balance::default(),
            servers,
            slow_start: None,
            sticky: None,
            queue_max: limits::QUEUE_MAX_DEFAULT,
            health: None,
            eject: Some(Eject::on(EjectOn::Connections)),
            retries: Retries::default(),
            connections_idle_max: limits::CONNECTIONS_IDLE_MAX_DEFAULT,
            reuse: Reuse::default(),
            preconnect: 0,
            protocol: UpstreamProtocol::default(),
            tls: None,
            proxy_protocol: None,
            resolve_retry: limits::RESOLVE_RETRY_DEFAULT,
        }
    }

    /// A group with default settings, named after its first server.
    pub(crate) fn of(addresses: Vec<ServerAddress>) -> Upstream {
        let first = addresses.first().expect("a group has at least one server");
        let name = first.to_string();
        Upstream::new(name, addresses.into_iter().map(Server::at).collect())
    }

    /// As [`Upstream::of`], with TLS. The name differs, because plain HTTP to the same server is another group.
    pub(crate) fn of_tls(addresses: Vec<ServerAddress>) -> Upstream {
        let plain = Upstream::of(addresses);
        Upstream {
            name: format!("https://{}", plain.name),
            tls: Some(UpstreamTls::default()),
            ..plain
        }
    }
}

/// HTTP version towards the servers of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpstreamProtocol {
    /// HTTP/1.1: one request at a time per connection.
    #[default]
    Http1,
    /// HTTP/2 (RFC 9113): requests of many clients share connections. With TLS the server must select it by ALPN; in
    /// clear text it is used by prior knowledge.
    Http2(Multiplexing),
}

/// Limits of HTTP/2 connections to servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multiplexing {
    /// Maximum number of concurrent streams per connection; the server may allow fewer.
    pub streams_max: u32,
    /// Maximum number of connections of each core to each server; requests wait when all are full.
    pub connections_shared_max: u32,
}

impl Default for Multiplexing {
    fn default() -> Multiplexing {
        Multiplexing {
            streams_max: limits::STREAMS_MAX_DEFAULT,
            connections_shared_max: limits::CONNECTIONS_SHARED_MAX_DEFAULT,
        }
    }
}

/// Load-balancing algorithm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    /// In turn, by weight.
    #[default]
    RoundRobin,
    /// At random, by weight.
    Random,
    /// The server with fewer requests in flight out of two random ones.
    PowerOfTwo,
    /// Fewest requests in flight.
    LeastConnections,
    /// Consistent hash of a key, with bounded load.
    Hash(HashKey),
    /// The server with the lower expected latency out of two random ones.
    PeakEwma,
    /// The first server, in order, that is below its connection limit.
    First,
}

impl Balance {
    /// Names in a configuration; `None` for the hash, whose key is a separate setting.
    pub(crate) const NAMED: [(&'static str, Option<Balance>); 7] = [
        ("round_robin", Some(Balance::RoundRobin)),
        ("random", Some(Balance::Random)),
        ("power_of_two", Some(Balance::PowerOfTwo)),
        ("least_connections", Some(Balance::LeastConnections)),
        ("hash", None),
        ("peak_ewma", Some(Balance::PeakEwma)),
        ("first", Some(Balance::First)),
    ];

    /// Whether requests with the same key get the same server while no requests are in flight.
    pub fn is_deterministic(&self) -> bool {
        matches!(self, Balance::Hash(_) | Balance::First)
    }
}

/// Formats the name, and the key if there is one.
impl fmt::Display for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Balance::Hash(key) = self {
            return match key {
                HashKey::Address => f.write_str("hash of the address"),
                HashKey::Path => f.write_str("hash of the path"),
                HashKey::Header(name) => write!(f, "hash of the header {name}"),
                HashKey::Cookie(name) => write!(f, "hash of the cookie {name}"),
            };
        }
        let named = Balance::NAMED.iter();
        let mut named = named.filter(|(_, it)| it.as_ref() == Some(self));
        f.write_str(named.next().expect("each without a key has a name").0)
    }
}

/// Key of the consistent hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HashKey {
    /// Client address.
    Address,
    /// Path of the request, without the query.
    Path,
    /// The first header field of this name.
    Header(String),
    /// A cookie of this name.
    Cookie(String),
}

/// Server of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Address.
    pub address: ServerAddress,
    /// Weight relative to the other servers; at least 1.
    pub weight: u32,
    /// Whether it is used only when no other server can take the request.
    pub backup: bool,
    /// Maximum number of connections with a request in flight, over all cores.
    pub connections_max: Option<NonZeroU32>,
    /// Maximum number of addresses of a name; 1 to [`limits::ADDRESSES_MAX_MAX`].
    pub addresses_max: u32,
}

impl Server {
    /// A server with default settings.
    pub fn at(address: ServerAddress) -> Server {
        Server {
            address,
            weight: limits::WEIGHT_DEFAULT,
            backup: false,
            connections_max: None,
            addresses_max: limits::ADDRESSES_MAX_DEFAULT,
        }
    }
}

/// Address of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ServerAddress {
    /// An IP address; the port is not 0.
    Ip(SocketAddr),
    /// A name to resolve; each of its addresses is a server.
    Name {
        /// Valid host name.
        host: String,
        /// Port, not 0.
        port: u16,
    },
    /// A name such as `_http._tcp.example.com`, whose SRV records (RFC 2782) give hosts, ports and weights.
    Srv(String),
    /// A Unix stream socket at this path.
    Unix(PathBuf),
}

impl ServerAddress {
    /// Whether it may resolve to several servers.
    pub fn is_resolved_by_name(&self) -> bool {
        match self {
            ServerAddress::Name { .. } | ServerAddress::Srv(_) => true,
            ServerAddress::Ip(_) | ServerAddress::Unix(_) => false,
        }
    }
}

/// Formats as in a configuration: `10.0.0.1:80`, `app.example.com:80`, `srv:_http._tcp.example.com`,
/// `unix:/run/app.sock`.
impl fmt::Display for ServerAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerAddress::Ip(address) => address.fmt(out),
            ServerAddress::Name { host, port } => write!(out, "{host}:{port}"),
            ServerAddress::Srv(name) => write!(out, "srv:{name}"),
            ServerAddress::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}

/// Session persistence: a cookie identifies the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sticky {
    /// Valid cookie name.
    pub cookie: String,
    /// Maximum age; `None` for a session cookie.
    pub age_max: Option<Duration>,
}

/// Retry policy. A request is never retried after a byte of the response was sent to the client; a request that is not
/// idempotent is retried only if none of it was sent to the server. Another server is preferred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retries {
    /// Maximum number of retries.
    pub count: u8,
    /// Failures that cause a retry.
    pub on: RetryOn,
    /// Statuses that cause a retry of an idempotent request.
    pub statuses: Vec<u16>,
    /// Retry budget, as a percentage of the requests; beyond it failures are passed on.
    pub budget: u8,
}

/// Failures that cause a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryOn {
    /// No connection.
    pub connect: bool,
    /// The connection was closed or reset before a response.
    pub reset: bool,
    /// Timeout before a response.
    pub timeout: bool,
    /// Invalid response.
    pub invalid_response: bool,
}

impl Retries {
    /// Whether retries are possible.
    pub(crate) fn are_enabled(&self) -> bool {
        let on = self.on;
        let on_failure = on.connect || on.reset || on.timeout || on.invalid_response;
        self.count > 0 && (on_failure || !self.statuses.is_empty())
    }
}

impl Default for Retries {
    fn default() -> Retries {
        Retries {
            count: limits::RETRIES_DEFAULT,
            on: RetryOn {
                connect: true,
                reset: true,
                timeout: false,
                invalid_response: false,
            },
            statuses: Vec::new(),
            budget: limits::RETRY_BUDGET_DEFAULT,
        }
    }
}

/// When an idle connection to a server may be reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reuse {
    /// Always.
    #[default]
    Always,
    /// Except for a client's first request that cannot be retried, since the server may be closing the connection.
    Safe,
    /// Never: each request gets a new connection.
    Never,
}

/// TLS settings towards servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamTls {
    /// Trusted certificate authorities.
    pub verify: Verify,
    /// Name for SNI and verification; `None` for the server's own.
    pub name: Option<String>,
    /// Client certificate and key.
    pub certificate: Option<(FilePath, FilePath)>,
}

/// Trusted certificate authorities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// Authorities of the system.
    #[default]
    System,
    /// Authorities in this PEM file.
    File(FilePath),
    /// No verification.
    Insecure,
}

/// Versions of the PROXY protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyVersion {
    /// Text.
    V1,
    /// Binary.
    V2,
}
