//! What rules have said of a request before it is served.

use crate::document::Value;
use crate::route::FieldEdits;

/// Changes of fields and paths, and who is let in.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) request: FieldEdits,
    /// Of responses that are relayed.
    pub(super) response: FieldEdits,
    /// Of all responses.
    pub(super) after: FieldEdits,
    /// The prefix that is replaced, and what stands in its place.
    pub(super) moved: Option<(String, String)>,
    pub(super) auth: Option<Value>,
    pub(super) compress: Option<Value>,
    pub(super) redirect_cookie: Option<String>,
    /// Whether servers are told of clients by X-Forwarded-For.
    pub(super) is_forwarded: bool,
    /// Whether the rules of this proxy have been left by `allow`.
    pub(super) is_allowed: bool,
}
