//! What a configuration means: plain data in which every value is valid and every reference leads
//! somewhere.
//!
//! It says nothing of how: no sockets, no engine. A connection may hold a snapshot of it.

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use crate::limits;

/// Everything `onrush serve` has to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// How many cores (engine threads) to run.
    pub threads: Threads,
    /// The CPUs to pin them to, in this order, without repetition; none for all CPUs this process
    /// may use.
    pub cpus: Option<Vec<usize>>,
    /// The driver to use.
    pub io: Io,
    /// Where to accept connections; never empty, no address twice (but for port 0, which is a new
    /// one each time).
    pub listen: Vec<Listen>,
    /// What to answer; the first match in this order. Never empty. A request that none matches is
    /// answered 404.
    pub routes: Vec<Route>,
    /// The groups of servers that [`Action::Forward`] points into by index.
    pub upstreams: Vec<Upstream>,
    /// How long to wait for whom.
    pub timeouts: Timeouts,
}

/// How many cores to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threads {
    /// One for each CPU this process may use.
    #[default]
    Auto,
    /// So many.
    Count(NonZeroUsize),
}

/// Which driver the cores use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Io {
    /// Probe, and take the best that works here.
    #[default]
    Auto,
    /// epoll.
    Epoll,
    /// io_uring, or fail to start.
    IoUring,
}

impl fmt::Display for Io {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Io::Auto => "auto",
            Io::Epoll => "epoll",
            Io::IoUring => "io_uring",
        })
    }
}

/// One place to accept connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The address to bind.
    pub address: Address,
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

/// Requests that match are answered by `action`. Both conditions must hold; one that is absent
/// always does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The host the request must name.
    pub host: Option<Host>,
    /// What its path must be.
    pub path: PathMatch,
    /// How it is answered.
    pub action: Action,
}

/// A host name or IP address as it stands in a `Host` header, lower-cased and without port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Host(String);

impl Host {
    /// `name` must have been checked: see [`crate::value::parse_host`].
    pub(crate) fn new(name: &str) -> Host {
        Host(name.to_ascii_lowercase())
    }

    /// The name, in lower case; an IPv6 address in its brackets.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `host`, taken from a request without its port, is this one; letters match in either
    /// case.
    pub fn matches(&self, host: &[u8]) -> bool {
        self.0.as_bytes().eq_ignore_ascii_case(host)
    }
}

/// A condition on a request's path, without its query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathMatch {
    /// Every path, and the `*` of `OPTIONS *`.
    Any,
    /// Every path that begins with these bytes: `/p/` matches `/p/x` but not `/p`; `/p` matches
    /// `/p`, `/p/x` and `/path`. Begins with `/`.
    Prefix(String),
    /// This path and no other. Begins with `/`.
    Exact(String),
}

impl PathMatch {
    /// Whether `path`, a request's path without its query, fulfils the condition.
    pub fn matches(&self, path: &[u8]) -> bool {
        match self {
            PathMatch::Any => true,
            PathMatch::Prefix(prefix) => path.starts_with(prefix.as_bytes()),
            PathMatch::Exact(exact) => path == exact.as_bytes(),
        }
    }

    /// Whether every path that `other` matches is matched by this one too. (`/` counts as every
    /// path: the `*` of `OPTIONS *` alone does not make a route worth having.)
    pub fn covers(&self, other: &PathMatch) -> bool {
        match (self, other) {
            (PathMatch::Any, _) => true,
            (PathMatch::Prefix(prefix), PathMatch::Any) => prefix == "/",
            (PathMatch::Prefix(prefix), PathMatch::Prefix(path) | PathMatch::Exact(path)) => {
                path.starts_with(prefix)
            }
            (PathMatch::Exact(_), PathMatch::Any | PathMatch::Prefix(_)) => false,
            (PathMatch::Exact(path), PathMatch::Exact(other)) => path == other,
        }
    }
}

/// How a request is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Always the same.
    Respond {
        /// 200 to 599.
        status: u16,
        /// Empty when the status allows none (204, 205, 304).
        body: Vec<u8>,
        /// Further header fields in the order written: names are valid tokens, values valid and
        /// trimmed, and none of them is one that the server writes itself (framing, connection,
        /// date).
        headers: Vec<(String, String)>,
    },
    /// A file beneath a directory: the request's path after the route's prefix.
    Files {
        /// The directory. Whether it exists is not known here. Relative only in a plan from the
        /// command line.
        root: PathBuf,
        /// File names to try, in order, when the path is a directory. Never with a `/`.
        index: Vec<String>,
        /// Whether files and directories whose names begin with a dot are served.
        hidden: bool,
    },
    /// What the query asks for, in httpterm's language.
    Synthetic,
    /// What a server of a group answers.
    Forward {
        /// Index into [`Plan::upstreams`].
        upstream: usize,
    },
}

