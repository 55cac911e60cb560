//! Encoders for content codings (RFC 9110 8.4), and their memory budget per core.

pub mod level;

mod encoder;
mod pool;

#[cfg(test)]
pub(crate) mod decode;

pub(crate) use encoder::encode_whole;
pub use encoder::{Encoder, Pushed, Then};
pub(crate) use pool::{Pool, PooledEncoder};
