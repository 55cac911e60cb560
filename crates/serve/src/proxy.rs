//! Forwarding requests to groups of servers.

pub(crate) mod resolve;
pub(crate) mod tls;

pub(crate) mod forward;

mod attempt;
mod download;
mod encode;
mod failure;
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

pub(crate) mod absence;
mod budget;
mod eject;
mod recheck;
pub(crate) mod retirement;
mod suspects;
mod window;

mod lease;
mod line;
mod multiplexed;
mod pipelined;
mod pool;
mod queue;
pub(crate) mod split;
mod unavailable;

pub(crate) use group::Group;
