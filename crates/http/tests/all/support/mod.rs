//! For tests and fuzz targets: functions that feed bytes in pieces, slow reference parsers, and checks from both.
#![allow(dead_code)] // each user takes its part

pub(crate) mod check;
pub(crate) mod drive;
pub(crate) mod fields;
pub(crate) mod hpack;
pub(crate) mod http2;
pub(crate) mod proxy_protocol;
pub(crate) mod reference;
