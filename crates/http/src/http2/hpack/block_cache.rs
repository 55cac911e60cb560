//! Cache of the last decoded block: clients that call the same method or request the same resource send the same bytes.

use crate::http2::fields::FieldSection;
use crate::http2::limits::{HPACK_REPEATED_BLOCK_MAX, HPACK_REPEATED_FIELDS_MAX};

/// Last block that did not change the table, and its fields once it has been received twice.
#[derive(Debug, Default)]
pub(super) struct BlockCache {
    block: Vec<u8>,
    list_bytes_max: u32,
    stage: Stage,
    fields: FieldSection,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Stage {
    #[default]
    Nothing,
    /// Received once; most blocks are never repeated.
    Bytes,
    Fields,
}

impl BlockCache {
    /// Copies the cached fields into `section` if this is the cached block, and returns whether it is. Valid as long as
    /// the table is unchanged.
    #[inline]
    pub(super) fn put(
        &self,
        block: &[u8],
        list_bytes_max: u32,
        section: &mut FieldSection,
    ) -> bool {
        let is_known = self.stage == Stage::Fields && self.is(block, list_bytes_max);
        if is_known {
            section.copy_from(&self.fields);
        }
        is_known
    }

    #[inline]
    fn is(&self, block: &[u8], list_bytes_max: u32) -> bool {
        self.block == block && self.list_bytes_max == list_bytes_max
    }

    /// Records that `block` was decoded to `section` without a change of the table.
    #[inline]
    pub(super) fn learn(&mut self, block: &[u8], list_bytes_max: u32, section: &FieldSection) {
        if self.stage != Stage::Nothing && self.is(block, list_bytes_max) {
            if section.text_bytes() <= HPACK_REPEATED_FIELDS_MAX {
                self.fields.copy_from(section);
                self.stage = Stage::Fields;
            }
            return;
        }
        self.forget();
        if block.len() <= HPACK_REPEATED_BLOCK_MAX {
            self.block.extend_from_slice(block);
            self.list_bytes_max = list_bytes_max;
            self.stage = Stage::Bytes;
        }
    }

    /// Must be called when the table changes.
    #[inline]
    pub(super) fn forget(&mut self) {
        self.block.clear();
        self.stage = Stage::Nothing;
    }
}

#[cfg(test)]
mod tests {
    use crate::http2::fields::FieldSection;
    use crate::http2::hpack::{Decoder, Encoder, Error, Indexing};
    use crate::limits::HPACK_TABLE_BYTES_INITIAL;

    const LIST_BYTES_MAX: u32 = 1000;

    /// Results of decoding the blocks with one decoder.
    fn decode(blocks: &[Vec<u8>]) -> Vec<Result<String, Error>> {
        let mut decoder = Decoder::new(HPACK_TABLE_BYTES_INITIAL);
        let mut fields = FieldSection::default();
        let decoded = blocks.iter().map(|block| {
            decoder.decode(block, LIST_BYTES_MAX, &mut fields)?;
            let text = format!(
                "{fields:?} {} {:?} {}",
                fields.list_bytes(),
                fields.sensitivity(),
                fields.is_too_large()
            );
            // A change to the section must not affect the next block.
            fields.clear();
            Ok(text)
        });
        decoded.collect()
    }

    fn encode(encoder: &mut Encoder, fields: &[(&str, &str, Indexing)]) -> Vec<u8> {
        let mut out = Vec::new();
        encoder.begin(&mut out);
        for (name, value, indexing) in fields {
            encoder.field(name.as_bytes(), value.as_bytes(), *indexing, &mut out);
        }
        out
    }

    #[test]
    fn repeated_block_decodes_identically() {
        let (kept, without) = (Indexing::Incremental, Indexing::Without);
        let mut encoder = Encoder::new();
        let one = [
            (":path", "/a", without),
            ("cookie", "a=b", kept),
            ("cookie", "c=d", kept),
            ("x-one", "1", kept),
        ];
        let other = [(":path", "/b", without), ("x-one", "1", kept)];
        let long = "x".repeat(LIST_BYTES_MAX as usize);
        let large = [("x-large", &*long, without)];
        let messages: [&[_]; 12] = [
            &one, &one, &one, &one, &one, &other, &one, &one, &one, &large, &large, &large,
        ];
        let blocks: Vec<_> = messages
            .iter()
            .map(|fields| encode(&mut encoder, fields))
            .collect();
        let decoded: Vec<_> = decode(&blocks).into_iter().map(Result::unwrap).collect();
        let alone: Vec<_> = messages
            .iter()
            .map(|fields| encode(&mut Encoder::new(), fields))
            .map(|block| decode(&[block]).remove(0).unwrap())
            .collect();
        assert_eq!(decoded, alone);
        assert!(decoded[8].contains("a=b; c=d"), "{}", decoded[8]);
        assert!(decoded[11].ends_with("true"), "{}", decoded[11]);
    }

    #[test]
    fn cached_block_is_invalid_after_table_change() {
        let kept = Indexing::Incremental;
        let mut encoder = Encoder::new();
        let first = encode(&mut encoder, &[("x-one", "1", kept)]);
        let again = encode(&mut encoder, &[("x-one", "1", kept)]);
        let second = encode(&mut encoder, &[("x-two", "2", kept)]);
        let mut blocks = vec![first, again.clone(), again.clone(), again.clone(), second];
        blocks.extend([again.clone(), again.clone(), again.clone()]);
        let decoded: Vec<_> = decode(&blocks).into_iter().map(Result::unwrap).collect();
        let is_one = decoded.iter().map(|text| text.contains("x-one"));
        let wanted = [true, true, true, true, false, false, false, false];
        assert!(is_one.eq(wanted), "{decoded:?}");
        // Resize the table to zero and back.
        blocks.extend([vec![0x20, 0x3f, 0xe1, 0x1f], again]);
        let decoded = decode(&blocks);
        assert_eq!(decoded[8], decode(&[Vec::new()])[0]);
        assert_eq!(decoded[9], Err(Error::UnknownIndex));
    }
    #[test]
    fn never_indexed_flag_is_repeated() {
        let (never, without) = (Indexing::Never, Indexing::Without);
        for (name, value, indexing, is_said) in [
            ("x-one", "1", never, true),
            ("set-cookie", "a=b", never, true),
            (":path", "/token", never, true),
            ("x-one", "1", without, false),
            // Assumed for these anyway.
            ("authorization", "Basic eDp5", never, false),
            ("cookie", "a=b", never, false),
        ] {
            let mut encoder = Encoder::new();
            let blocks: Vec<_> = (0..4)
                .map(|_| encode(&mut encoder, &[(name, value, indexing)]))
                .collect();
            for decoded in decode(&blocks) {
                let decoded = decoded.unwrap();
                assert_eq!(
                    decoded.contains("NeverIndexed"),
                    is_said,
                    "{name} {decoded}"
                );
            }
        }
    }
}
