//! Huffman code of strings (RFC 7541 5.2 and appendix B).
//!
//! The code is canonical: codes of the same length are consecutive, so the lengths define all codes. The decoder looks
//! up [`PEEK_BITS`] bits at a time, which contain one or two frequent symbols; rare ones (control characters, non-ASCII
//! bytes) are found by comparison with the first code of each length.

use super::error::Error;

/// Number of bits per lookup. With 11, one lookup decodes most pairs of letters and digits; the table takes 8 KiB.
const PEEK_BITS: u32 = 11;

/// Length of the longest code, the end-of-string symbol's.
const CODE_BITS_MAX: usize = 30;

/// End-of-string symbol. It is never sent, but its first bits are the padding.
const END_OF_STRING: u16 = 256;

/// Length of each symbol's code in bits (RFC 7541 appendix B).
#[rustfmt::skip]
static CODE_BITS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// Code of each symbol, in the low bits.
static CODES: [u32; 257] = {
    let mut codes = [0; 257];
    let mut code = 0;
    let mut bits = 1;
    while bits <= CODE_BITS_MAX {
        let mut symbol = 0;
        while symbol < 257 {
            if CODE_BITS[symbol] as usize == bits {
                codes[symbol] = code;
                code += 1;
            }
            symbol += 1;
        }
        code <<= 1;
        bits += 1;
    }
    codes
};

#[derive(Clone, Copy)]
struct Length {
    first_code: u32,
    /// Index of the first symbol in `SYMBOLS`.
    first: u16,
    count: u16,
}

/// Symbols sorted by length and code.
static SYMBOLS: [u16; 257] = {
    let mut symbols = [0; 257];
    let mut count = 0;
    let mut bits = 1;
    while bits <= CODE_BITS_MAX {
        let mut symbol = 0;
        while symbol < 257 {
            if CODE_BITS[symbol] as usize == bits {
                symbols[count] = symbol as u16;
                count += 1;
            }
            symbol += 1;
        }
        bits += 1;
    }
    symbols
};

static LENGTHS: [Length; CODE_BITS_MAX + 1] = {
    const EMPTY: Length = Length {
        first_code: 0,
        first: 0,
        count: 0,
    };
    let mut lengths = [EMPTY; CODE_BITS_MAX + 1];
    let mut at = 0;
    while at < 257 {
        let symbol = SYMBOLS[at] as usize;
        let length = &mut lengths[CODE_BITS[symbol] as usize];
        if length.count == 0 {
            length.first_code = CODES[symbol];
            length.first = at as u16;
        }
        length.count += 1;
        at += 1;
    }
    lengths
};

/// Symbols at the front of `PEEK_BITS` bits, packed into one number so that the decoder needs a single load.
///
/// ```text
///  31      24 23      16 15       8 7        0
///  | second  |  first   |  count   |  bits   |
/// ```
#[derive(Clone, Copy)]
struct LookupEntry(u32);

impl LookupEntry {
    /// A code longer than a lookup.
    const LONG: LookupEntry = LookupEntry(0);

    /// `count` symbols, with codes of `bits` bits in total.
    const fn new(symbols: [u8; 2], count: u8, bits: u32) -> LookupEntry {
        LookupEntry(u32::from_le_bytes([
            bits as u8, count, symbols[0], symbols[1],
        ]))
    }

    #[inline]
    fn is_long(self) -> bool {
        self.0 == LookupEntry::LONG.0
    }

    #[inline]
    fn bits(self) -> u32 {
        self.0 & 0x3f
    }

    #[inline]
    fn count(self) -> usize {
        self.0 as usize >> 8 & 3
    }

    /// The first `count` of them are valid.
    #[inline]
    fn symbols(self) -> [u8; 2] {
        [(self.0 >> 16) as u8, (self.0 >> 24) as u8]
    }
}

static LOOKUP_TABLE: [LookupEntry; 1 << PEEK_BITS] = {
    let mut looks = [LookupEntry::LONG; 1 << PEEK_BITS];
    // Symbols are sorted by code length, so short ones come first.
    let mut one = 0;
    while CODE_BITS[SYMBOLS[one] as usize] as u32 <= PEEK_BITS {
        let symbol = SYMBOLS[one] as usize;
        let bits = CODE_BITS[symbol] as u32;
        let look = LookupEntry::new([symbol as u8, 0], 1, bits);
        let start = fill(&mut looks, CODES[symbol], bits, look);
        let mut two = 0;
        while CODE_BITS[SYMBOLS[two] as usize] as u32 + bits <= PEEK_BITS {
            let second = SYMBOLS[two] as usize;
            let both_bits = bits + CODE_BITS[second] as u32;
            let look = LookupEntry::new([symbol as u8, second as u8], 2, both_bits);
            let code = (start >> (PEEK_BITS - both_bits)) as u32 | CODES[second];
            fill(&mut looks, code, both_bits, look);
            two += 1;
        }
        one += 1;
    }
    looks
};

