//! HTTP between bytes and messages: heads, framing and bodies of HTTP/1.x (RFC 9110, RFC 9112), read and written, and HTTP/2 (RFC 9113) in `http2`. It
//! does no I/O, reads no clock and starts no thread; on the steady path it allocates nothing.
//!
//! ```text
//!  bytes ──> request::parse / response::parse ──> head { framing, keep_alive, … }     Partial: read more
//!                                                    │                                Refused: respond and close
//!            body::BodyReader::new(framing) <────────┘
//!  bytes ──> reader.advance(..)  payload runs        (or reader.skip(..) to relay the bytes as they are)
//!  bytes <── write::HeadWriter                       status or request line, fields, end
//! ```
//!
//! `httparse` finds the tokens. Where a message ends is decided here, and strictly: a message that two recipients could read in two ways is
//! refused, never guessed (RFC 9112 11.2, request smuggling).
//!
//! # Where to look
//!
//! `request.rs` and `response.rs` are twins, `framing.rs` decides where a body ends, `body.rs` follows it, and
//! `write.rs` writes heads. `flaw.rs` describes an invalid head for the log. `headers/` has one file for each field
//! that routes, responses and proxies inspect; `proxy_protocol.rs` is what may precede the first message. In
//! `http2/`, `connection.rs` is one end of a connection, above `frame.rs`, `hpack.rs`, `settings.rs`, `flow.rs`
//! (windows), `stream.rs` (open streams and their order, see `priority.rs`) and `guard.rs` (bounds on floods).
//! `message.rs` turns decoded fields into the heads that HTTP/1 has, and back.
//!
//! # Invariants
//!
//! - `Partial`, `Complete` and `Refused` do not depend on how the bytes were cut. Every case of
//!   `tests/all/cases/*.txt` is read whole and cut at every byte, and compared with a second, slow reader
//!   (`tests/all/support/reference.rs`).
//! - Only responses of servers are read leniently, and they are normalised before they are forwarded: the strictest
//!   reader reads it the same way.
//! - Data of HTTP/2 is never copied or stored here: received data is passed on in place, and the sender puts its data
//!   after a frame's head. Only a field block that arrives in several pieces is joined.
//! - A field block is encoded or decoded again only if it may differ from the one before (`hpack/repeated.rs`,
//!   `hpack/decoded.rs`).
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

mod field;
mod flaw;
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
pub use refusal::{Parsed, Place, Refusal};
pub use status::reason;
pub use target::is_authority;
pub use version::Version;
pub use write::date;
