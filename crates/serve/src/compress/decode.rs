//! For tests: what a client makes of content in a coding.

use std::io::{Error, Read};

use onrush_http::encoding::Coding;

pub(crate) fn decode(coding: Coding, encoded: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::new();
    decode_prefix(coding, encoded, &mut decoded).expect("a whole content");
    decoded
}

/// Decodes as much as there is.
///
/// # Errors
/// When that is not all.
pub(crate) fn decode_prefix(
    coding: Coding,
    encoded: &[u8],
    decoded: &mut Vec<u8>,
) -> Result<usize, Error> {
    match coding {
        Coding::Gzip => flate2::read::GzDecoder::new(encoded).read_to_end(decoded),
        Coding::Brotli => brotli::Decompressor::new(encoded, 4096).read_to_end(decoded),
        Coding::Zstd => zstd::Decoder::new(encoded)?.read_to_end(decoded),
    }
}