/// Stores `look` at all indices that begin with `code` and returns the first index.
const fn fill(looks: &mut [LookupEntry], code: u32, bits: u32, look: LookupEntry) -> usize {
    let spare = PEEK_BITS - bits;
    let start = (code as usize) << spare;
    let mut at = start;
    while at < start + (1 << spare) {
        looks[at] = look;
        at += 1;
    }
    start
}

/// Decodes `text` into the front of `out`, which is never truncated. Returns the number of bytes decoded.
///
/// # Errors
/// [`Error::Padding`] and [`Error::EndOfString`].
#[inline]
pub(super) fn decode(text: &[u8], out: &mut Vec<u8>) -> Result<usize, Error> {
    // Codes have at least 5 bits, and a lookup may write one byte more than it counts.
    let bytes_max = text.len() * 8 / 5 + 2;
    if out.len() < bytes_max {
        out.resize(bytes_max, 0);
    }
    let mut bits = Bits {
        window: 0,
        held: 0,
        rest: text,
    };
    let mut written = 0;
    loop {
        bits.refill();
        while bits.held >= PEEK_BITS {
            let look = LOOKUP_TABLE[(bits.window >> (64 - PEEK_BITS)) as usize];
            if look.is_long() {
                break;
            }
            out[written..written + 2].copy_from_slice(&look.symbols());
            written += look.count();
            bits.skip(look.bits());
        }
        if bits.rest.is_empty() && bits.held < PEEK_BITS {
            return decode_last(bits, out, written);
        }
        if bits.held >= PEEK_BITS {
            bits.refill();
            match bits.long()? {
                Some(symbol) => out[written] = symbol,
                // End: the remaining bits are fewer than the code's length.
                None => return bits.padding().map(|()| written),
            }
            written += 1;
        }
    }
}

/// Decodes the last bits, fewer than a lookup takes.
#[inline]
fn decode_last(mut bits: Bits<'_>, out: &mut [u8], mut written: usize) -> Result<usize, Error> {
    // The bits after the end are zeros, so each match is checked against `held`.
    loop {
        let look = LOOKUP_TABLE[(bits.window >> (64 - PEEK_BITS)) as usize];
        let [first, _] = look.symbols();
        let first_bits = u32::from(CODE_BITS[usize::from(first)]);
        if look.is_long() || first_bits > bits.held {
            return bits.padding().map(|()| written);
        }
        out[written] = first;
        written += 1;
        bits.skip(first_bits);
    }
}

struct Bits<'b> {
    /// Next bits, from the highest bit down, followed by the first bits of `rest` or zeros.
    window: u64,
    /// Number of valid bits in `window`.
    held: u32,
    rest: &'b [u8],
}

impl Bits<'_> {
    /// Fills the window with more than 56 bits, or all that are left.
    #[inline]
    fn refill(&mut self) {
        if let Some((next, _)) = self.rest.split_first_chunk::<8>() {
            // Only whole bytes are counted. The bits after them are already set, to the values that they will have.
            let bytes = (63 - self.held) >> 3;
            self.window |= u64::from_be_bytes(*next) >> self.held;
            self.held += bytes * 8;
            self.rest = &self.rest[bytes as usize..];
            return;
        }
        while self.held <= 56
            && let Some((&byte, rest)) = self.rest.split_first()
        {
            self.window |= u64::from(byte) << (56 - self.held);
            self.held += 8;
            self.rest = rest;
        }
    }

    #[inline]
    fn skip(&mut self, bits: u32) {
        self.window <<= bits;
        self.held -= bits;
    }

    /// Decodes a symbol whose code is longer than a lookup; `None` if too few bits are left.
    fn long(&mut self) -> Result<Option<u8>, Error> {
        for bits in PEEK_BITS + 1..=CODE_BITS_MAX as u32 {
            let length = &LENGTHS[bits as usize];
            let code = (self.window >> (64 - bits)) as u32;
            let behind = code.wrapping_sub(length.first_code);
            if behind >= u32::from(length.count) {
                continue;
            }
            if bits > self.held {
                return Ok(None);
            }
            self.skip(bits);
            let symbol = SYMBOLS[usize::from(length.first) + behind as usize];
            return match symbol {
                END_OF_STRING => Err(Error::EndOfString),
                symbol => Ok(Some(symbol as u8)),
            };
        }
        // Unreachable: every code of 30 bits belongs to a symbol of this length or a shorter one.
        Ok(None)
    }

    /// Checks that the padding is less than a byte and all ones.
    #[inline]
    fn padding(&self) -> Result<(), Error> {
        let is_ones = self.window.leading_ones() == self.held;
        match is_ones && self.held < 8 {
            true => Ok(()),
            false => Err(Error::Padding),
        }
    }
}

