//! Cache of a connection's last request head: its header block is sent again if the next head is equal.

use super::request_lines::Lines;
use crate::http2::hpack::{Encoder, Indexing, Repeated, Sensitivity};
use crate::http2::limits::REPEATED_HEAD_BYTES_MAX;

/// Last request head and its header block. The fields after the request line are also cached separately, for requests
/// that differ only in their path. Heads that must never be indexed are not cached.
#[derive(Debug, Default)]
pub struct HeadCache {
    whole: Repeated,
    fields: Repeated,
}

impl HeadCache {
    /// Appends the header block of `head`, a request head of HTTP/1.1 including its empty line. Every call must have the same
    /// `scheme`, `path_indexing` and `encoder`.
    #[inline]
    pub fn put(
        &mut self,
        (head, sensitivity): (&[u8], Sensitivity),
        (scheme, path_indexing): (&str, Indexing),
        encoder: &mut Encoder,
        out: &mut Vec<u8>,
    ) {
        if sensitivity == Sensitivity::NeverIndexed {
            encoder.set_sensitivity(sensitivity);
            return Lines::whole(head).put(scheme, path_indexing, encoder, out);
        }
        let text = (head, REPEATED_HEAD_BYTES_MAX);
        self.whole.write(text, encoder, out, |encoder, out| {
            let lines = Lines::whole(head);
            lines.put_start(scheme, path_indexing, encoder, out);
            let text = (lines.fields_text(), REPEATED_HEAD_BYTES_MAX);
            self.fields.write(text, encoder, out, |encoder, out| {
                lines.put_fields(encoder, out);
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http2::fields::FieldSection;
    use crate::http2::hpack::Decoder;
    use crate::limits::HPACK_TABLE_BYTES_INITIAL;

    /// Fields that a server decodes from the blocks of `heads` (RFC 9113 8.3.1).
    fn decoded(heads: &[(&str, Sensitivity)], path_indexing: Indexing) -> Vec<String> {
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(HPACK_TABLE_BYTES_INITIAL));
        let mut repeated = HeadCache::default();
        let decoded = heads.iter().map(|(head, sensitivity)| {
            let mut block = Vec::new();
            encoder.begin(&mut block);
            let what = (head.as_bytes(), *sensitivity);
            repeated.put(what, ("https", path_indexing), &mut encoder, &mut block);
            let mut fields = FieldSection::default();
            let read = decoder.decode(&block, u32::MAX, &mut fields);
            read.expect("it is a block");
            assert_eq!(fields.sensitivity(), *sensitivity);
            let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
            let fields = fields
                .iter()
                .map(|(name, value)| [name, &text(value)].join("="));
            fields.collect::<Vec<_>>().join(" ")
        });
        decoded.collect()
    }

    #[test]
    fn cached_head_encodes_same_fields() {
        let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\nX-One: 1\r\n\r\n");
        let wanted =
            |path: &str| format!(":method=GET :scheme=https :path={path} :authority=a x-one=1");
        let paths = ["/a", "/a", "/a", "/b", "/b", "/a", "/a"];
        let texts = paths.map(get);
        for indexing in [Indexing::Incremental, Indexing::Without] {
            let heads = texts
                .each_ref()
                .map(|text| (&**text, Sensitivity::Unmarked));
            assert_eq!(decoded(&heads, indexing), paths.map(wanted));
        }
    }

    #[test]
    fn sensitive_head_is_not_cached() {
        let head = "GET / HTTP/1.1\r\nHost: a\r\nX-Key: 1\r\n\r\n";
        let (usual, never) = (Sensitivity::Unmarked, Sensitivity::NeverIndexed);
        let heads = [usual, usual, never, never, usual].map(|it| (head, it));
        let wanted = ":method=GET :scheme=https :path=/ :authority=a x-key=1";
        assert_eq!(decoded(&heads, Indexing::Without), [wanted; 5]);
    }
}
