//! Encoders of content codings (RFC 9110 8.4) and the memory that a core has for them.

pub mod level;

mod encoder;
mod pool;

#[cfg(test)]
pub(crate) mod decode;

pub(crate) use encoder::encode_whole;
pub use encoder::{Encoder, Pushed, Then};
pub(crate) use pool::{Lent, Pool};
