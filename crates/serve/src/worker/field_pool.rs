//! Memory for decoded HTTP/2 fields, reused from message to message.

use onrush_http::http2::fields::FieldSection;

#[derive(Default)]
#[expect(
    clippy::vec_box,
    reason = "the boxes themselves go to the messages and come back"
)]
pub(crate) struct FieldPool(Vec<Box<FieldSection>>);

impl FieldPool {
    /// Takes memory, which may still contain old fields.
    pub(crate) fn take(&mut self) -> Box<FieldSection> {
        self.0.pop().unwrap_or_default()
    }

    /// Returns memory. It is kept if fewer than `most` are, and it is not unusually large.
    pub(crate) fn give(&mut self, fields: Box<FieldSection>, most: usize) {
        if self.0.len() < most && fields.room_bytes() <= ROOM_BYTES_MAX {
            self.0.push(fields);
        }
    }
}

/// Maximum size of names and values in bytes: enough for a browser with a cookie or two.
const ROOM_BYTES_MAX: usize = 4096;
