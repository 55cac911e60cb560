//! The meaning of a configuration: plain data in which every value is valid and every reference resolves.

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

pub use access_log::{AccessLog, LogField, LogFilter, LogFormat, LogPiece, LogTarget};
pub use admin::Admin;
pub use cache_control::{CacheRule, ServerCacheControl};
pub use clients::Clients;
pub use coding::Coding;
pub use cors::Cors;
pub use edits::{Edits, FieldEdits, PathEdit, ResponseFilter, UpstreamHeaders};
pub use error_log::{ErrorFormat, ErrorLog, LogLevel};
pub use error_pages::{ErrorPage, ErrorPages, PageContent};
pub use file::FilePath;
pub use files::Files;
pub use health::{Check, Eject, EjectOn, Health};
pub use host::Host;
pub use listen::{
    Address, Certificate, ClientAuthorities, ClientCertificates, Listener, MisdirectedRequests,
    SniClientRule, Tls, TlsProfile,
};
pub use network::{Network, Networks};
pub use pattern::Pattern;
pub use process::{Account, Landlock, Process, RunAs};
pub use protocol::{HttpVersions, LoadTarget, Memcached, Protocol, Responder, Transport};
pub use request_limits::RequestLimits;
pub(crate) use rewrite::RewritePiece;
pub use rewrite::{Rewrite, TargetPart};
pub use route::{
    Access, Action, BasicAuth, Compress, Mirror, PathMatch, Rate, RateKey, RateLimit, Route,
    RouteMatch, Scheme, ValueMatch,
};
pub use template::{Piece, Template, Variable};
pub use timeouts::Timeouts;
pub use tracing::{Collector, ParentTrust, RouteTracing, SamplingRatio, Tracing};
pub use upstream::{
    Balance, HashKey, Multiplexing, ProxyVersion, Retries, RetryOn, Reuse, Server, ServerAddress,
    Sticky, Upstream, UpstreamProtocol, UpstreamTls, Verify,
};

/// Configuration of `onrush serve`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Number of cores (engine threads).
    pub threads: Threads,
    /// CPUs to pin the cores to, in this order, without repetition; `None` for all CPUs that this process may use.
    pub cpus: Option<Vec<usize>>,
    /// I/O driver.
    pub io: Io,
    /// How connections are assigned to cores.
    pub accept: Accept,
    /// Whether cores poll the kernel continuously instead of sleeping; each then uses a whole CPU.
    pub busy_poll: bool,
    /// Listeners; never empty. Addresses are unique, except that port 0 may be repeated.
    pub listen: Vec<Listener>,
    /// Routes; the first match wins, and a request without a match gets 404. Empty only if no listener is for HTTP.
    pub routes: Vec<Route>,
    /// Groups of servers; [`Action::Forward`] refers to them by index.
    pub upstreams: Vec<Upstream>,
    /// Forwarding fields, from trusted proxies and to servers.
    pub forwarded: Forwarded,
    /// Maximum size in bytes of the body of a request without a route; `None` for no limit.
    pub request_body_max: Option<u64>,
    /// Error pages of requests without a route.
    pub error_pages: ErrorPages,
    /// Limits of request heads.
    pub request_limits: RequestLimits,
    /// Limits of client connections.
    pub clients: Clients,
    /// Timeouts of routes without their own.
    pub timeouts: Timeouts,
    /// Admin interface.
    pub admin: Admin,
    /// User and Landlock restriction of the process once it is ready.
    pub process: Process,
    /// Access log; `None` for none.
    pub access_log: Option<AccessLog>,
    /// Error log.
    pub error_log: ErrorLog,
    /// Trace export; `None` for none.
    pub tracing: Option<Tracing>,
}

/// Forwarding fields, from trusted proxies and to servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarded {
    /// Proxies whose forwarding fields are trusted. Forwarding fields of other clients are removed.
    pub trust: Networks,
    /// Fields in which trusted proxies describe the client.
    pub read: ForwardingFields,
    /// Whether requests to servers get X-Forwarded-For, -Proto and -Host.
    pub x_forwarded: bool,
    /// Whether requests to servers get Forwarded (RFC 7239).
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

/// Number of cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threads {
    /// One per CPU that this process may use.
    #[default]
    Auto,
    /// A fixed number.
    Count(NonZeroUsize),
}

/// I/O driver of the cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Io {
    /// The best driver that works on this machine.
    #[default]
    Auto,
    /// epoll.
    Epoll,
    /// io_uring; the start fails if it does not work.
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

