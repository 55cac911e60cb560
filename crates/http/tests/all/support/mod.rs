//! What the tests and the fuzz targets of this crate share: ways to feed bytes in pieces, slow and obvious readers to
//! compare with, and the checks built from both.
#![allow(dead_code)] // each user takes its part

pub(crate) mod check;
pub(crate) mod drive;
pub(crate) mod fields;
pub(crate) mod hpack;
pub(crate) mod http2;
pub(crate) mod proxy_protocol;
pub(crate) mod reference;
