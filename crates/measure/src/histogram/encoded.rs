//! Validation of encoded histograms (HdrHistogram V2) before their lengths are trusted.
//!
//! ```text
//! compressed:  cookie 4 | length of the rest 4 | zlib of the plain form
//! plain:       cookie 4 | length of the counts 4 | offset 4 | digits 4 | lowest 8 | highest 8 | ratio 8 | counts
//! ```
//!
//! All numbers are big-endian (HdrHistogram's `EncodableHistogram` and `AbstractHistogram.encodeIntoByteBuffer`).

use std::io::Read;

use flate2::read::ZlibDecoder;

/// Start of the error message for input that is not a histogram.
pub(super) const NO_HISTOGRAM: &str = "not an HdrHistogram in V2 format";

/// Significant decimal digits of each value: an error of at most 0.1 %, the usual choice for HdrHistogram.
pub(super) const DIGITS: u8 = 3;

/// Cookies of the two forms. Bits 4 to 7 are the word size, which V2 does not use.
const PLAIN: u32 = 0x1c84_9303 | 0x10;
const COMPRESSED: u32 = 0x1c84_9304 | 0x10;

const HEADER_BYTES: usize = 40;

/// Maximum length of the counts: 65 powers of two with 1024 counters each (three digits of any 64-bit number), at most
/// nine bytes per counter.
const COUNTS_BYTES_MAX: usize = 65 * 1024 * 9;

/// Returns the plain form of `bytes` after validating its lengths and digits.
///
/// # Errors
/// If `bytes` is not a histogram, its lengths are wrong, or it has more digits than a histogram here.
pub(super) fn plain(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let wrong = |why: &str| format!("{NO_HISTOGRAM}: {why}");
    let plain = match number(bytes, 0) {
        Some(COMPRESSED) => {
            let mut plain = Vec::new();
            let room = (HEADER_BYTES + COUNTS_BYTES_MAX) as u64;
            ZlibDecoder::new(bytes.get(8..).unwrap_or_default())
                .take(room + 1)
                .read_to_end(&mut plain)
                .map_err(|error| wrong(&error.to_string()))?;
            plain
        }
        _ => bytes.to_vec(),
    };
    if number(&plain, 0) != Some(PLAIN) {
        return Err(wrong("its first bytes do not match the format"));
    }
    let counts = plain.len().checked_sub(HEADER_BYTES);
    let said = number(&plain, 4).map(|length| length as usize);
    if counts.is_none() || said != counts || counts > Some(COUNTS_BYTES_MAX) {
        return Err(wrong("its length field does not match its length"));
    }
    if !(1..=u32::from(DIGITS)).contains(&number(&plain, 12).unwrap_or_default()) {
        return Err(wrong("its precision is not 1 to 3 significant digits"));
    }
    Ok(plain)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::Histogram;
    use super::*;
    use flate2::{Compression, write::ZlibEncoder};
    use std::io::Write;

    fn compressed(plain: &[u8]) -> Vec<u8> {
        let mut bytes = COMPRESSED.to_be_bytes().to_vec();
        bytes.extend((plain.len() as u32).to_be_bytes());
        let mut encoder = ZlibEncoder::new(bytes, Compression::best());
        encoder.write_all(plain).expect("a vector takes every byte");
        encoder.finish().expect("a vector takes every byte")
    }

    fn of_two() -> Vec<u8> {
        let mut histogram = Histogram::new();
        histogram.record(5);
        histogram.record(5_000_000);
        plain(&histogram.encode()).expect("what was just written")
    }

    #[test]
    fn plain_and_compressed_histograms_are_decoded() {
        let plain = of_two();
        for bytes in [plain.clone(), compressed(&plain)] {
            assert_eq!(Histogram::decode(&bytes).map(|read| read.count()), Ok(2));
        }
    }

    #[test]
    fn encoded_length_is_validated() {
        for length in [0, 1 << 20, u32::MAX] {
            let mut plain = of_two();
            plain[4..8].copy_from_slice(&length.to_be_bytes());
            for bytes in [plain.clone(), compressed(&plain)] {
                let error = Histogram::decode(&bytes).expect_err("another length");
                assert!(error.contains("its length field does not match"), "{error}");
            }
        }
    }

    #[test]
    fn decompression_bomb_is_limited() {
        let mut plain = of_two();
        let counts = 64 << 20;
        plain.resize(HEADER_BYTES + counts, 0);
        plain[4..8].copy_from_slice(&(counts as u32).to_be_bytes());
        let error = Histogram::decode(&compressed(&plain)).expect_err("a bomb");
        assert!(error.contains("its length field does not match"), "{error}");
    }

    #[test]
    fn invalid_encoding_is_refused() {
        let mut five_digits = of_two();
        five_digits[15] = 5;
        for bytes in [
            &b""[..],
            b"abc",
            &COMPRESSED.to_be_bytes(),
            &of_two()[..39],
            &five_digits,
        ] {
            assert!(Histogram::decode(bytes).is_err(), "{bytes:?}");
        }
    }
}
