//! HTTP between bytes and messages: HTTP/1.x (RFC 9110, RFC 9112) with its heads, framing, bodies, and writing them; and
//! in `http2` what HTTP/2 (RFC 9113) has instead. It does no I/O, asks no clock and starts no thread; on the steady path
//! it allocates nothing.
//!
//! ```text
//!  bytes ──> request::parse / response::parse ──> head { framing, keep_alive, … }     Partial: read more
//!                                                    │                                Refused: respond and close
//!            body::BodyReader::new(framing) <────────┘
//!  bytes ──> reader.advance(..)  payload runs        (or reader.skip(..) to relay the bytes as they are)
//!  bytes <── write::HeadWriter                       status or request line, fields, end
//! ```
//!
//! `httparse` finds the tokens; everything that decides where a message ends is decided here, and strictly: what two
//! recipients could read in two ways is refused, never guessed (RFC 9112 11.2, request smuggling).
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
