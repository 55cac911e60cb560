//! The head of a request as it was sent last on a connection.

use onrush_http::http2::hpack::{Encoder, Indexing, Repeated, Sensitivity};
use onrush_http::http2::message::Lines;

use crate::limits::MULTIPLEXED_REPEATED_MAX;

/// The last head, and its fields: who calls a method of a service sends the same one again, and requests of one client, which mostly come
/// together, differ in their paths alone.
#[derive(Default)]
pub(super) struct RepeatedHead {
    whole: Repeated,
    fields: Repeated,
}

impl RepeatedHead {
    /// Appends the block of this `head`, for a server of `scheme`, which is always the same one.
    #[inline]
    pub(super) fn put(
        &mut self,
        (head, sensitivity): (&[u8], Sensitivity),
        scheme: &str,
        encoder: &mut Encoder,
        out: &mut Vec<u8>,
    ) {
        if sensitivity == Sensitivity::NeverIndexed {
            encoder.set_sensitivity(sensitivity);
            return Lines::whole(head).put(scheme, Indexing::Without, encoder, out);
        }
        let text = (head, MULTIPLEXED_REPEATED_MAX);
        self.whole.write(text, encoder, out, |encoder, out| {
            let lines = Lines::whole(head);
            lines.put_start(scheme, Indexing::Without, encoder, out);
            let text = (lines.fields_text(), MULTIPLEXED_REPEATED_MAX);
            self.fields.write(text, encoder, out, |encoder, out| {
                lines.put_fields(encoder, out);
            });
        });
    }
}
