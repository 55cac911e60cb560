//! Memory for the fields of messages of HTTP/2, which goes from one message to the next.

use onrush_http::http2::fields::FieldSection;

/// Fields that are done with.
#[derive(Default)]
#[expect(
    clippy::vec_box,
    reason = "the boxes themselves go to the messages and come back"
)]
pub(crate) struct SpareFields(Vec<Box<FieldSection>>);

impl SpareFields {
    /// Room for fields, in which others may stand.
    pub(crate) fn take(&mut self) -> Box<FieldSection> {
        self.0.pop().unwrap_or_default()
    }

    /// Nobody needs `fields` any more. They are kept where fewer than `most` are, and theirs is the room of usual ones.
    pub(crate) fn give(&mut self, fields: Box<FieldSection>, most: usize) {
        if self.0.len() < most && fields.room_bytes() <= ROOM_BYTES_MAX {
            self.0.push(fields);
        }
    }
}

/// Bytes of names and values: those of a browser with a cookie or two.
const ROOM_BYTES_MAX: usize = 4096;
