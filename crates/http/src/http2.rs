//! HTTP/2 (RFC 9113): what both ends of a connection say to each other. Like the rest of the crate it does no I/O and asks
//! no clock.
//!
//! ```text
//!   bytes ──> connection ──> frame ──> fields by hpack ──> Event: Head, Data, Trailers, Reset, Window …
//!                 │   what the peer may do: settings, flow, guard
//!                 │   what is open: stream (slots, states, whose turn it is)
//!   bytes <── connection <── head, data, trailers, reset, release
//! ```
//!
//! A rule of the RFC that the peer breaks is an error of its stream, which is then reset, or of the connection, which
//! ends ([`code`]); work that it causes without need is bounded, and ends the connection, too ([`guard`]).

pub mod fields;
pub mod hpack;
pub mod message;

pub mod code;
pub mod frame;
pub mod guard;
pub mod limits;
pub mod priority;
pub mod settings;

mod connection;
mod facts;
mod flaw;
mod flow;
mod stream;

pub use connection::event::{Cause, Event, Step};
pub use connection::send::{Blocked, CannotOpen};
pub use connection::{Closed, Connection};
pub use settings::{LocalSettings, PeerSettings, Role};
pub use stream::{Content, End, Stream};
