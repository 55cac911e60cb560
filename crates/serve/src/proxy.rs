//! Forwarding of requests to groups of servers.
//!
//! `forward.rs` sends a request to a server and relays the response. `group.rs` is a group of servers as one core sees
//! it, `balance.rs` its load balancing, and `endpoints.rs` the part of a group that all cores share. A request is
//! carried by a lease (`lease.rs`): a connection from `pool.rs`, or a stream of `multiplexed.rs`. Neither knows
//! clients, sites or exchanges. Requests that wait for capacity are in one queue per core (`queue.rs`); `wait_queue.rs`
//! orders the queues of all cores. `ejection/` is passive health checking, `health.rs` and `check.rs` are active
//! checks. `rewrite.rs` writes heads, `upload.rs` and `download.rs` stream bodies, and `stream/` does both for HTTP/2
//! streams. `tunnel.rs` relays bytes after a protocol upgrade.

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
mod multiplexed;
mod pool;
mod queue;
pub(crate) mod split;
mod unavailable;
mod wait_queue;

pub(crate) use group::Group;
