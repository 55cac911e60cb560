//! Forwarding requests to groups of servers.

pub(crate) mod forward;

mod download;
mod failure;
mod relay;
pub(crate) mod rewrite;
mod upload;

mod balance;
pub(crate) mod group;
mod pool;
pub(crate) mod split;

pub(crate) use group::Group;