/// How new connections are assigned to cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Accept {
    /// [`Accept::Cpu`] if there is one core per CPU that receives packets, otherwise [`Accept::Hash`].
    #[default]
    Auto,
    /// The core on the CPU that receives the first packet; the start fails if that is not possible.
    Cpu,
    /// By a hash of addresses and ports.
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

/// Content served by a command line without a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OneLiner {
    /// `onrush serve DIR`: the files beneath a directory.
    Files(PathBuf),
    /// `--respond STATUS[:BODY]`: see [`crate::value::parse_respond`].
    Respond {
        /// Status code, 200 to 599.
        status: u16,
        /// Body; empty if the status allows none.
        body: Vec<u8>,
    },
    /// `--synthetic`.
    Synthetic,
    /// `--forward URL`, once or more: see [`crate::address::parse_server_url`].
    Forward(Vec<ServerAddress>),
    /// `--forward https://…`, once or more.
    ForwardTls(Vec<ServerAddress>),
    /// `--echo ADDRESS` and `--sink ADDRESS`: only listeners, none of them for HTTP.
    LoadTargets,
}

/// A route refers to a listener that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownListener {
    /// Number of the route, from 1.
    pub route: usize,
    /// Name of the listener.
    pub name: String,
}

impl fmt::Display for UnknownListener {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "[[route]] number {} names the listener {:?}, which does not exist with these addresses: expected an address with that name, or the [[listen]] of the file",
            self.route, self.name
        )
    }
}

impl std::error::Error for UnknownListener {}

impl Plan {
    /// Files that are read once, when the plan is put in force: users, error pages, and fields for a collector.
    pub fn startup_files(&self) -> impl Iterator<Item = &FilePath> {
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

    /// Replaces the listeners.
    ///
    /// # Errors
    /// If a route refers to a listener that is not among them; the plan is then unchanged.
    pub fn replace_listeners(&mut self, listen: Vec<Listener>) -> Result<(), UnknownListener> {
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

    /// Plan of a command line without a file: `what` for every request, on `listen` or, if that is empty, on
    /// [`limits::LISTEN_DEFAULT`]. The rest has default values; the caller sets the fields that other flags define.
    ///
    /// # Panics
    ///
    /// If [`OneLiner::Forward`] or [`OneLiner::ForwardTls`] has no server.
    pub fn one_liner(what: OneLiner, listen: Vec<Listener>) -> Plan {
        let mut upstreams = Vec::new();
        let action = match what {
            OneLiner::Files(root) => Some(Action::Files(Files::in_directory(root))),
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
            OneLiner::LoadTargets => None,
        };
        Plan {
            threads: Threads::default(),
            cpus: None,
            io: Io::default(),
            accept: Accept::default(),
            busy_poll: false,
            listen: if listen.is_empty() {
                vec![Listener::default()]
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
    fn one_liner_listens_on_loopback_by_default() {
        let plan = Plan::one_liner(OneLiner::Synthetic, Vec::new());
        assert_eq!(
            plan.listen,
            [Listener::plain(Address::Tcp(([127, 0, 0, 1], 8080).into()))]
        );
        let told = Listener::plain(Address::Unix("/run/x.sock".into()));
        assert_eq!(
            Plan::one_liner(OneLiner::Synthetic, vec![told.clone()]).listen,
            [told]
        );
    }

    #[test]
    fn forward_one_liner_groups_all_servers() {
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
    fn prefix_and_exact_paths_match_bytewise() {
        assert!(
            prefix("/p").matches(b"/p")
                && prefix("/p").matches(b"/path")
                && !prefix("/p/").matches(b"/p")
        );
        assert!(exact("/p").matches(b"/p") && !exact("/p").matches(b"/p/"));
        assert!(PathMatch::Any.matches(b"*"));
    }

    #[test]
    fn path_match_covers_narrower_matches() {
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
    fn wildcard_host_matches_all_subdomains() {
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
    fn host_matching_ignores_case() {
        assert!(Host::new("Static.Example.com").matches(b"sTATIC.example.COM"));
        assert!(!Host::new("example.com").matches(b"example.org"));
    }

    #[test]
    fn address_display_matches_config_syntax() {
        assert_eq!(
            Address::Tcp("[::1]:80".parse().expect("an address")).to_string(),
            "[::1]:80"
        );
        assert_eq!(ServerAddress::Unix("/a b".into()).to_string(), "unix:/a b");
    }
}
