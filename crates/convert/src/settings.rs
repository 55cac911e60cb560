//! Parts of a configuration of Onrush: listeners, routes, groups of servers, timeouts and logs.

pub(crate) mod access_log;
pub(crate) mod client_certificates;
pub(crate) mod group;
pub(crate) mod listener_settings;
pub(crate) mod process;
pub(crate) mod route;
pub(crate) mod timeouts;
pub(crate) mod unit;
