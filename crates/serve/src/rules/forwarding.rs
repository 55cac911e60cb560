//! What a route changes in the requests that it forwards.

use onrush_config::plan::{self, PathEdit, PathMatch, Rewrite};
use onrush_http::forwarded::{describes_client, is_forwarding_field};
use onrush_http::hop::{is_disguised, is_hop_by_hop};

use crate::observe::trace::limits::TRACE_FIELDS_BYTES_MAX;
use crate::routing::variables::VARIABLE_BYTES_MAX;
use crate::rules::edits::{Edits, Spelling};
use crate::rules::host::HostRule;

/// Bytes by which a response's head may grow on its way without a route's edits: by fields of our own, and by two in each
/// line of a server that writes neither the space behind the colon nor the CR.
pub(crate) const GROWTH_MAX: usize = 640;

/// What changes in the requests of a route that are forwarded.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) x_forwarded: bool,
    pub(crate) forwarded: bool,
    pub(crate) host: HostRule,
    pub(crate) path: PathRule,
    /// Whether names pass that could be taken for others: see [`is_disguised`].
    spelling: Spelling,
    pub(crate) edits: Edits,
    /// Whether the edits take a field that is added here.
    pub(crate) edits_drop_ours: bool,
    /// A head grows to at most so many times its length, twice its host and `bytes_fixed`.
    pub(crate) factor: usize,
    pub(crate) bytes_fixed: usize,
}

/// What the server gets to see as path.
#[derive(Debug)]
pub(crate) enum PathRule {
    /// What the client asked for.
    Client,
    /// That with this in the place of the route's prefix.
    Prefix(String),
    /// This, in the place of the only path that the route matches.
    Whole(String),
    /// What the first of these makes of it that applies.
    Rewrite(Vec<Rewrite>),
}

/// The fields that are added to a request here.
const OURS: [&str; 7] = [
    "forwarded",
    "traceparent",
    "tracestate",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
];

impl Rules {
    pub(crate) fn new(route: &plan::Route, forwarded: &plan::Forwarded) -> Self {
        let spelling = match route.edits.keeps_underscores {
            true => Spelling::Exact,
            false => Spelling::Loose,
        };
        let mut edits = Edits::new(&route.edits.request, spelling);
        let host = HostRule::take(&mut edits);
        let path = match &route.path_edit {
            PathEdit::Keep => PathRule::Client,
            PathEdit::ReplacePrefix(by) => PathRule::replacing(&route.when.path, by),
            PathEdit::Rewrite(rules) => PathRule::Rewrite(rules.clone()),
        };
        let (variables, bytes) = edits.extent();
        let (host_variables, host_bytes) = host.extent();
        Self {
            x_forwarded: forwarded.x_forwarded,
            forwarded: forwarded.forwarded,
            host,
            spelling,
            edits_drop_ours: edits.drops_one_of(&OURS),
            // The head itself, and once more the whole of it for each place where any part of it may stand again: the
            // variables, and in Forwarded the host that a proxy told of.
            factor: 1
                + variables
                + host_variables
                + usize::from(forwarded.forwarded)
                + path.factor(),
            bytes_fixed: GROWTH_MAX
                + TRACE_FIELDS_BYTES_MAX
                + bytes
                + host_bytes
                + path.bytes()
                + (variables + host_variables) * VARIABLE_BYTES_MAX,
            path,
            edits,
        }
    }

    /// Whether a trailer of this name passes to a server. Not one whose field would not pass: servers do put trailers and
    /// fields into one place.
    pub(crate) fn pass_trailer(&self, name: &[u8]) -> bool {
        str::from_utf8(name).is_ok_and(|name| {
            !is_hop_by_hop(name)
                && !is_untrue(name, self, false)
                && !self.is_mistakable(name)
                && !self.edits.drops(name)
        })
    }

    /// Whether a name could be taken for another one, and that matters.
    #[inline]
    pub(crate) fn is_mistakable(&self, name: &str) -> bool {
        self.spelling == Spelling::Loose && is_disguised(name)
    }

    /// Whether the request's number is written.
    pub(crate) fn needs_request_id(&self) -> bool {
        self.edits.needs_request_id() || self.host.needs_request_id()
    }
}

impl PathRule {
    /// `by` comes in the place of what `path` matches, where that is a part of it.
    fn replacing(path: &PathMatch, by: &str) -> Self {
        match path {
            // Where the prefix ends at a slash, what comes in its place does so too: `/api/` by `/v2` makes `/v2/x` of
            // `/api/x`.
            PathMatch::Prefix(prefix) if prefix.ends_with('/') && !by.ends_with('/') => {
                PathRule::Prefix(format!("{by}/"))
            }
            PathMatch::Prefix(_) | PathMatch::Any => PathRule::Prefix(by.to_owned()),
            PathMatch::Exact(_) => PathRule::Whole(by.to_owned()),
            PathMatch::Regex(_) => PathRule::Client,
        }
    }

    /// By how much a path grows at most.
    fn bytes(&self) -> usize {
        match self {
            PathRule::Client => 0,
            PathRule::Prefix(by) | PathRule::Whole(by) => by.len(),
            PathRule::Rewrite(rules) => {
                let bytes = rules.iter().map(|rule| rule.extent().2);
                bytes.max().unwrap_or(0)
            }
        }
    }

    /// How often the path may stand in what comes of it, beyond once.
    fn factor(&self) -> usize {
        match self {
            PathRule::Client | PathRule::Prefix(_) | PathRule::Whole(_) => 0,
            // In a query each byte may be encoded.
            PathRule::Rewrite(rules) => {
                let times = rules.iter().map(|rule| {
                    let (in_path, in_query, _) = rule.extent();
                    in_path + 3 * in_query
                });
                times.max().unwrap_or(0)
            }
        }
    }
}

/// Whether a field of the request describes its client and does not pass: because the peer is not trusted, or because
/// the proxy writes its own value.
#[inline]
pub(crate) fn is_untrue(name: &str, rules: &Rules, is_trusted: bool) -> bool {
    if !is_trusted {
        return describes_client(name);
    }
    is_forwarding_field(name)
        && match name.len() {
            9 => rules.forwarded,
            _ => rules.x_forwarded,
        }
}
