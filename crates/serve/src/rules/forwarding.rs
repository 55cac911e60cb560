//! Edits of forwarded requests by a route.

use onrush_config::plan::{self, PathEdit, PathMatch, Rewrite};
use onrush_http::forwarded::{describes_client, is_forwarding_field};
use onrush_http::hop::{is_disguised, is_hop_by_hop};

use crate::observe::trace::limits::TRACE_FIELDS_BYTES_MAX;
use crate::routing::variables::VARIABLE_BYTES_MAX;
use crate::rules::edits::{Edits, NameComparison};
use crate::rules::host::HostRule;

/// Maximum number of bytes by which a response's head may grow without edits of the route: added fields, and two bytes
/// per line of a server that writes neither the space after the colon nor the CR.
pub(crate) const GROWTH_MAX: usize = 640;

/// Edits of a route's forwarded requests.
#[derive(Debug)]
pub(crate) struct ForwardingRules {
    pub(crate) x_forwarded: bool,
    pub(crate) forwarded: bool,
    pub(crate) host: HostRule,
    pub(crate) path: PathRule,
    /// Whether field names pass that could be mistaken for others: see [`is_disguised`].
    spelling: NameComparison,
    pub(crate) edits: Edits,
    /// Whether the edits remove a field that is added here.
    pub(crate) edits_remove_added: bool,
    /// A head grows to at most `factor` times its length, plus twice its host, plus `bytes_fixed`.
    pub(crate) factor: usize,
    pub(crate) bytes_fixed: usize,
}

/// The path for the server.
#[derive(Debug)]
pub(crate) enum PathRule {
    /// The client's path.
    Client,
    /// The client's path with its route's prefix replaced.
    Prefix(String),
    /// A fixed path, for a route that matches a single path.
    Whole(String),
    /// The result of the first of these rules that matches.
    Rewrite(Vec<Rewrite>),
}

/// The fields that are added to a request here.
const ADDED_FIELDS: [&str; 7] = [
    "forwarded",
    "traceparent",
    "tracestate",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
];

impl ForwardingRules {
    pub(crate) fn new(route: &plan::Route, forwarded: &plan::Forwarded) -> Self {
        let spelling = match route.edits.allow_underscores {
            true => NameComparison::Exact,
            false => NameComparison::Loose,
        };
        let mut edits = Edits::new(&route.edits.request, spelling);
        let host = HostRule::take(&mut edits);
        let path = match &route.path_edit {
            PathEdit::Keep => PathRule::Client,
            PathEdit::ReplacePrefix(by) => PathRule::replacing(&route.when.path, by),
            PathEdit::Rewrite(rules) => PathRule::Rewrite(rules.clone()),
        };
        let (variables, bytes) = edits.template_size();
        let (host_variables, host_bytes) = host.template_size();
        Self {
            x_forwarded: forwarded.x_forwarded,
            forwarded: forwarded.forwarded,
            host,
            spelling,
            edits_remove_added: edits.drops_one_of(&ADDED_FIELDS),
            // The head itself, and once more its whole length for each place that may repeat any part of it: variables,
            // and in Forwarded the host reported by a proxy.
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

    /// Whether a trailer with this name is passed to a server. A trailer is dropped if a field of its name would be,
    /// because servers may merge trailers into the fields.
    pub(crate) fn pass_trailer(&self, name: &[u8]) -> bool {
        str::from_utf8(name).is_ok_and(|name| {
            !is_hop_by_hop(name)
                && !is_untrusted_field(name, self, false)
                && !self.is_ambiguous_name(name)
                && !self.edits.drops(name)
        })
    }

    /// Whether a name could be mistaken for another one, and the route does not allow that.
    #[inline]
    pub(crate) fn is_ambiguous_name(&self, name: &str) -> bool {
        self.spelling == NameComparison::Loose && is_disguised(name)
    }

    /// Whether the request ID is used.
    pub(crate) fn needs_request_id(&self) -> bool {
        self.edits.needs_request_id() || self.host.needs_request_id()
    }
}

impl PathRule {
    /// Replaces with `by` the part of the path that `path` matches.
    fn replacing(path: &PathMatch, by: &str) -> Self {
        match path {
            // If the prefix ends with a slash, so does its replacement: `/api/` by `/v2` turns `/api/x` into `/v2/x`.
            PathMatch::Prefix(prefix) if prefix.ends_with('/') && !by.ends_with('/') => {
                PathRule::Prefix(format!("{by}/"))
            }
            PathMatch::Prefix(_) | PathMatch::Any => PathRule::Prefix(by.to_owned()),
            PathMatch::Exact(_) => PathRule::Whole(by.to_owned()),
            PathMatch::Regex(_) => PathRule::Client,
        }
    }

    /// Largest growth of a path in bytes, beyond repetitions.
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

    /// Number of additional times that the path may occur in the result.
    fn factor(&self) -> usize {
        match self {
            PathRule::Client | PathRule::Prefix(_) | PathRule::Whole(_) => 0,
            // In a query each byte may be percent-encoded.
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

/// Whether a field that describes the client is removed: the peer is not trusted, or the proxy writes its own value.
#[inline]
pub(crate) fn is_untrusted_field(name: &str, rules: &ForwardingRules, is_trusted: bool) -> bool {
    if !is_trusted {
        return describes_client(name);
    }
    is_forwarding_field(name)
        && match name.len() {
            9 => rules.forwarded,
            _ => rules.x_forwarded,
        }
}
