//! Changes to a response head when the body is encoded.

use onrush_http::encoding::{Coding, varies_by};
use onrush_http::{Header, header_is};

use crate::exchange::reply::fields::Fields;
use crate::rules::compress::{CompressionChange, VARY};

impl CompressionChange {
    /// Whether a field is removed: length and ranges of the encoded response are unknown, `ETag` is rewritten as weak,
    /// and an existing `Content-Encoding` can only be `identity`.
    pub(crate) fn drops(self, name: &str) -> bool {
        match self {
            CompressionChange::Nothing | CompressionChange::Vary => false,
            CompressionChange::Weaken => header_is(name, "etag"),
            CompressionChange::Encode(_) => {
                let dropped = [
                    "etag",
                    "content-length",
                    "accept-ranges",
                    "content-encoding",
                ];
                dropped.iter().any(|dropped| header_is(name, dropped))
            }
        }
    }

    /// Writes the additional fields that replace or extend `headers`, except fields for which `unwanted` returns true.
    #[inline]
    pub(crate) fn write(
        self,
        headers: &[Header<'_>],
        writer: &mut Fields<'_>,
        unwanted: impl Fn(&str) -> bool,
    ) {
        if self == CompressionChange::Nothing {
            return;
        }
        if let CompressionChange::Encode(coding) = self {
            write_coding(writer, coding);
        }
        if self != CompressionChange::Vary
            && !unwanted("etag")
            && let Some(etag) = headers.iter().find(|header| header_is(header.name, "etag"))
        {
            write_weak_etag(writer, etag.value);
        }
        // Caches need `Vary` even if the route's edits remove the other fields.
        if unwanted("vary") || !varies_by(headers, "accept-encoding") {
            writer.lines(VARY);
        }
    }
}

pub(crate) fn write_coding(writer: &mut Fields<'_>, coding: Coding) {
    writer.header("Content-Encoding", coding.token().as_bytes());
}

/// Writes a weak `ETag`: the content is the same, the bytes are not (RFC 9110 8.8.1).
pub(crate) fn write_weak_etag(writer: &mut Fields<'_>, etag: &[u8]) {
    let prefix: &[u8] = if etag.starts_with(b"W/") { b"" } else { b"W/" };
    writer.header_of("ETag", &[prefix, etag]);
}
