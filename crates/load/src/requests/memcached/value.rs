//! Content of values, which identifies the key: it depends on the key's number and the length.
//!
//! ```text
//!  0            16                                       length
//!  | key's mark | letters, from an offset of the key   |
//! ```
//!
//! The mark is a permutation of the key's number, so that short values differ in their first bytes as well. A value of
//! less than 16 bytes is a prefix of the mark; a prefix of n bytes matches that of another key with a probability of
//! 16^-n.

use onrush_engine::random::{Random, mix};

/// Bytes of a mark: 64 bits in hexadecimal digits.
const MARK: usize = 16;

/// Length of the repeated letters. Two keys have the same offset with a probability of 1 in this number.
const LETTERS: usize = 1 << 16;

/// Writes and verifies values.
#[derive(Debug)]
pub(crate) struct Values {
    letters: Box<[u8]>,
}

impl Values {
    pub(crate) fn new() -> Values {
        let random = Random::new(0);
        Values {
            letters: (0..LETTERS)
                .map(|_| b'a' + random.below(26) as u8)
                .collect(),
        }
    }

    /// Appends the value of key `key`, which has `length` bytes.
    pub(crate) fn write(&self, key: u64, length: usize, out: &mut Vec<u8>) {
        let end = out.len() + length;
        let mark = mark(key);
        out.extend_from_slice(&mark[..length.min(MARK)]);
        let mut at = place(key);
        while out.len() < end {
            let piece = &self.letters[at..];
            let piece = &piece[..piece.len().min(end - out.len())];
            out.extend_from_slice(piece);
            at = 0;
        }
    }

    /// Whether `bytes` equal the value of key `key` from offset `from`.
    pub(crate) fn matches(&self, key: u64, mut from: usize, mut bytes: &[u8]) -> bool {
        if from < MARK && !bytes.is_empty() {
            let count = bytes.len().min(MARK - from);
            if bytes[..count] != mark(key)[from..from + count] {
                return false;
            }
            bytes = &bytes[count..];
            from += count;
        }
        while !bytes.is_empty() {
            let at = (place(key) + from - MARK) % LETTERS;
            let count = bytes.len().min(LETTERS - at);
            if bytes[..count] != self.letters[at..at + count] {
                return false;
            }
            bytes = &bytes[count..];
            from += count;
        }
        true
    }
}

/// Offset of a key's letters.
fn place(key: u64) -> usize {
    mix(key) as usize % LETTERS
}

fn mark(key: u64) -> [u8; MARK] {
    let bits = mix(key);
    std::array::from_fn(|at| {
        let digit = (bits >> (4 * (MARK - 1 - at))) & 15;
        b"0123456789abcdef"[digit as usize]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(values: &Values, key: u64, length: usize) -> Vec<u8> {
        let mut out = Vec::new();
        values.write(key, length, &mut out);
        assert_eq!(out.len(), length);
        out
    }

    #[test]
    fn value_matches_across_read_boundaries() {
        let values = Values::new();
        for length in [0, 1, 15, 16, 17, 100, LETTERS, 3 * LETTERS + 7] {
            let bytes = value(&values, 5, length);
            for piece in [1, 7, 16, 1000, LETTERS + 1] {
                let mut from = 0;
                for part in bytes.chunks(piece) {
                    assert!(
                        values.matches(5, from, part),
                        "{length} in pieces of {piece}"
                    );
                    from += part.len();
                }
            }
        }
    }

    #[test]
    fn other_and_corrupted_values_do_not_match() {
        let values = Values::new();
        for key in 0..2000 {
            let bytes = value(&values, key, 16);
            assert!(!values.matches(key + 1, 0, &bytes), "{key}");
        }
        let whole = value(&values, 1, 300);
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            assert!(!values.matches(1, 0, &changed), "byte {at}");
        }
    }
}
