//! The responses this server makes itself, one file per kind.

pub(crate) mod file;
pub(crate) mod fixed;
pub(crate) mod redirect;
pub(crate) mod synthetic;
