//! The asynchronous operations, one file each: their behaviour on every driver, built from the drivers' `Operations`.

pub(crate) mod accept;
pub(crate) mod arrived;
pub(crate) mod ask;
pub(crate) mod close;
pub(crate) mod connect;
pub(crate) mod datagrams;
pub(crate) mod deadline;
pub(crate) mod hangup;
pub(crate) mod recv;
pub(crate) mod send;
pub(crate) mod sendfile;
pub(crate) mod splice;