#[inline]
pub(super) fn encoded_bytes(text: &[u8]) -> usize {
    let bits: usize = text
        .iter()
        .map(|&byte| usize::from(CODE_BITS[usize::from(byte)]))
        .sum();
    bits.div_ceil(8)
}

#[inline]
pub(super) fn encode(text: &[u8], out: &mut Vec<u8>) {
    // The low `held` bits are pending; < 32 between two symbols.
    let (mut waiting, mut held) = (0u64, 0);
    for &byte in text {
        let bits = u32::from(CODE_BITS[usize::from(byte)]);
        waiting = waiting << bits | u64::from(CODES[usize::from(byte)]);
        held += bits;
        if held >= 32 {
            held -= 32;
            out.extend_from_slice(&((waiting >> held) as u32).to_be_bytes());
        }
    }
    let bytes = held.div_ceil(8);
    let padding = bytes * 8 - held;
    let last = (waiting << padding | ((1 << padding) - 1)) as u32;
    out.extend_from_slice(&last.to_be_bytes()[4 - bytes as usize..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded(text: &[u8]) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        let bytes = decode(text, &mut out)?;
        out.truncate(bytes);
        Ok(out)
    }

    fn encoded(text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(text, &mut out);
        out
    }

    #[test]
    fn huffman_codes_match_rfc() {
        for (symbol, code, bits) in [
            (0, 0x1ff8, 13),
            (usize::from(b'0'), 0x0, 5),
            (usize::from(b'a'), 0x3, 5),
            (usize::from(b'z'), 0x7b, 7),
            (usize::from(b'\\'), 0x7fff0, 19),
            (249, 0xffffffe, 28),
            (256, 0x3fffffff, 30),
        ] {
            assert_eq!((CODES[symbol], CODE_BITS[symbol]), (code, bits), "{symbol}");
        }
    }

    #[test]
    fn huffman_byte_pairs_round_trip() {
        for first in 0..=255 {
            assert_eq!(decoded(&encoded(&[first])), Ok(vec![first]));
            for second in 0..=255 {
                let text = [first, second, first];
                assert_eq!(decoded(&encoded(&text)), Ok(text.to_vec()));
            }
        }
    }

    #[test]
    fn invalid_huffman_padding_is_refused() {
        assert_eq!(decoded(&[]), Ok(vec![]));
        // `a` is 00011.
        assert_eq!(decoded(&[0b0001_1111]), Ok(b"a".to_vec()));
        for bad in [
            [0b0001_1110].as_slice(),
            &[0b0001_1000],
            &[0b0001_1111, 0xff],
            &[0xff],
            &[0xff, 0xff],
            &[0xff, 0xff, 0xff],
            // 29 ones.
            &[0xff, 0xff, 0xff, 0b1111_1000],
            &[0b0001_1111, 0xff, 0xff, 0xff],
        ] {
            assert_eq!(decoded(bad), Err(Error::Padding), "{bad:x?}");
        }
    }

    #[test]
    fn end_of_string_symbol_is_refused() {
        for bad in [
            [0xff; 4].as_slice(),
            &[0xff; 5],
            &[0xff; 100],
            &[0b0001_1111, 0xff, 0xff, 0xff, 0xff],
        ] {
            assert_eq!(decoded(bad), Err(Error::EndOfString), "{bad:x?}");
        }
    }

    proptest! {
        #[test]
        fn encoded_bytes_round_trip(text: Vec<u8>) {
            let bytes = encoded(&text);
            prop_assert_eq!(bytes.len(), encoded_bytes(&text));
            prop_assert_eq!(decoded(&bytes), Ok(text));
        }

        #[test]
        fn decoded_huffman_bytes_round_trip(bytes: Vec<u8>) {
            if let Ok(text) = decoded(&bytes) {
                prop_assert_eq!(encoded(&text), bytes);
            }
        }
    }
}
