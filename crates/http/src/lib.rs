//! HTTP/1.x (RFC 9110, RFC 9112) and HTTP/2 (RFC 9113, in `http2`) between bytes and messages. The crate does no I/O,
//! reads no clock, starts no thread, and does not allocate on the steady path.
//!
//! ```text
//!  bytes ──> request::parse / response::parse ──> head { framing, keep_alive, … }     Partial: read more
//!                                                    │                                Refused: respond and close
//!            body::BodyReader::new(framing) <────────┘
//!  bytes ──> reader.advance(..)  payload runs        (or reader.skip(..) to relay the bytes as they are)
//!  bytes <── write::HeadWriter                       status or request line, fields, end
//! ```
//!
//! `httparse` finds the tokens; this crate decides where a message ends. It refuses any message that two recipients
//! could read differently (RFC 9112 11.2, request smuggling).
//!
//! # Where to look
//!
//! `request.rs` and `response.rs` are twins, `framing.rs` decides where a body ends, `body.rs` reads it, and `write.rs`
//! writes heads. `flaw.rs` describes an invalid head for the log. `headers/` has one file for each field that routes,
//! responses and proxies inspect; `proxy_protocol.rs` parses and writes the header that may precede the first message.
//! In `http2/`, `connection.rs` is one end of a connection, on top of `frame.rs`, `hpack.rs`, `settings.rs`, `flow.rs`
//! (windows), `stream.rs` (open streams and their order, see `priority.rs`) and `flood_guard.rs` (limits on floods).
//! `message.rs` converts between decoded fields and the heads of HTTP/1.
//!
//! # Invariants
//!
//! - `Partial`, `Complete` and `Refused` do not depend on how the input was split. Every case of
//!   `tests/all/cases/*.txt` is parsed whole and split at every byte, and compared with a slow parser
//!   (`tests/all/support/reference.rs`).
//! - Only responses of servers are parsed leniently. They are normalized before they are forwarded, so a strict parser
//!   reads the same message.
//! - HTTP/2 data is never copied or stored here: received data is returned as a range of the input, and the sender
//!   appends its data to a frame header. Only a field block that arrives in several pieces is joined.
//! - A block is encoded or decoded again only if it may differ from the last (`hpack/encoded_cache.rs`, `hpack/block_cache.rs`).
#![forbid(unsafe_code)]

pub mod body;
mod headers;
pub mod http2;
pub mod limits;
pub mod obs_fold;
pub mod request;
pub mod response;
pub mod write;

pub mod query;
pub mod upgrade;

pub mod proxy_protocol;

mod diagnosis;
mod field;
mod framing;
mod method;
mod refusal;
mod status;
mod target;
mod version;

pub use field::{Header, HeaderSlots, header_is, is_field_value, is_token, token_list};
pub use framing::Framing;
pub use headers::accept;
pub use headers::basic_auth;
pub use headers::cookie;
pub use headers::encoding;
pub use headers::forwarded;
pub use headers::hop;
pub use headers::trace_context;
pub use limits::{Codings, Limits};
pub use method::Method;
pub use refusal::{Parsed, Position, Refusal};
pub use status::reason;
pub use target::is_authority;
pub use version::Version;
pub use write::date;
