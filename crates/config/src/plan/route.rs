//! Routes: conditions, what is done on the way, and the response.

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
use super::listen::Listen;
use super::network::Networks;
use super::pattern::Pattern;
use super::template::Template;
use super::timeouts::Timeouts;
use super::tracing::RouteTracing;
use crate::limits;

/// Requests that fulfil all conditions get what `action` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Which requests.
    pub when: When,
    /// Who of them is let in.
    pub access: Access,
    /// Bytes of their bodies; none for no limit.
    pub request_body_max: Option<u64>,
    /// What is sent with errors, those of the whole configuration included.
    pub error_pages: ErrorPages,
    /// How long to wait for whom, when that is not what holds for all.
    pub timeouts: Option<Timeouts>,
    /// Changes of header fields on their way.
    pub edits: Edits,
    /// Which other sites' scripts may read responses; none for nothing about that.
    pub cors: Option<Cors>,
    /// What responses say of being kept by caches: the first rule that is for a response says it.
    pub cache_control: Vec<CacheRule>,
    /// How a forwarded request's path changes.
    pub path_edit: PathEdit,
    /// Whether responses are compressed, and which.
    pub compress: Option<Compress>,
    /// Whether its requests are in the access log, where there is one.
    pub log: bool,
    /// What is recorded of its requests as traces, where anything is.
    pub tracing: RouteTracing,
    /// The response that its requests get.
    pub action: Action,
}

/// The conditions of a route; one that is absent (empty, `Any`) always holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct When {
    /// The request must name one of them.
    pub hosts: Vec<Host>,
    /// What its path must be.
    pub path: PathMatch,
    /// Its method must be one of them; upper case.
    pub methods: Vec<String>,
    /// Header fields that it must have.
    pub headers: Vec<(String, ValueMatch)>,
    /// Parameters that its query must have.
    pub query: Vec<(String, ValueMatch)>,
    /// Where the client must be.
    pub from: Option<Networks>,
    /// What the client must have asked by.
    pub scheme: Option<Scheme>,
    /// Names of [`Listen`]s: it must have come by one of them.
    pub listeners: Vec<String>,
    /// None of these may hold as a whole. They have some condition each, and no `not` themselves.
    pub not: Vec<When>,
}

/// How a client asks: the scheme of the URL that it follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Without TLS.
    Http,
    /// With TLS, here or, where they are trusted to say so, at a proxy before us.
    Https,
}

impl Scheme {
    /// As it is written.
    pub fn text(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }
}

impl Route {
    /// A route without conditions and without anything on the way.
    pub fn to(action: Action) -> Route {
        Route {
            when: When::default(),
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

/// A condition on a request's path, without its query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PathMatch {
    /// Every path, and the `*` of `OPTIONS *`.
    #[default]
    Any,
    /// Every path that begins with these bytes: `/p/` matches `/p/x` but not `/p`; `/p` matches
    /// `/p`, `/p/x` and `/path`. Begins with `/`.
    Prefix(String),
    /// This path and no other. Begins with `/`.
    Exact(String),
    /// Every path in which this is found.
    Regex(Pattern),
}

impl PathMatch {
    /// What a path begins with that matches, when that is the condition; else nothing.
    pub fn prefix(&self) -> &str {
        match self {
            PathMatch::Prefix(prefix) => prefix,
            PathMatch::Any | PathMatch::Exact(_) | PathMatch::Regex(_) => "",
        }
    }
}

impl PathMatch {
    /// Whether `path`, a request's path without its query, fulfils the condition.
    pub fn matches(&self, path: &[u8]) -> bool {
        match self {
            PathMatch::Any => true,
            PathMatch::Prefix(prefix) => path.starts_with(prefix.as_bytes()),
            PathMatch::Exact(exact) => path == exact.as_bytes(),
            PathMatch::Regex(pattern) => pattern.matches(path),
        }
    }

    /// Whether every path that `other` matches is certainly matched by this one too. (`/` counts as
    /// every path: the `*` of `OPTIONS *` alone does not make a route worth having.)
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

/// A condition on a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueMatch {
    /// `*`: there is one.
    Present,
    /// `!`: there is none.
    Absent,
    /// This one.
    Exact(String),
    /// `~…`: one in which this is found.
    Regex(Pattern),
}

impl ValueMatch {
    /// Whether every value that `other` matches is certainly matched by this one too.
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

/// Who is let in. What is refused is refused in this order: network, rate, password.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// These clients only; everybody when there are none. Others get 403.
    pub allow: Networks,
    /// Not these; looked at first.
    pub deny: Networks,
    /// How much of it; what is too much gets 429.
    pub rate_limit: Option<RateLimit>,
    /// A name and a password (RFC 7617); without them 401.
    pub basic_auth: Option<BasicAuth>,
}

/// Names and passwords; there are users, or a file, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BasicAuth {
    /// What browsers show: without quotes, backslashes and control characters.
    pub realm: String,
    /// Names and the hashes of their passwords (bcrypt `$2y$`, argon2id, or SHA-crypt `$5$`/`$6$`);
    /// each is known to be one.
    pub users: Vec<(String, String)>,
    /// A file with a line `name:hash` for each further user, as `htpasswd` writes it. Nothing of it is
    /// known here; [`crate::value::check_password_hash`] is for its hashes, too.
    pub file: Option<FilePath>,
}

/// How many requests a key may make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Whose requests are counted together.
    pub key: RateKey,
    /// So many requests in `per`; none for no such limit.
    pub requests: Option<Rate>,
    /// Requests at a time; none for no such limit.
    pub concurrent: Option<NonZeroU32>,
}

/// A number of requests in a time, and how many of them may come at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How many.
    pub count: NonZeroU32,
    /// In how long.
    pub per: Duration,
    /// Requests beyond the even rate that are let through at once.
    pub burst: u32,
}

/// Whose requests are counted together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RateKey {
    /// Those of one client address; of IPv6 the first 64 bits.
    Address,
    /// Those with the same value of this header field; requests without it count together.
    Header(String),
    /// All of the route.
    Route,
}

/// Compression of responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compress {
    /// What is offered, the server's favourite first; never empty.
    pub codings: Vec<Coding>,
    /// Media types that are worth it, lower case, without parameters; `text/*` stands for all of
    /// its kind.
    pub types: Vec<String>,
    /// Shorter bodies are not worth it.
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

/// The response that a request gets.
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
    /// Always the same file, as it is by then.
    RespondFile {
        /// 200 to 599, and one that allows a body.
        status: u16,
        /// The file.
        file: FilePath,
    },
    /// Go elsewhere.
    Redirect {
        /// 301, 302, 303, 307 or 308.
        status: u16,
        /// Where to.
        location: Template,
    },
    /// A file beneath a directory: the request's path after the route's prefix.
    Files(Files),
    /// What the query asks for, in httpterm's language.
    Synthetic,
    /// What a server of a group responds with.
    Forward {
        /// Indices into [`super::Plan::upstreams`] with their weights: by chance, one of them.
        /// Never empty.
        split: Vec<(usize, NonZeroU32)>,
        /// Another group that gets a copy.
        mirror: Option<Mirror>,
    },
}

impl Action {
    /// All to one group.
    pub fn forward(upstream: usize) -> Action {
        Action::Forward {
            split: vec![(upstream, NonZeroU32::MIN)],
            mirror: None,
        }
    }
}

/// Copies of requests, whose responses are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mirror {
    /// Index into [`super::Plan::upstreams`].
    pub upstream: usize,
    /// How many of 10,000 requests.
    pub share: u16,
}
