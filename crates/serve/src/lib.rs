//! Answers requests: fixed and synthetic answers, files, and requests forwarded to a group of servers.
//!
//! [`Server::start`] makes a running server of a [`Plan`](onrush_config::Plan). One task per connection lives in
//! `connection.rs`, the front page of this crate.
#![forbid(unsafe_code)]

mod server;
mod worker;

mod tls;

#[cfg_attr(not(test), expect(dead_code, reason = "routes cannot have limits yet"))]
mod admit;
mod client;
mod connection;
mod output;
mod passage;
mod path;
mod route;

mod edits;
mod variables;

pub mod compress;
mod proxy;
mod resolve;
mod respond;

mod limits;
mod log;
mod meter;

#[cfg(test)]
#[allow(
    dead_code,
    reason = "it serves the tests of all answers; not each needs all of it"
)]
mod harness;
#[cfg(test)]
mod tests;

pub use meter::Totals;
pub use server::{Server, StartError};
