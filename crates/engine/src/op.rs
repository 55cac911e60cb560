//! The asynchronous operations, one file each: their behaviour on every driver, built from the drivers' `Operations`.

pub(crate) mod accept;
pub(crate) mod close;
pub(crate) mod connect;
pub(crate) mod datagrams;
pub(crate) mod deadline;
pub(crate) mod direct_receive;
pub(crate) mod hangup;
pub(crate) mod last_recv;
pub(crate) mod recv;
pub(crate) mod send;
pub(crate) mod sendfile;
pub(crate) mod splice;
