//! Integers with a prefix (RFC 7541 5.1).

use super::error::Error;
use crate::limits::HPACK_INTEGER_BYTES_MAX;

/// Decodes the integer at the start of `block`, whose first byte contains `prefix_bits` of it. Returns it and the rest.
#[inline]
pub(super) fn decode(block: &[u8], prefix_bits: u32) -> Result<(u32, &[u8]), Error> {
    let (&first, rest) = block.split_first().ok_or(Error::Truncated)?;
    let mask = (1u8 << prefix_bits) - 1;
    let prefix = first & mask;
    if prefix < mask {
        return Ok((u32::from(prefix), rest));
    }
    decode_long(u32::from(prefix), rest)
}

#[cold]
fn decode_long(prefix: u32, block: &[u8]) -> Result<(u32, &[u8]), Error> {
    let mut value = prefix;
    for (at, &byte) in block.iter().enumerate() {
        if at == HPACK_INTEGER_BYTES_MAX {
            return Err(Error::IntegerTooLarge);
        }
        // Cannot overflow: HPACK_INTEGER_BYTES_MAX times 7 bits plus a prefix are below 2^32.
        value += u32::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok((value, &block[at + 1..]));
        }
    }
    Err(Error::Truncated)
}

/// Appends `value`, with `prefix_bits` of it in the first byte; the other bits of that byte are `pattern`.
#[inline]
pub(super) fn encode(value: u32, prefix_bits: u32, pattern: u8, out: &mut Vec<u8>) {
    let mask = (1u32 << prefix_bits) - 1;
    if value < mask {
        out.push(pattern | value as u8);
        return;
    }
    out.push(pattern | mask as u8);
    let mut rest = value - mask;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 7541 C.1.
    #[test]
    fn rfc_integer_examples_round_trip() {
        for (value, bits, wanted) in [
            (10, 5, [0x0a].as_slice()),
            (1337, 5, &[0x1f, 0x9a, 0x0a]),
            (42, 8 - 1, &[0x2a]),
        ] {
            let mut out = Vec::new();
            encode(value, bits, 0, &mut out);
            assert_eq!(out, wanted);
            assert_eq!(decode(&out, bits), Ok((value, [].as_slice())));
        }
    }

    #[test]
    fn overlong_integer_is_refused() {
        for (block, wanted) in [
            (
                [0x1f, 0xff, 0xff, 0xff, 0xff, 0x0f].as_slice(),
                Error::IntegerTooLarge,
            ),
            (
                &[0x1f, 0x80, 0x80, 0x80, 0x80, 0x00],
                Error::IntegerTooLarge,
            ),
            (&[0x1f, 0x80], Error::Truncated),
            (&[0x1f], Error::Truncated),
            (&[], Error::Truncated),
        ] {
            assert_eq!(decode(block, 5), Err(wanted), "{block:x?}");
        }
        // The largest, and a small one with superfluous bytes.
        assert_eq!(
            decode(&[0x1f, 0xff, 0xff, 0xff, 0x7f], 5),
            Ok((31 + (1 << 28) - 1, [].as_slice()))
        );
        assert_eq!(
            decode(&[0x1f, 0x80, 0x80, 0x00, 7], 5),
            Ok((31, [7].as_slice()))
        );
    }

    proptest! {
        #[test]
        fn integer_round_trips(value in 0u32..1 << 28, bits in 1u32..8) {
            let mut out = Vec::new();
            encode(value, bits, 0, &mut out);
            prop_assert_eq!(decode(&out, bits), Ok((value, [].as_slice())));
            for cut in 0..out.len() {
                prop_assert_eq!(decode(&out[..cut], bits), Err(Error::Truncated));
            }
        }
    }
}
