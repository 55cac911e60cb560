//! Content codings (RFC 9110 8.4): which responses are compressed, for which requests, and how.
//!
//! ```text
//!   plan ──> Offer          per route, at the start
//!              │ + request
//!              v
//!            Wish           coding for the response, if it is suitable
//!              │ + response's head
//!              v
//!           Change ──> Encoding ── bytes ──> Encoder ──> chunks
//! ```
//! Fixed responses and small files are compressed once and kept: see `respond/`.

mod offer;

pub(crate) use offer::{
    AcceptedCompression, CompressionChange, CompressionRules, VARY, choose, coding,
    describes_coding, forbids_compression, matches_media_type,
};
