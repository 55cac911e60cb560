//! Content codings (RFC 9110 8.4): content made shorter for the way.

pub mod level;

mod encoder;

#[cfg(test)]
mod decode;

pub use encoder::{Encoder, Pushed, Then};
