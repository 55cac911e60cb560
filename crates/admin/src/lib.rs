//! The admin interface of a running server: HTTP and JSON on a Unix socket, or on a TCP address with a token.
//!
//! ```text
//!   onrush ctl, curl, Prometheus ──> admin core (a thread of its own)
//!                                      │ GET   ── mail ──> each core: its counters       Inspector
//!                                      └ POST  ──────────> the main thread               Operator
//! ```
//! It is a small HTTP server of its own, because the described server may be overloaded, full or stopping. A slow or
//! hostile client delays only itself: the serving cores receive nothing but mail.
//!
//! `interface.rs` runs the thread, a core with epoll. `exchange.rs` reads requests, `authority.rs` authorizes them,
//! `api.rs` dispatches them to endpoints, and `views.rs` queries the cores. `json.rs`, `connections.rs`, `profile.rs`
//! and `metrics.rs` build responses. `context/journal.rs` keeps named events of the error log, `feed.rs` streams them, and
//! `response/page.rs` is the status page. `context/operator.rs` passes commands to the main thread of `onrush serve`.
//! `client.rs` is the client, and `location.rs` finds the default sockets.
#![forbid(unsafe_code)]

mod api;
mod authority;
pub mod client;
mod connections;
mod context;
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
mod unauthenticated;
mod views;

pub use authority::{CurrentToken, Token, TokenError};
pub use context::journal::{Event, Journal};
pub use context::operator::{Command, CommandResult, Operator};
pub use context::readiness::{Phase, Readiness};
pub use context::setup::{ProcessInfo, Setup};
pub use interface::Admin;

/// Description of the interface in OpenAPI 3.1.
pub const OPENAPI: &str = api::OPENAPI;
