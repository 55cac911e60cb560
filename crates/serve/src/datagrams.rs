//! Echoes and sinks for datagrams (RFC 862, RFC 863), and requests to memcached, one socket for each core: a flow is one core's.
//! Echoes and sinks count test datagrams by their flows and answer questions about them (`onrush_packet`).
//!
//! ```text
//!   port.rs: receives a batch ──> flows.rs: counts what is a test datagram, or memcached/datagrams.rs: answers a request
//!                             ──> replies.rs: what goes back, datagrams of a size together
//! ```

mod flows;
pub(crate) mod port;
mod replies;

mod limits;
