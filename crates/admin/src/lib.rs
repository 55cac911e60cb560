//! The admin interface of a running server: HTTP and JSON on a Unix socket, or on a TCP address with a token.
//!
//! ```text
//!   onrush ctl, curl, Prometheus ──> admin core (a thread of its own)
//!                                      │ GET   ── mail ──> each core: its counters       Inspector
//!                                      └ POST  ──────────> the main thread               Operator
//! ```
//! A slow, silent or hostile client delays only itself: the cores that serve receive nothing but mail.
//!
//! `interface.rs` is the thread, a core of its own with epoll. `exchange.rs` is its HTTP, `authority.rs` decides who
//! may ask, `api.rs` lists the questions, and `views.rs` asks the cores. `json.rs`, `connections.rs`, `profile.rs`
//! and `metrics.rs` write answers; metrics are tables (`metrics/tables.rs`) that three formats print.
//! `desk/journal.rs` keeps named events of the error log, `feed.rs` streams them, and `response/page.rs` is the
//! status page. `desk/operator.rs` is the main thread of `onrush serve`, which carries out changes. `client.rs` is
//! the other end, `location.rs` the default place of sockets.
//!
//! It is a small HTTP server of its own and not a site of the server that it describes: that server may be
//! overloaded, full or stopping.
#![forbid(unsafe_code)]

mod api;
mod authority;
pub mod client;
mod connections;
mod desk;
mod exchange;
mod feed;
mod interface;
mod json;
mod live;
pub mod location;
mod metrics;
mod parameters;
mod profile;
mod request;
mod response;
mod server_change;
mod strangers;
mod views;

pub use authority::{CurrentToken, Token, TokenError};
pub use desk::journal::{Event, Journal};
pub use desk::operator::{Operator, Order, Outcome};
pub use desk::readiness::{Phase, Readiness};
pub use desk::setup::{Facts, Setup};
pub use interface::Admin;

/// The description of the interface (OpenAPI 3.1).
pub const OPENAPI: &str = api::OPENAPI;
