//! What a configuration means: plain data in which every value is valid and every reference leads
//! somewhere.
//!
//! It says nothing of how: no sockets, no engine. A connection may hold a snapshot of it.

mod coding;
mod edits;
mod health;
mod listen;
mod route;
mod template;
mod upstream;

mod file;
mod network;

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use crate::limits;

pub use coding::Coding;
pub use edits::{AnswersEdited, Edits, FieldEdits, PathEdit};
pub use file::FilePath;
pub use health::{Check, Eject, EjectOn, Health};
pub use listen::{Address, Certificate, ClientCertificates, Listen, Tls, TlsProfile};
pub use network::{Network, Networks};
pub use route::{
    Access, Action, BasicAuth, Compress, Host, Mirror, PathMatch, Pattern, Rate, RateKey,
    RateLimit, Route, Scheme, ValueMatch, When,
};
pub use template::{Piece, Template, Variable};
pub use upstream::{
    Balance, HashKey, ProxyVersion, Retries, RetryOn, Reuse, Server, ServerAddress, Sticky,
    Upstream, UpstreamTls, Verify,
};

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
    /// Which core gets a connection.
    pub accept: Accept,
    /// Where to accept connections; never empty, no address twice (but for port 0, which is a new
    /// one each time).
    pub listen: Vec<Listen>,
    /// What to answer; the first match in this order. Never empty. A request that none matches is
    /// answered 404.
    pub routes: Vec<Route>,
    /// The groups of servers that [`Action::Forward`] points into by index.
    pub upstreams: Vec<Upstream>,
    /// What is said to servers about clients, and who is believed about them.
    pub forwarded: Forwarded,
    /// How long to wait for whom.
    pub timeouts: Timeouts,
}

/// What is said to servers about clients, and who is believed about them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarded {
    /// Proxies before us whose X-Forwarded-* and Forwarded fields are true. What others say is
    /// dropped.
    pub trust: Networks,
    /// Whether servers are told by X-Forwarded-For, -Proto and -Host.
    pub x_forwarded: bool,
    /// Whether servers are told by Forwarded (RFC 7239).
    pub forwarded: bool,
}

impl Default for Forwarded {
    fn default() -> Forwarded {
        Forwarded {
            trust: Networks::default(),
            x_forwarded: true,
            forwarded: false,
        }
    }
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

/// Which core gets a new connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Accept {
    /// By CPU where each CPU that takes packets has a core of its own, and each core such a CPU; otherwise by hash.
    #[default]
    Auto,
    /// The one on the CPU that takes its first packet, or fail to start.
    Cpu,
    /// Any, by a hash of addresses and ports.
    Hash,
}

impl fmt::Display for Accept {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Accept::Auto => "auto",
            Accept::Cpu => "cpu",
            Accept::Hash => "hash",
        })
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
    /// For a TLS handshake, and the header of the PROXY protocol.
    pub tls_handshake: Duration,
    /// For a server to have room for a request.
    pub queue: Duration,
    /// For a whole forwarded request, from its head to the last byte of its answer; none for no
    /// such bound.
    pub request: Option<Duration>,
    /// For more bytes in a tunnel, in either direction.
    pub tunnel_idle: Duration,
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
            tls_handshake: limits::TLS_HANDSHAKE_TIMEOUT,
            queue: limits::QUEUE_TIMEOUT,
            request: None,
            tunnel_idle: limits::TUNNEL_IDLE_TIMEOUT,
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
    /// `--forward https://…`, once or more.
    ForwardTls(Vec<ServerAddress>),
}

impl Plan {
    /// The plan of a command line without a file: every request is answered by `what`, on `listen`
    /// or, when that is empty, on [`limits::LISTEN_DEFAULT`]. The rest is at its defaults; set the
    /// fields that other flags say.
    ///
    /// # Panics
    ///
    /// When [`OneLiner::Forward`] or [`OneLiner::ForwardTls`] comes without any server.
    pub fn one_liner(what: OneLiner, listen: Vec<Listen>) -> Plan {
        let mut upstreams = Vec::new();
        let action = match what {
            OneLiner::Files(root) => Action::Files {
                root: root.into(),
                index: limits::index_default(),
                hidden: false,
                precompressed: Vec::new(),
            },
            OneLiner::Respond { status, body } => Action::Respond {
                status,
                body,
                headers: Vec::new(),
            },
            OneLiner::Synthetic => Action::Synthetic,
            OneLiner::Forward(addresses) => {
                upstreams.push(Upstream::of(addresses));
                Action::forward(0)
            }
            OneLiner::ForwardTls(addresses) => {
                upstreams.push(Upstream {
                    tls: Some(UpstreamTls::default()),
                    ..Upstream::of(addresses)
                });
                Action::forward(0)
            }
        };
        Plan {
            threads: Threads::default(),
            cpus: None,
            io: Io::default(),
            accept: Accept::default(),
            listen: if listen.is_empty() {
                vec![Listen::default()]
            } else {
                listen
            },
            routes: vec![Route::to(action)],
            upstreams,
            forwarded: Forwarded::default(),
            timeouts: Timeouts::default(),
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
            [Listen::plain(Address::Tcp(([127, 0, 0, 1], 8080).into()))]
        );
        let told = Listen::plain(Address::Unix("/run/x.sock".into()));
        assert_eq!(
            Plan::one_liner(OneLiner::Synthetic, vec![told.clone()]).listen,
            [told]
        );
    }

    #[test]
    fn a_forwarding_one_liner_has_one_group_of_all_its_servers() {
        let servers = [1, 2].map(|last| ServerAddress::Ip(([10, 0, 0, last], 80).into()));
        let plan = Plan::one_liner(OneLiner::Forward(servers.to_vec()), Vec::new());
        assert_eq!(plan.routes[0].action, Action::forward(0));
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
    fn a_wildcard_stands_for_every_name_below() {
        let below = Host::new("*.Example.com");
        for (host, matches) in [
            ("a.example.com", true),
            ("A.B.EXAMPLE.COM", true),
            ("example.com", false),
            (".example.com", false),
            ("aexample.com", false),
        ] {
            assert_eq!(below.matches(host.as_bytes()), matches, "{host}");
        }
        assert!(below.covers(&Host::new("a.example.com")));
        assert!(below.covers(&Host::new("*.b.example.com")));
        assert!(!below.covers(&Host::new("*.com")));
        assert!(!Host::new("a.example.com").covers(&below));
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
