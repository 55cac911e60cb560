//! A request for administration, as far as it is needed.

use onrush_http::Method;

/// A whole request.
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) path: String,
    /// Behind the question mark.
    pub(crate) query: String,
    /// The last event that the client has heard of, where it goes on with a stream.
    pub(crate) last_event: Option<String>,
    /// What the client would like to get.
    pub(crate) accept: String,
    pub(crate) body: Vec<u8>,
}
