//! Routes: conditions, processing steps, and the action.

use std::num::NonZeroU32;
use std::time::Duration;

use super::cache_control::CacheRule;
use super::coding::Coding;
use super::cors::Cors;
use super::edits::{Edits, PathEdit};
use super::error_pages::ErrorPages;
use super::file::FilePath;
use super::files::Files;
use super::host::Host;
#[cfg(doc)]
use super::listen::Listener;
use super::network::Networks;
use super::pattern::Pattern;
use super::template::Template;
use super::timeouts::Timeouts;
use super::tracing::RouteTracing;
use crate::limits;

/// A route: requests that meet all conditions get its action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Conditions.
    pub when: RouteMatch,
    /// Access rules.
    pub access: Access,
    /// Maximum size of a request body in bytes; `None` for no limit.
    pub request_body_max: Option<u64>,
    /// Error pages of the route and of the whole configuration.
    pub error_pages: ErrorPages,
    /// Timeouts, if they differ from the general ones.
    pub timeouts: Option<Timeouts>,
    /// Changes of header fields.
    pub edits: Edits,
    /// Cross-origin access; `None` to send no CORS fields.
    pub cors: Option<Cors>,
    /// `Cache-Control` rules; the first that matches a response applies.
    pub cache_control: Vec<CacheRule>,
    /// Change of a forwarded request's path.
    pub path_edit: PathEdit,
    /// Compression of responses; `None` for none.
    pub compress: Option<Compress>,
    /// Whether requests are written to the access log.
    pub log: bool,
    /// Tracing of requests.
    pub tracing: RouteTracing,
    /// Response.
    pub action: Action,
}

/// Conditions of a route; an absent one (empty, `Any`) always holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteMatch {
    /// Hosts; at least one must match.
    pub hosts: Vec<Host>,
    /// Condition on the path.
    pub path: PathMatch,
    /// Methods in upper case; one must match.
    pub methods: Vec<String>,
    /// Conditions on header fields.
    pub headers: Vec<(String, ValueMatch)>,
    /// Conditions on query parameters.
    pub query: Vec<(String, ValueMatch)>,
    /// Networks of the client.
    pub from: Option<Networks>,
    /// Scheme of the request.
    pub scheme: Option<Scheme>,
    /// Names of [`Listener`]s; one must have received the request.
    pub listeners: Vec<String>,
    /// Negated conditions: none of them may hold as a whole. Each has a condition and no `not` of its own.
    pub not: Vec<RouteMatch>,
}

/// Scheme of the URL that the client requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Without TLS.
    Http,
    /// With TLS at this server, or at a trusted proxy that reports it.
    Https,
}

impl Scheme {
    /// Name in a configuration.
    pub fn text(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }
}

impl Route {
    /// A route without conditions and with default settings.
    pub fn to(action: Action) -> Route {
        Route {
            when: RouteMatch::default(),
            access: Access::default(),
            request_body_max: Some(limits::REQUEST_BODY_MAX_DEFAULT),
            error_pages: ErrorPages::default(),
            timeouts: None,
            edits: Edits::default(),
            cors: None,
            cache_control: Vec::new(),
            path_edit: PathEdit::default(),
            compress: None,
            log: true,
            tracing: RouteTracing::default(),
            action,
        }
    }
}

/// Condition on the path of a request, without its query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PathMatch {
    /// Any path, and the `*` of `OPTIONS *`.
    #[default]
    Any,
    /// Paths with this prefix, which begins with `/`: `/p/` does not match `/p`; `/p` matches `/p`, `/p/x` and `/path`.
    Prefix(String),
    /// Exactly this path. Begins with `/`.
    Exact(String),
    /// Paths that contain a match.
    Regex(Pattern),
}

impl PathMatch {
    /// The prefix of a [`PathMatch::Prefix`]; otherwise empty.
    pub fn prefix(&self) -> &str {
        match self {
            PathMatch::Prefix(prefix) => prefix,
            PathMatch::Any | PathMatch::Exact(_) | PathMatch::Regex(_) => "",
        }
    }
}

impl PathMatch {
    /// Whether `path`, without the query, meets the condition.
    pub fn matches(&self, path: &[u8]) -> bool {
        match self {
            PathMatch::Any => true,
            PathMatch::Prefix(prefix) => path.starts_with(prefix.as_bytes()),
            PathMatch::Exact(exact) => path == exact.as_bytes(),
            PathMatch::Regex(pattern) => pattern.matches(path),
        }
    }

    /// Whether this certainly matches every path that `other` matches, except the `*` of `OPTIONS *`.
    pub fn covers(&self, other: &PathMatch) -> bool {
        match (self, other) {
            (PathMatch::Any, _) => true,
            (PathMatch::Prefix(prefix), PathMatch::Any | PathMatch::Regex(_)) => prefix == "/",
            (PathMatch::Prefix(prefix), PathMatch::Prefix(path) | PathMatch::Exact(path)) => {
                path.starts_with(prefix)
            }
            (PathMatch::Exact(path), PathMatch::Exact(other)) => path == other,
            (PathMatch::Exact(_), _) => false,
            (PathMatch::Regex(pattern), PathMatch::Exact(path)) => pattern.matches(path.as_bytes()),
            (PathMatch::Regex(pattern), PathMatch::Regex(other)) => pattern == other,
            (PathMatch::Regex(_), PathMatch::Any | PathMatch::Prefix(_)) => false,
        }
    }
}

