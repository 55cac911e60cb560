//! HTTP/2 (RFC 9113): what both ends of a connection say to each other.

pub mod fields;
pub mod hpack;
pub mod message;
