//! Forwarding requests to groups of servers.
//!
//! `forward.rs` takes a request to a server and brings the response back. `group.rs` is a group of servers as one
//! core sees it, and `balance.rs` chooses among them. `endpoints.rs` is what all cores share of a group. `lease.rs`
//! is the carrier of a request: a connection from `pool.rs`, or a stream of `multiplexed.rs`. None of these knows
//! clients, sites or exchanges. Requests that wait for capacity are in a queue of their core (`queue.rs`), and these
//! queues are in one line (`line.rs`). `ejection/` is passive health, `health.rs` and `check.rs` active checks.
//! `rewrite.rs` writes heads, `upload.rs` and `download.rs` stream bodies; `stream/` has both for streams of HTTP/2.
//! `tunnel.rs` passes bytes after a change of protocol.

pub(crate) mod resolve;
pub(crate) mod tls;

pub(crate) mod forward;

mod attempt;
mod download;
mod encode;
pub(crate) mod failure;
mod heads;
pub(crate) mod mirror;
mod progress;
mod relay;
pub(crate) mod rewrite;
mod splice;
mod stream;
mod tunnel;
pub(crate) mod upgrade;
mod upload;

pub(crate) mod endpoints;
pub(crate) mod group;
pub(crate) mod hash_key;

mod balance;
mod ewma;
mod slow_start;

pub(crate) mod check;
mod health;

pub(crate) mod ejection;
pub(crate) mod retirement;
mod retry_budget;
mod window;

mod lease;
mod line;
mod multiplexed;
mod pool;
mod queue;
pub(crate) mod split;
mod unavailable;

pub(crate) use group::Group;
