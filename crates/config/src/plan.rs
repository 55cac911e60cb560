//! What a configuration means: plain data in which every value is valid and every reference leads
//! somewhere.
//!
//! It says nothing of how: no sockets, no engine. A connection may hold a snapshot of it.

mod access_log;
mod admin;
mod cache_control;
mod clients;
mod coding;
mod cors;
mod edits;
mod error_log;
mod error_pages;
mod health;
mod host;
mod listen;
mod pattern;
mod process;
mod protocol;
mod request_limits;
mod rewrite;
mod route;
mod template;
mod timeouts;
mod tracing;
mod upstream;

mod file;
mod files;
mod network;

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use crate::limits;

pub use access_log::{AccessLog, LogField, LogFormat, LogPiece, LogSelect, LogTarget};
pub use admin::Admin;
pub use cache_control::{CacheRule, OfServer};
pub use clients::Clients;
pub use coding::Coding;
pub use cors::Cors;
pub use edits::{Edits, FieldEdits, PathEdit, ResponsesEdited, UpstreamHeaders};
pub use error_log::{ErrorFormat, ErrorLog, LogLevel};
pub use error_pages::{ErrorPage, ErrorPages, PageContent};
pub use file::FilePath;
pub use files::Files;
pub use health::{Check, Eject, EjectOn, Health};
pub use host::Host;
pub use listen::{
    Address, Certificate, ClientAuthorities, ClientCertificates, Listen, Misdirected, NamedClients,
    Tls, TlsProfile,
};
pub use network::{Network, Networks};
pub use pattern::Pattern;
pub use process::{Account, Landlock, Process, RunAs};
pub use protocol::{FarEnd, HttpVersions, Memcached, Protocol, Responder, Transport};
pub use request_limits::RequestLimits;
pub(crate) use rewrite::RewritePiece;
pub use rewrite::{Rewrite, TargetPart};
pub use route::{
    Access, Action, BasicAuth, Compress, Mirror, PathMatch, Rate, RateKey, RateLimit, Route,
    Scheme, ValueMatch, When,
};
pub use template::{Piece, Template, Variable};
pub use timeouts::Timeouts;
pub use tracing::{Collector, Parents, RouteTracing, Sample, Tracing};
pub use upstream::{
    Balance, HashKey, Multiplexing, ProxyVersion, Retries, RetryOn, Reuse, Server, ServerAddress,
    Sticky, Upstream, UpstreamProtocol, UpstreamTls, Verify,
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
    /// Whether cores ask the kernel again and again instead of sleeping until it wakes them; each takes a whole CPU.
    pub busy_poll: bool,
    /// Where to accept connections; never empty, no address twice (but for port 0, which is a new
    /// one each time).
    pub listen: Vec<Listen>,
    /// How to respond; the first match in this order. Empty only where nothing listens for HTTP. A request that none matches is
    /// refused with 404.
    pub routes: Vec<Route>,
    /// The groups of servers that [`Action::Forward`] points into by index.
    pub upstreams: Vec<Upstream>,
    /// What is said to servers about clients, and who is believed about them.
    pub forwarded: Forwarded,
    /// Bytes of the body of a request that no route matches; none for no limit.
    pub request_body_max: Option<u64>,
    /// What such a request is told.
    pub error_pages: ErrorPages,
    /// How large the heads of requests may be.
    pub request_limits: RequestLimits,
    /// How many connections clients may have.
    pub clients: Clients,
    /// How long to wait for whom.
    pub timeouts: Timeouts,
    /// How the running server is looked into and changed.
    pub admin: Admin,
    /// Who the process is once it is ready.
    pub process: Process,
    /// What is written of each request.
    pub access_log: Option<AccessLog>,
    /// What is said of the server itself.
    pub error_log: ErrorLog,
    /// What is recorded of requests as traces; none for nothing.
    pub tracing: Option<Tracing>,
}

/// What is said to servers about clients, and who is believed about them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarded {
    /// Proxies before us whose X-Forwarded-* and Forwarded fields are true. What others say is
    /// dropped.
    pub trust: Networks,
    /// The fields in which trusted proxies describe the client.
    pub read: ForwardingFields,
    /// Whether servers are told by X-Forwarded-For, -Proto and -Host.
    pub x_forwarded: bool,
    /// Whether servers are told by Forwarded (RFC 7239).
    pub forwarded: bool,
}

