//! Paths, routes, clients and variables: what a request is matched by. Pure.

pub(crate) mod client;
pub(crate) mod media;
pub(crate) mod path;
pub(crate) mod route;
pub(crate) mod variables;
