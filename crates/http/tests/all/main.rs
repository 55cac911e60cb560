//! Messages of HTTP/1 and HTTP/2: cases, properties, and comparisons with other implementations.

mod support;

mod cases;
mod crashes;
mod hpack;
mod http2;
mod http2_messages;
mod http2_peer;
mod properties;
mod refusal_positions;
