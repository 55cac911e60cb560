//! Heads on their way through: what belongs to one connection stays there (RFC 9110 7.6.1), what the route says is
//! changed, servers are told of the client, and the rest passes unchanged and in its order.

mod passing;
mod request;
mod response;
mod target;

pub(crate) use request::{objection, request};
pub(crate) use response::{Onward, VARY_ACCEPT, interim, response, response_room};
pub(crate) use target::other_paths;
