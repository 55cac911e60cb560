//! A request to the interface, reduced to what endpoints use.

use onrush_http::Method;

pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) path: String,
    /// Query string without the question mark.
    pub(crate) query: String,
    /// `Last-Event-ID`: the last event received by a client that resumes a stream.
    pub(crate) last_event: Option<String>,
    /// Value of the `Accept` field.
    pub(crate) accept: String,
    pub(crate) body: Vec<u8>,
}
