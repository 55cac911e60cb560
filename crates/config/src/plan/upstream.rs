//! Groups of servers: who they are, who of them takes a request, and what happens when one fails.

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use super::file::FilePath;
use super::health::{Eject, EjectOn, Health};
use crate::limits;

/// A group of servers that respond to the same requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// The group's name; for a single server written in a route, its address as [`ServerAddress`]
    /// displays it.
    pub name: String,
    /// Which server takes the next request.
    pub balance: Balance,
    /// The servers; never empty, no address twice.
    pub servers: Vec<Server>,
    /// How long a server that has come back takes to get its full share.
    pub slow_start: Option<Duration>,
    /// A client stays with its server by a cookie of this name.
    pub sticky: Option<Sticky>,
    /// Requests that wait when every server has all the connections it may have; more of them are
    /// refused.
    pub queue_max: usize,
    /// Looks at servers.
    pub health: Option<Health>,
    /// What real requests say of servers; none when nothing takes them out.
    pub eject: Option<Eject>,
    /// What is tried again.
    pub retries: Retries,
    /// How many idle connections each core keeps to each server.
    pub connections_idle_max: usize,
    /// When an idle connection may be used.
    pub reuse: Reuse,
    /// Idle connections each core keeps open to each server before they are needed.
    pub connections_ready: usize,
    /// What is spoken with the servers.
    pub protocol: UpstreamProtocol,
    /// TLS towards the servers.
    pub tls: Option<UpstreamTls>,
    /// The header that tells servers who the client is.
    pub proxy_protocol: Option<ProxyVersion>,
    /// The longest pause before a name that could not be resolved is asked for again.
    pub resolve_retry: Duration,
}

impl Upstream {
    /// A group of `servers` with everything else at its default.
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
            connections_ready: 0,
            protocol: UpstreamProtocol::default(),
            tls: None,
            proxy_protocol: None,
            resolve_retry: limits::RESOLVE_RETRY_DEFAULT,
        }
    }

    /// A group without a name of its own: named after its first server, everything else at its
    /// default.
    pub(crate) fn of(addresses: Vec<ServerAddress>) -> Upstream {
        let first = addresses.first().expect("a group has at least one server");
        let name = first.to_string();
        Upstream::new(name, addresses.into_iter().map(Server::at).collect())
    }

    /// The same with TLS. Its name says so: plain HTTP to the same server is another group.
    pub(crate) fn of_tls(addresses: Vec<ServerAddress>) -> Upstream {
        let plain = Upstream::of(addresses);
        Upstream {
            name: format!("https://{}", plain.name),
            tls: Some(UpstreamTls::default()),
            ..plain
        }
    }
}

/// What is spoken with the servers of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpstreamProtocol {
    /// HTTP/1.1: a connection carries one request at a time.
    #[default]
    Http1,
    /// HTTP/2 (RFC 9113): requests of many clients are streams of the same connections. With TLS the server has to agree
    /// (ALPN); without, it is known to speak it.
    Http2(Multiplexing),
}

/// How requests share connections of HTTP/2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multiplexing {
    /// Streams that are open on one connection at a time; fewer where the server allows fewer.
    pub streams_max: u32,
    /// Connections that each core has to each server; when all are full, requests wait.
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

/// Which server of a group takes the next request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    /// Each in turn, as often as its weight says.
    #[default]
    RoundRobin,
    /// By chance, as likely as its weight says.
    Random,
    /// Of two by chance the one with fewer requests in flight.
    PowerOfTwo,
    /// The one with the fewest requests in flight.
    LeastConnections,
    /// The same for the same key (consistent, with bounded load).
    Hash(HashKey),
    /// Of two by chance the one that is expected to respond sooner.
    PeakEwma,
    /// The first in the order written that may have another connection.
    First,
}

