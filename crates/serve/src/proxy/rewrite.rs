//! Rewriting of relayed heads: removes fields of one connection (RFC 9110 7.6.1), applies the route's edits and adds
//! the forwarding fields for servers. The other fields pass unchanged and in order.

mod end_to_end;
mod request;
mod response;
mod target;

pub(crate) use request::{objection, request};
pub(crate) use response::{ResponseChanges, VARY_ACCEPT, interim, response, response_room};
pub(crate) use target::other_paths;
