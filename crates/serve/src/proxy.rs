//! Forwarding requests to groups of servers.

pub(crate) mod forward;

pub(crate) mod balance;
pub(crate) mod group;
pub(crate) mod pool;

pub(crate) use group::Group;