/// A group of servers that answer the same requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// The group's name; for a single server written in a route, its address as [`ServerAddress`]
    /// displays it.
    pub name: String,
    /// Which server takes the next request.
    pub balance: Balance,
    /// The servers; never empty, no address twice.
    pub servers: Vec<Server>,
    /// How many idle connections each core keeps to each server.
    pub connections_idle_max: usize,
}

/// Which server of a group takes the next request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    /// Each in turn, as often as its weight says.
    #[default]
    RoundRobin,
    /// By chance, as likely as its weight says.
    Random,
}

/// One member of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Where it listens.
    pub address: ServerAddress,
    /// Its share of the requests, relative to the other servers' weights; at least 1.
    pub weight: u32,
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ServerAddress {
    /// An IP address; the port is not 0.
    Ip(SocketAddr),
    /// A name still to be resolved.
    Name {
        /// A valid host name.
        host: String,
        /// Not 0.
        port: u16,
    },
    /// A Unix stream socket at this path.
    Unix(PathBuf),
}

/// As it is written in a configuration: `10.0.0.1:80`, `app.example.com:80`, `unix:/run/app.sock`.
impl fmt::Display for ServerAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerAddress::Ip(address) => address.fmt(out),
            ServerAddress::Name { host, port } => write!(out, "{host}:{port}"),
            ServerAddress::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}

/// How long to wait for whom; the defaults and their reasons are in [`limits`]. All are between
/// [`limits::TIMEOUT_MIN`] and [`limits::TIMEOUT_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For a request's complete head, from its first byte (for the first request: from accept).
    pub client_head: Duration,
    /// For more of a request's body, from the last of it.
    pub client_body: Duration,
    /// For the first byte of the next request on a connection kept open.
    pub client_idle: Duration,
    /// For the client to take more of an answer, from the last it took.
    pub client_send: Duration,
    /// For a server to accept a connection.
    pub connect: Duration,
    /// For the first byte of a server's answer, from the last byte of the request.
    pub upstream_first_byte: Duration,
    /// For more of a server's answer, from the last of it, and for the server to take more of a
    /// request.
    pub upstream_body: Duration,
    /// How long an unused connection to a server is kept.
    pub upstream_idle: Duration,
    /// For requests in flight to finish, once asked to stop.
    pub drain: Duration,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            client_head: limits::CLIENT_HEAD_TIMEOUT,
            client_body: limits::CLIENT_BODY_TIMEOUT,
            client_idle: limits::CLIENT_IDLE_TIMEOUT,
            client_send: limits::CLIENT_SEND_TIMEOUT,
            connect: limits::CONNECT_TIMEOUT,
            upstream_first_byte: limits::UPSTREAM_FIRST_BYTE_TIMEOUT,
            upstream_body: limits::UPSTREAM_BODY_TIMEOUT,
            upstream_idle: limits::UPSTREAM_IDLE_TIMEOUT,
            drain: limits::DRAIN_TIMEOUT,
        }
    }
}

/// What one line of the command line can serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OneLiner {
    /// `onrush serve DIR`: the files beneath a directory.
    Files(PathBuf),
    /// `--respond STATUS[:BODY]`: see [`crate::value::parse_respond`].
    Respond {
        /// 200 to 599.
        status: u16,
        /// Empty when the status allows none.
        body: Vec<u8>,
    },
    /// `--synthetic`.
    Synthetic,
    /// `--forward URL`, once or more: see [`crate::address::parse_server_url`].
    Forward(Vec<ServerAddress>),
}

impl Plan {
    /// The plan of a command line without a file: every request is answered by `what`, on `listen`
    /// or, when that is empty, on [`limits::LISTEN_DEFAULT`]. The rest is at its defaults; set the
    /// fields that other flags say.
    ///
    /// # Panics
    ///
    /// When [`OneLiner::Forward`] comes without any server.
    pub fn one_liner(what: OneLiner, listen: Vec<Listen>) -> Plan {
        let mut upstreams = Vec::new();
        let action = match what {
            OneLiner::Files(root) => Action::Files {
                root,
                index: limits::index_default(),
                hidden: false,
            },
            OneLiner::Respond { status, body } => Action::Respond {
                status,
                body,
                headers: Vec::new(),
            },
            OneLiner::Synthetic => Action::Synthetic,
            OneLiner::Forward(addresses) => {
                upstreams.push(Upstream::of(addresses));
                Action::Forward { upstream: 0 }
            }
        };
        Plan {
            threads: Threads::default(),
            cpus: None,
            io: Io::default(),
            listen: if listen.is_empty() {
                vec![Listen::default()]
            } else {
                listen
            },
            routes: vec![Route {
                host: None,
                path: PathMatch::Any,
                action,
            }],
            upstreams,
            timeouts: Timeouts::default(),
        }
    }
}

