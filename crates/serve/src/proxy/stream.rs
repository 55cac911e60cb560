//! Relays a request and its response over an HTTP/2 stream to a server.

pub(crate) mod download;
pub(crate) mod upload;
