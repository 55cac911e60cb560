//! Routing: paths, routes, clients and variables. Pure.

pub(crate) mod client;
pub(crate) mod media;
pub(crate) mod path;
pub(crate) mod route;
pub(crate) mod variables;
