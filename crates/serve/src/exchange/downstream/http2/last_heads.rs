//! The last encoded response heads of a connection: consecutive heads are often identical.

use onrush_http::Method;
use onrush_http::http2::hpack::{Encoder, Repeated};
use onrush_http::response::ResponseHead;

use crate::exchange::reply::fields::{BodyLength, HeadInputs};
use crate::limits::http2::HTTP2_CACHED_HEAD_MAX;

/// The last rendered head and the last head of a server's response.
#[derive(Default)]
pub(crate) struct LastHeads {
    pub(super) rendered: Repeated,
    forwarded: Repeated,
    /// Inputs from which the last head of a server's response was encoded.
    text: Vec<u8>,
    length: Option<BodyLength>,
}

impl LastHeads {
    /// Appends the encoded head of a server's response and returns the body length it declares. Calls `fields` only if
    /// the inputs differ from the last head's.
    pub(crate) fn forwarded(
        &mut self,
        (head, method, made_of): (&ResponseHead<'_, '_>, Method, HeadInputs),
        encoder: &mut Encoder,
        out: &mut Vec<u8>,
        fields: impl FnOnce(&mut Encoder, &mut Vec<u8>) -> Option<BodyLength>,
    ) -> Option<BodyLength> {
        let HeadInputs::Head { date, length } = made_of else {
            return fields(encoder, out);
        };
        self.text.clear();
        let (kind, bytes) = match length {
            None => (0, 0),
            Some(BodyLength::Unknown) => (1, 0),
            Some(BodyLength::Known(bytes)) => (2, bytes),
        };
        self.text
            .extend_from_slice(&[u8::from(method == Method::Head), kind]);
        self.text.extend_from_slice(&head.status.to_be_bytes());
        self.text.extend_from_slice(&bytes.to_be_bytes());
        self.text.extend_from_slice(&date);
        // Separators: neither names nor values contain these bytes.
        for header in head.headers {
            for (part, end) in [(header.name.as_bytes(), 0), (header.value, b'\n')] {
                self.text.extend_from_slice(part);
                self.text.push(end);
            }
        }
        let text = (&*self.text, HTTP2_CACHED_HEAD_MAX);
        let length = &mut self.length;
        self.forwarded.write(text, encoder, out, |encoder, out| {
            *length = fields(encoder, out);
        });
        self.length
    }
}
