//! How bodies end (RFC 9113 8.1).

use super::{Closed, Connection};
use crate::http2::message::{fields_of_lines, write};
use crate::http2::stream::{End, Stream};

impl Connection {
    /// Ends a stream whose body is written: with the trailers of these [lines](fields_of_lines), or an empty DATA frame where there
    /// are none.
    ///
    /// # Errors
    /// When the stream is closed; nothing is written then.
    pub fn end_with(
        &mut self,
        stream: Stream,
        trailer_lines: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Closed> {
        let mut trailers = fields_of_lines(trailer_lines).peekable();
        if trailers.peek().is_none() {
            return self.data(stream, 0, End::Stream, out);
        }
        self.trailers(stream, out, |encoder, out| {
            for (name, value) in trailers {
                write::field(name, value, encoder, out);
            }
        })
    }
}