impl Balance {
    /// All algorithms by their names in a configuration; the hash is `None`, because its key is another value.
    pub(crate) const NAMED: [(&'static str, Option<Balance>); 7] = [
        ("round_robin", Some(Balance::RoundRobin)),
        ("random", Some(Balance::Random)),
        ("power_of_two", Some(Balance::PowerOfTwo)),
        ("least_connections", Some(Balance::LeastConnections)),
        ("hash", None),
        ("peak_ewma", Some(Balance::PeakEwma)),
        ("first", Some(Balance::First)),
    ];

    /// Whether all requests with the same key get the same server while nothing is in flight.
    pub fn is_settled(&self) -> bool {
        matches!(self, Balance::Hash(_) | Balance::First)
    }
}

/// Its name, and its key if it has one.
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

/// What a consistent hash is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HashKey {
    /// The client's address.
    Address,
    /// The request's path, without its query.
    Path,
    /// The first header field of this name.
    Header(String),
    /// The cookie of this name.
    Cookie(String),
}

/// One member of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Where it listens.
    pub address: ServerAddress,
    /// Its share of the requests, relative to the other servers' weights; at least 1.
    pub weight: u32,
    /// Whether it gets requests only when no other server can take them.
    pub backup: bool,
    /// Connections with a request in flight it may have, of all cores together.
    pub connections_max: Option<NonZeroU32>,
    /// How many addresses of a name are used; 1 to [`limits::ADDRESSES_MAX_MAX`].
    pub addresses_max: u32,
}

impl Server {
    /// A server with everything else at its default.
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

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ServerAddress {
    /// An IP address; the port is not 0.
    Ip(SocketAddr),
    /// A name still to be resolved; each of its addresses is a server.
    Name {
        /// A valid host name.
        host: String,
        /// Not 0.
        port: u16,
    },
    /// A name of the kind `_http._tcp.example.com`, whose SRV records (RFC 2782) give hosts, ports
    /// and weights.
    Srv(String),
    /// A Unix stream socket at this path.
    Unix(PathBuf),
}

impl ServerAddress {
    /// Whether it may turn out to be several servers.
    pub fn may_be_several(&self) -> bool {
        match self {
            ServerAddress::Name { .. } | ServerAddress::Srv(_) => true,
            ServerAddress::Ip(_) | ServerAddress::Unix(_) => false,
        }
    }
}

/// As it is written in a configuration: `10.0.0.1:80`, `app.example.com:80`,
/// `srv:_http._tcp.example.com`, `unix:/run/app.sock`.
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

/// A cookie that names the server which has set it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sticky {
    /// A valid cookie name.
    pub cookie: String,
    /// How long the client keeps it; none for as long as its session.
    pub age_max: Option<Duration>,
}

/// What is tried again, on another server where there is one. Never once a byte of a response went
/// to the client; and what is not idempotent only when nothing of it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retries {
    /// Attempts after the first.
    pub count: u8,
    /// Failures that are worth another attempt.
    pub on: RetryOn,
    /// Statuses that are (only of responses to idempotent requests).
    pub statuses: Vec<u16>,
    /// Attempts more than requests, in percent: above that, failures are passed on.
    pub budget: u8,
}

/// Failures that are worth another attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryOn {
    /// No connection.
    pub connect: bool,
    /// The connection ended or was reset before a response.
    pub reset: bool,
    /// No response in time.
    pub timeout: bool,
    /// What came was no response.
    pub garbage: bool,
}

impl Retries {
    /// Whether anything is tried again at all.
    pub(crate) fn are_made(&self) -> bool {
        let on = self.on;
        let on_failure = on.connect || on.reset || on.timeout || on.garbage;
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
                garbage: false,
            },
            statuses: Vec::new(),
            budget: limits::RETRY_BUDGET_DEFAULT,
        }
    }
}

/// When an idle connection to a server may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reuse {
    /// Whenever there is one.
    #[default]
    Always,
    /// For the first request of a client only when that could be repeated, should the server close
    /// just then.
    Safe,
    /// Each request has a connection of its own.
    Never,
}

/// TLS towards servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamTls {
    /// Whose certificates are believed.
    pub verify: Verify,
    /// The name that is asked for and looked for in the certificate; none for the server's own.
    pub name: Option<String>,
    /// The certificate and key that are shown to servers that ask.
    pub certificate: Option<(FilePath, FilePath)>,
}

/// Whose certificates are believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// Those of the authorities that this system trusts.
    #[default]
    System,
    /// Those of the authorities in this PEM file.
    File(FilePath),
    /// All of them.
    Nothing,
}

/// Versions of the PROXY protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyVersion {
    /// One line of text.
    V1,
    /// Binary.
    V2,
}