impl Default for Listen {
    fn default() -> Listen {
        Listen {
            address: Address::Tcp(limits::LISTEN_DEFAULT),
        }
    }
}

impl Upstream {
    /// A group without a name of its own: named after its first server, everything else at its
    /// default.
    pub(crate) fn of(addresses: Vec<ServerAddress>) -> Upstream {
        let first = addresses.first().expect("a group has at least one server");
        Upstream {
            name: first.to_string(),
            balance: Balance::default(),
            servers: addresses
                .into_iter()
                .map(|address| Server {
                    address,
                    weight: limits::WEIGHT_DEFAULT,
                })
                .collect(),
            connections_idle_max: limits::CONNECTIONS_IDLE_MAX_DEFAULT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(path: &str) -> PathMatch {
        PathMatch::Prefix(path.to_owned())
    }

    fn exact(path: &str) -> PathMatch {
        PathMatch::Exact(path.to_owned())
    }

    #[test]
    fn a_one_liner_listens_on_the_loopback_unless_told_otherwise() {
        let plan = Plan::one_liner(OneLiner::Synthetic, Vec::new());
        assert_eq!(
            plan.listen,
            [Listen {
                address: Address::Tcp(([127, 0, 0, 1], 8080).into())
            }]
        );
        let told = Listen {
            address: Address::Unix("/run/x.sock".into()),
        };
        assert_eq!(
            Plan::one_liner(OneLiner::Synthetic, vec![told.clone()]).listen,
            [told]
        );
    }

    #[test]
    fn a_forwarding_one_liner_has_one_group_of_all_its_servers() {
        let servers = [1, 2].map(|last| ServerAddress::Ip(([10, 0, 0, last], 80).into()));
        let plan = Plan::one_liner(OneLiner::Forward(servers.to_vec()), Vec::new());
        assert_eq!(plan.routes[0].action, Action::Forward { upstream: 0 });
        assert_eq!(plan.upstreams[0].name, "10.0.0.1:80");
        assert!(
            plan.upstreams[0]
                .servers
                .iter()
                .map(|server| &server.address)
                .eq(&servers)
        );
    }

    #[test]
    fn a_prefix_matches_by_bytes_and_an_exact_path_only_itself() {
        assert!(
            prefix("/p").matches(b"/p")
                && prefix("/p").matches(b"/path")
                && !prefix("/p/").matches(b"/p")
        );
        assert!(exact("/p").matches(b"/p") && !exact("/p").matches(b"/p/"));
        assert!(PathMatch::Any.matches(b"*"));
    }

    #[test]
    fn a_path_covers_what_it_always_matches() {
        for (covering, covered) in [
            (PathMatch::Any, exact("/x")),
            (PathMatch::Any, PathMatch::Any),
            (prefix("/"), PathMatch::Any),
            (prefix("/a"), prefix("/ab/")),
            (prefix("/a"), exact("/a")),
            (exact("/a"), exact("/a")),
        ] {
            assert!(covering.covers(&covered), "{covering:?} covers {covered:?}");
        }
        for (one, other) in [
            (prefix("/a/"), prefix("/a")),
            (prefix("/a"), PathMatch::Any),
            (exact("/a"), prefix("/a")),
            (exact("/a"), exact("/b")),
            (exact("/"), PathMatch::Any),
        ] {
            assert!(!one.covers(&other), "{one:?} does not cover {other:?}");
        }
    }

    #[test]
    fn hosts_match_in_either_case() {
        assert!(Host::new("Static.Example.com").matches(b"sTATIC.example.COM"));
        assert!(!Host::new("example.com").matches(b"example.org"));
    }

    #[test]
    fn addresses_display_as_they_are_written() {
        assert_eq!(
            Address::Tcp("[::1]:80".parse().expect("an address")).to_string(),
            "[::1]:80"
        );
        assert_eq!(ServerAddress::Unix("/a b".into()).to_string(), "unix:/a b");
    }
}
