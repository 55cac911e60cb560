//! Edits of messages by routes: header fields, CORS, caching, compression, error pages.

pub(crate) mod cache_control;
pub(crate) mod compress;
pub(crate) mod cors;
pub(crate) mod edits;
pub(crate) mod error_page;
pub(crate) mod forwarding;
pub(crate) mod host;
pub(crate) mod location;
pub(crate) mod response_edits;
