//! A request for administration, as far as it is needed.

use onrush_http::Method;

/// A whole request.
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) path: String,
    /// What the client would like to get.
    pub(crate) accept: String,
    pub(crate) body: Vec<u8>,
}
