//! Content codings (RFC 9110 8.4): which responses are compressed for whom, and how.
//!
//! ```text
//!   plan ──> Offer          route, at the start
//!              │ + request
//!              v
//!            Wish           whether, and how
//!              │ + response's head
//!              v
//!           Change ──> Encoding ── bytes ──> Encoder ──> chunks
//! ```
//! Fixed responses and small files are encoded once and kept: see `respond/`.

pub mod level;

mod encoder;

pub(crate) mod encoding;
pub(crate) mod head;
mod offer;
mod pool;

#[cfg(test)]
pub(crate) mod decode;

pub(crate) use encoder::encode_whole;
pub use encoder::{Encoder, Pushed, Then};

pub(crate) use offer::{Change, Offer, Wish, choose, coding, is_of, must_stay};
pub(crate) use pool::Pool;
