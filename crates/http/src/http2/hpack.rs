//! HPACK field compression (RFC 7541), in both directions.
//!
//! ```text
//!  block of bytes ──> Decoder ──> FieldSection      strings: integer + raw or Huffman
//!                        │                          indices: 1 to 61 the static table, from 62 the dynamic one
//!                      Table                        both ends must make the same changes, so every block is decoded
//!                        │                          whole and in order, even if its fields are discarded
//!  fields ─────────> Encoder ──> block of bytes
//! ```

mod block_cache;
mod decoder;
mod encoded_cache;
mod encoder;
mod error;
mod huffman;
mod integer;
pub(crate) mod sensitivity;
pub(crate) mod static_table;
mod table;

pub use decoder::Decoder;
pub use encoded_cache::Repeated;
pub use encoder::{Encoder, Indexing};
pub use error::Error;
pub use sensitivity::Sensitivity;
