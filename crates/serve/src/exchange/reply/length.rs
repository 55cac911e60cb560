//! Where the body of a response ends, when that is not where its length says.

use onrush_http::Version;

use super::{Reply, To};

impl Reply<'_> {
    /// The body of a response whose head is written ends where that is said: trailers may come behind it, though its length was
    /// said. Over HTTP/1 the length alone is the end.
    pub(crate) fn ends_apart(&mut self) {
        if let To::Http2(to) = &self.to {
            to.ends_apart();
        }
    }

    /// Such a body ends with so many bytes, which are written next.
    pub(crate) fn ends_with(&mut self, bytes: usize) {
        if let To::Http2(to) = &self.to {
            to.ends_with(bytes);
        }
    }

    /// Whether trailers can follow the body whose head was written.
    pub(crate) fn takes_trailers(&self) -> bool {
        match &self.to {
            To::Http1(to) => to.takes_trailers(),
            To::Http2(_) => true,
        }
    }

    /// Whether the client can get trailers only after a body in chunks, not after a body with a `Content-Length`.
    pub(crate) fn needs_chunks_for_trailers(&self) -> bool {
        matches!(&self.to, To::Http1(to) if to.asked.version == Version::Http11)
    }
}
