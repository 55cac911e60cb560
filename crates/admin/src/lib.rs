//! How a server that runs is looked into and changed: HTTP and JSON on a Unix socket, or on a TCP address with a token.
//!
//! ```text
//!   onrush ctl, curl, Prometheus ──> admin core (a thread of its own)
//!                                      │ GET   ── mail ──> each core: how are you?       Inspector
//!                                      └ POST  ──────────> whoever runs the server       Operator
//! ```
//! A client that is slow, silent or hostile holds up nobody but itself: the cores that serve only ever see mail.
#![forbid(unsafe_code)]

mod api;
mod authority;
pub mod client;
mod connections;
mod cpus;
mod desk;
mod exchange;
mod feed;
mod interface;
mod journal;
mod json;
mod live;
pub mod location;
mod metrics;
mod operator;
mod page;
mod parameters;
mod profile;
mod readiness;
mod request;
mod response;
mod server_change;
mod setup;
mod strangers;
mod views;

pub use authority::{CurrentToken, Token, TokenError};
pub use interface::Admin;
pub use journal::{Event, Journal};
pub use operator::{Operator, Order, Outcome};
pub use readiness::{Phase, Readiness};
pub use setup::{Facts, Setup};

/// The description of the interface (OpenAPI 3.1).
pub const OPENAPI: &str = api::OPENAPI;
