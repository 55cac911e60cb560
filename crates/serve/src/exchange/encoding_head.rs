//! What encoding changes in a response's head.

use onrush_http::encoding::{Coding, varies_by};
use onrush_http::{Header, header_is};

use crate::exchange::reply::fields::Fields;
use crate::rules::compress::{Change, VARY};

impl Change {
    /// Whether a field does not pass: the length and the ranges of an encoded response are not known, the tag is written
    /// anew, and a coding that was said before was that of none, `identity`.
    pub(crate) fn drops(self, name: &str) -> bool {
        match self {
            Change::Nothing | Change::Vary => false,
            Change::Weaken => header_is(name, "etag"),
            Change::Encode(_) => {
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

    /// Writes the fields that come in addition to `headers`, without those that are `unwanted`.
    #[inline]
    pub(crate) fn write(
        self,
        headers: &[Header<'_>],
        writer: &mut Fields<'_>,
        unwanted: impl Fn(&str) -> bool,
    ) {
        if self == Change::Nothing {
            return;
        }
        if let Change::Encode(coding) = self {
            write_coding(writer, coding);
        }
        if self != Change::Vary
            && !unwanted("etag")
            && let Some(etag) = headers.iter().find(|header| header_is(header.name, "etag"))
        {
            write_weak_etag(writer, etag.value);
        }
        // Whatever becomes of other fields, caches have to know this.
        if unwanted("vary") || !varies_by(headers, "accept-encoding") {
            writer.lines(VARY);
        }
    }
}

/// `Content-Encoding`.
pub(crate) fn write_coding(writer: &mut Fields<'_>, coding: Coding) {
    writer.header("Content-Encoding", coding.token().as_bytes());
}

/// `ETag`, weak: the content is the same, its bytes are not (RFC 9110 8.8.1).
pub(crate) fn write_weak_etag(writer: &mut Fields<'_>, etag: &[u8]) {
    let prefix: &[u8] = if etag.starts_with(b"W/") { b"" } else { b"W/" };
    writer.header_of("ETag", &[prefix, etag]);
}
