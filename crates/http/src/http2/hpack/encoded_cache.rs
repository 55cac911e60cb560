//! Reuses an encoded block if the next one would be equal.

use super::Encoder;

/// The last text, its encoding, and the state of the table then. Most fields of consecutive messages are equal.
#[derive(Debug, Default)]
pub struct Repeated {
    text: Vec<u8>,
    block: Vec<u8>,
    /// Changes of the encoder's table at that time.
    changes: u64,
}

impl Repeated {
    /// Appends the encoding of `text`. `encode` is called only if the result may differ from the last one: its output
    /// must depend on the text alone, and every call must use the same encoder. A text longer than `bytes_max` is not
    /// cached.
    #[inline]
    pub fn write(
        &mut self,
        (text, bytes_max): (&[u8], usize),
        encoder: &mut Encoder,
        out: &mut Vec<u8>,
        encode: impl FnOnce(&mut Encoder, &mut Vec<u8>),
    ) {
        if self.changes == encoder.changes() && self.text == text && !text.is_empty() {
            return out.extend_from_slice(&self.block);
        }
        let (before, at) = (encoder.changes(), out.len());
        encode(encoder, out);
        self.text.clear();
        if before == encoder.changes() && text.len() <= bytes_max {
            self.text.extend_from_slice(text);
            self.block.clear();
            self.block.extend_from_slice(&out[at..]);
            self.changes = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http2::fields::FieldSection;
    use crate::http2::hpack::{Decoder, Indexing};
    use crate::limits::HPACK_TABLE_BYTES_INITIAL;

    const BYTES_MAX: usize = 64;

    /// Sends one line per block with the given indexing; returns the decoded lines and the number of `encode` calls.
    fn exchange(blocks: &[(&str, Indexing)]) -> (Vec<String>, usize) {
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(HPACK_TABLE_BYTES_INITIAL));
        let mut repeated = Repeated::default();
        let mut encoded = 0;
        let read = blocks.iter().map(|(value, indexing)| {
            let mut out = Vec::new();
            encoder.begin(&mut out);
            repeated.write(
                (value.as_bytes(), BYTES_MAX),
                &mut encoder,
                &mut out,
                |encoder, out| {
                    encoded += 1;
                    encoder.field(b"x-one", value.as_bytes(), *indexing, out);
                },
            );
            let mut fields = FieldSection::default();
            decoder
                .decode(&out, u32::MAX, &mut fields)
                .expect("it is a block");
            let values = fields
                .iter()
                .map(|(_, value)| String::from_utf8_lossy(value).into_owned());
            values.collect()
        });
        (read.collect(), encoded)
    }

    #[test]
    fn encoding_is_cached_once_table_is_unchanged() {
        let kept = Indexing::Incremental;
        let (read, encoded) = exchange(&[("a", kept); 5]);
        assert_eq!(read, ["a"; 5]);
        // The first call fills the table; the second one's output stays valid.
        assert_eq!(encoded, 2);
    }

    #[test]
    fn other_text_or_table_is_encoded_again() {
        let (kept, without) = (Indexing::Incremental, Indexing::Without);
        let (read, encoded) = exchange(&[
            ("a", without),
            ("a", without),
            ("b", without),
            ("a", without),
            ("c", kept),
            ("a", without),
        ]);
        assert_eq!(read, ["a", "a", "b", "a", "c", "a"]);
        assert_eq!(encoded, 5);
    }

    #[test]
    fn long_text_is_not_cached() {
        let long = "x".repeat(BYTES_MAX + 1);
        let (read, encoded) = exchange(&[(&*long, Indexing::Without); 3]);
        assert_eq!(read, [&*long; 3]);
        assert_eq!(encoded, 3);
    }
}
