//! A request and its response on a stream of a multiplexed connection, in both directions.

pub(crate) mod download;
pub(crate) mod upload;
