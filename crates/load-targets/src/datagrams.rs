//! Echo, discard (RFC 862, RFC 863) and memcached over UDP, one socket per core: a flow stays on one core. Echo and discard count
//! test datagrams by flow and answer queries about them (`onrush_packet`).
//!
//! ```text
//!   port.rs: receives a batch ──> flows.rs: counts test datagrams; memcached/datagrams.rs: answers requests
//!                             ──> replies.rs: sends answers, batched by size
//! ```

mod flows;
pub(crate) mod port;
mod replies;
pub(crate) mod traffic;

mod limits;
