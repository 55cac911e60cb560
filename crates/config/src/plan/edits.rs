//! What a route changes in requests and responses.

use super::rewrite::Rewrite;
use super::template::Template;

/// Changes of header fields, in this order: remove, set, add.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edits {
    /// Of forwarded requests.
    pub request: FieldEdits,
    /// Whether names with underscores, or other marks for hyphens, pass as they are. Otherwise what `request` replaces and
    /// removes goes in all these spellings, and so do names that could pass for framing or forwarding fields.
    pub keeps_underscores: bool,
    /// Of responses of the route.
    pub response: FieldEdits,
    /// Which of them.
    pub response_on: ResponsesEdited,
    /// Fields of upstream responses to hide or to refuse, before `response` edits them.
    pub upstream: UpstreamHeaders,
}

/// Fields of upstream responses that do not pass to clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamHeaders {
    /// Fields to remove. A hidden `Date` or `Server` is replaced by this server's own.
    pub hide: Vec<String>,
    /// A response with one of these fields is refused (502).
    pub refuse: Vec<String>,
}

impl UpstreamHeaders {
    /// Whether every field passes.
    pub fn is_empty(&self) -> bool {
        self.hide.is_empty() && self.refuse.is_empty()
    }
}

/// Which responses have their fields edited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ResponsesEdited {
    /// What the route responds with itself or relays; not the errors of this server.
    #[default]
    OfRoute,
    /// Those errors as well.
    Always,
    /// Those with a status in one of these ranges, both ends included, whoever makes them.
    Statuses(Vec<(u16, u16)>),
}

/// Changes of the fields of one message. Names are valid, and none is one that the server manages
/// (framing, connection).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldEdits {
    /// These go.
    pub remove: Vec<String>,
    /// These are replaced, or come if they were not there.
    pub set: Vec<(String, Template)>,
    /// These come in addition.
    pub add: Vec<(String, Template)>,
}

impl FieldEdits {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.remove.is_empty() && self.set.is_empty() && self.add.is_empty()
    }
}

/// How a forwarded request's path changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PathEdit {
    /// Not.
    #[default]
    Keep,
    /// What the route's path matched (a prefix, or all of an exact path) is replaced by this, which
    /// begins with `/` and ends with one if the prefix does. Where it ends with a `/` and the rest begins
    /// with one, there is one of them: `/api` replaced by `/` makes `/x` of `/api/x`.
    ReplacePrefix(String),
    /// The first of these whose pattern is found in it says what it becomes. It is compared as the client has written it,
    /// but for dots, empty segments and encodings that mean nothing. Never empty.
    Rewrite(Vec<Rewrite>),
}