/// Condition on a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueMatch {
    /// `*`: present.
    Present,
    /// `!`: absent.
    Absent,
    /// Exactly this value.
    Exact(String),
    /// `~…`: a value that contains a match.
    Regex(Pattern),
}

impl ValueMatch {
    /// Whether certainly every value that `other` matches also matches this.
    pub fn covers(&self, other: &ValueMatch) -> bool {
        match (self, other) {
            (ValueMatch::Present, other) => *other != ValueMatch::Absent,
            (ValueMatch::Regex(pattern), ValueMatch::Exact(value)) => {
                pattern.matches(value.as_bytes())
            }
            (ValueMatch::Absent | ValueMatch::Exact(_) | ValueMatch::Regex(_), other) => {
                self == other
            }
        }
    }
}

/// Access rules, checked in this order: network, rate, password.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Allowed networks; all if empty. Others get 403.
    pub allow: Networks,
    /// Denied networks; checked before the allowed ones.
    pub deny: Networks,
    /// Rate limit; requests above it get 429.
    pub rate_limit: Option<RateLimit>,
    /// Basic authentication (RFC 7617); requests without valid credentials get 401.
    pub basic_auth: Option<BasicAuth>,
}

/// Basic authentication, with `users`, `file` or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BasicAuth {
    /// Realm, without quotation marks, backslashes and control characters.
    pub realm: String,
    /// User names and valid password hashes (bcrypt `$2y$`, argon2id, or SHA-crypt `$5$`/`$6$`).
    pub users: Vec<(String, String)>,
    /// File with a line `name:hash` for each further user, in the format of `htpasswd`. Its content is not checked
    /// here; [`crate::value::check_password_hash`] also checks its hashes.
    pub file: Option<FilePath>,
}

/// Limits of requests per key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Key by which requests are counted.
    pub key: RateKey,
    /// Maximum rate; `None` for no limit.
    pub requests: Option<Rate>,
    /// Maximum number of concurrent requests; `None` for no limit.
    pub concurrent: Option<NonZeroU32>,
}

/// A rate with a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Number of requests.
    pub count: NonZeroU32,
    /// Period.
    pub per: Duration,
    /// Maximum number of requests beyond the even rate that are allowed at once.
    pub burst: u32,
}

/// Key by which requests are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RateKey {
    /// Requests of one client address; for IPv6, of a /64 prefix.
    Address,
    /// Requests with the same value of this header field; requests without it share a counter.
    Header(String),
    /// All requests of the route.
    Route,
}

/// Compression of responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compress {
    /// Codings in order of preference; never empty.
    pub codings: Vec<Coding>,
    /// Media types to compress, in lower case, without parameters; `text/*` is a wildcard.
    pub types: Vec<String>,
    /// Minimum size of a body to compress, in bytes.
    pub size_min: u64,
}

impl Default for Compress {
    fn default() -> Compress {
        Compress {
            codings: limits::COMPRESS_CODINGS.to_vec(),
            types: limits::COMPRESS_TYPES.map(str::to_owned).to_vec(),
            size_min: limits::COMPRESS_SIZE_MIN,
        }
    }
}

/// Response to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A fixed response.
    Respond {
        /// Status code, 200 to 599.
        status: u16,
        /// Body; empty if the status allows none (204, 205, 304).
        body: Vec<u8>,
        /// Further header fields in order: valid names, valid and trimmed values, and none that the server generates
        /// (framing, connection, date).
        headers: Vec<(String, String)>,
    },
    /// A file, in its current version.
    RespondFile {
        /// Status code, 200 to 599, that allows a body.
        status: u16,
        /// Path of the file.
        file: FilePath,
    },
    /// A redirect.
    Redirect {
        /// Status code: 301, 302, 303, 307 or 308.
        status: u16,
        /// Value of `Location`.
        location: Template,
    },
    /// A file below a directory: the request's path after the route's prefix.
    Files(Files),
    /// A synthetic response described by the query, in the syntax of httpterm.
    Synthetic,
    /// The response of a server of a group.
    Forward {
        /// Indices into [`super::Plan::upstreams`] with weights; one is chosen at random. Never empty.
        split: Vec<(usize, NonZeroU32)>,
        /// Group that gets copies of requests.
        mirror: Option<Mirror>,
    },
}

impl Action {
    /// Forwards all requests to one group.
    pub fn forward(upstream: usize) -> Action {
        Action::Forward {
            split: vec![(upstream, NonZeroU32::MIN)],
            mirror: None,
        }
    }
}

/// Copies of requests to another group; the responses are discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mirror {
    /// Index into [`super::Plan::upstreams`].
    pub upstream: usize,
    /// Share of the requests, in 1/10,000.
    pub share: u16,
}