/// Fields that describe the client of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ForwardingFields {
    /// X-Forwarded-For, -Proto and -Host.
    #[default]
    XForwarded,
    /// Forwarded (RFC 7239).
    Forwarded,
}

impl Default for Forwarded {
    fn default() -> Forwarded {
        Forwarded {
            trust: Networks::default(),
            read: ForwardingFields::default(),
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
    /// `--echo ADDRESS` and `--sink ADDRESS`: the places to listen say all, and none of them is one of HTTP.
    FarEnds,
}

/// A route asks for a listener that there is none of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownListener {
    /// The place of the route among all, from 1.
    pub route: usize,
    /// What it asks for.
    pub name: String,
}

impl fmt::Display for UnknownListener {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "[[route]] number {} asks for the listener {:?}, which would not be there: expected an address of that name, or those of the file",
            self.route, self.name
        )
    }
}

impl std::error::Error for UnknownListener {}

impl Plan {
    /// The files that are read once, when the plan is put in force: of users, of error pages, and of fields for a collector.
    pub fn files_read(&self) -> impl Iterator<Item = &FilePath> {
        let logins = self
            .routes
            .iter()
            .filter_map(|route| route.access.basic_auth.as_ref());
        let of_routes = self.routes.iter().map(|route| &route.error_pages);
        let pages = of_routes
            .chain([&self.error_pages])
            .flat_map(|pages| &pages.pages);
        let pages = pages.filter_map(|page| match &page.content {
            Some(PageContent::File { file, .. }) => Some(file),
            Some(PageContent::Body { .. }) | None => None,
        });
        let tracing = self.tracing.iter();
        let fields = tracing.filter_map(|tracing| tracing.collector.headers_file.as_ref());
        let logins = logins.filter_map(|login| login.file.as_ref());
        logins.chain(pages).chain(fields)
    }

    /// Listens there, whatever it said before.
    ///
    /// # Errors
    /// When a route asks for a listener that is none of these; nothing has changed then.
    pub fn listen_at(&mut self, listen: Vec<Listen>) -> Result<(), UnknownListener> {
        for (route, number) in self.routes.iter().zip(1..) {
            let conditions = [&route.when].into_iter().chain(&route.when.not);
            let mut wanted = conditions.flat_map(|when| &when.listeners);
            let is_there = |wanted: &&String| listen.iter().any(|listen| listen.name == **wanted);
            if let Some(missing) = wanted.find(|wanted| !is_there(wanted)) {
                return Err(UnknownListener {
                    route: number,
                    name: missing.clone(),
                });
            }
        }
        self.listen = listen;
        Ok(())
    }

    /// The plan of a command line without a file: every request gets `what`, on `listen`
    /// or, when that is empty, on [`limits::LISTEN_DEFAULT`]. The rest is at its defaults; set the
    /// fields that other flags say.
    ///
    /// # Panics
    ///
    /// When [`OneLiner::Forward`] or [`OneLiner::ForwardTls`] comes without any server.
    pub fn one_liner(what: OneLiner, listen: Vec<Listen>) -> Plan {
        let mut upstreams = Vec::new();
        let action = match what {
            OneLiner::Files(root) => Some(Action::Files(Files::beneath(root))),
            OneLiner::Respond { status, body } => Some(Action::Respond {
                status,
                body,
                headers: Vec::new(),
            }),
            OneLiner::Synthetic => Some(Action::Synthetic),
            OneLiner::Forward(addresses) => {
                upstreams.push(Upstream::of(addresses));
                Some(Action::forward(0))
            }
            OneLiner::ForwardTls(addresses) => {
                upstreams.push(Upstream::of_tls(addresses));
                Some(Action::forward(0))
            }
            OneLiner::FarEnds => None,
        };
        Plan {
            threads: Threads::default(),
            cpus: None,
            io: Io::default(),
            accept: Accept::default(),
            busy_poll: false,
            listen: if listen.is_empty() {
                vec![Listen::default()]
            } else {
                listen
            },
            routes: action.map(Route::to).into_iter().collect(),
            upstreams,
            forwarded: Forwarded::default(),
            request_body_max: Some(limits::REQUEST_BODY_MAX_DEFAULT),
            error_pages: ErrorPages::default(),
            request_limits: RequestLimits::default(),
            clients: Clients::default(),
            timeouts: Timeouts::default(),
            admin: Admin::Default,
            process: Process::default(),
            access_log: None,
            error_log: ErrorLog::default(),
            tracing: None,
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
