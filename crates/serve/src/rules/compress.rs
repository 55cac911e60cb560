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

mod offer;

pub(crate) use offer::{
    Change, Offer, VARY, Wish, choose, coding, is_about_coding, is_of, must_stay,
};
