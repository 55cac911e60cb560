//! The end of a response body, where it can differ from the declared length.

use onrush_http::Version;

use super::{Reply, ReplyWriter};

impl Reply<'_> {
    /// The body ends with an explicit end even if its length is declared, because trailers may follow. No effect on
    /// HTTP/1, where the length alone is the end.
    pub(crate) fn set_explicit_end(&mut self) {
        if let ReplyWriter::Http2(to) = &self.to {
            to.ends_apart();
        }
    }

    /// Ends a body with an explicit end after the next `bytes` bytes.
    pub(crate) fn set_end_after(&mut self, bytes: usize) {
        if let ReplyWriter::Http2(to) = &self.to {
            to.ends_with(bytes);
        }
    }

    /// Whether trailers can follow the current body.
    pub(crate) fn supports_trailers(&self) -> bool {
        match &self.to {
            ReplyWriter::Http1(to) => to.takes_trailers(),
            ReplyWriter::Http2(_) => true,
        }
    }

    /// Whether the client can receive trailers only after a chunked body, not after one with `Content-Length`.
    pub(crate) fn needs_chunks_for_trailers(&self) -> bool {
        matches!(&self.to, ReplyWriter::Http1(to) if to.asked.version == Version::Http11)
    }
}
