//! HTTP/2 (RFC 9113), both ends of a connection, without I/O or clock.
//!
//! ```text
//!   bytes ──> connection ──> frame ──> fields by hpack ──> Event: Head, Data, Trailers, Reset, Window …
//!                 │   what the peer may do: settings, flow, guard
//!                 │   open streams: stream (slots, states, order of sending)
//!   bytes <── connection <── head, data, trailers, reset, release
//! ```
//!
//! A violation of the RFC by the peer is a stream error, which resets the stream, or a connection error, which ends the
//! connection ([`code`]). Needless work caused by the peer is limited, and exceeding the limit also ends the connection
//! ([`flood_guard`]).

pub mod fields;
pub mod hpack;
pub mod message;

pub mod code;
pub mod flood_guard;
pub mod frame;
pub mod limits;
pub mod priority;
pub mod settings;

mod connection;
mod flaw;
mod flow;
mod message_info;
mod stream;

pub use connection::event::{Cause, Event, Step};
pub use connection::send::{Blocked, CannotOpen};
pub use connection::{Closed, Connection};
pub use settings::{LocalSettings, PeerSettings, Role};
pub use stream::{Content, End, Stream};
