//! Changes that a route makes to requests and responses.

use super::rewrite::Rewrite;
use super::template::Template;

/// Changes of header fields, in this order: remove, set, add.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edits {
    /// Changes of forwarded requests.
    pub request: FieldEdits,
    /// Whether field names that contain underscores or other substitutes for hyphens are forwarded unchanged. Otherwise
    /// fields that `request` sets or removes are removed in all such spellings, and so are names that resemble framing
    /// or forwarding fields.
    pub allow_underscores: bool,
    /// Changes of responses.
    pub response: FieldEdits,
    /// Responses to which `response` applies.
    pub response_on: ResponseFilter,
    /// Fields of upstream responses to hide or refuse, before `response` is applied.
    pub upstream: UpstreamHeaders,
}

/// Fields of upstream responses that are not relayed to clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamHeaders {
    /// Fields to remove. A hidden `Date` or `Server` is replaced by this server's own.
    pub hide: Vec<String>,
    /// A response with one of these fields is refused (502).
    pub refuse: Vec<String>,
}

impl UpstreamHeaders {
    /// Whether every field is relayed.
    pub fn is_empty(&self) -> bool {
        self.hide.is_empty() && self.refuse.is_empty()
    }
}

/// Responses whose fields are changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ResponseFilter {
    /// Responses that the route generates or relays, but not errors of this server.
    #[default]
    RouteOnly,
    /// Also errors of this server.
    Always,
    /// Responses with a status in one of these ranges, inclusive, from any source.
    Statuses(Vec<(u16, u16)>),
}

/// Changes of the fields of a message. Names are valid, and never fields that the server manages (framing, connection).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldEdits {
    /// Fields to remove.
    pub remove: Vec<String>,
    /// Fields to set; existing ones are replaced.
    pub set: Vec<(String, Template)>,
    /// Fields to add to existing ones.
    pub add: Vec<(String, Template)>,
}

impl FieldEdits {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.remove.is_empty() && self.set.is_empty() && self.add.is_empty()
    }
}

/// Change of a forwarded request's path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PathEdit {
    /// Unchanged.
    #[default]
    Keep,
    /// Replaces the part that the route's path matched: a prefix, or a whole exact path. The replacement begins with
    /// `/`, and ends with `/` if the prefix does. A double slash at the joint is merged: `/api` replaced by `/` turns
    /// `/api/x` into `/x`.
    ReplacePrefix(String),
    /// Rewrite rules; the first whose pattern matches applies. Never empty. The path is compared as the client wrote
    /// it, except that dot segments, empty segments and needless percent-encodings are normalized.
    Rewrite(Vec<Rewrite>),
}
