//! Bodies that lie in memory, frame by frame as windows take them (RFC 9113 6.9.1), and their ends (RFC 9113 8.1).

use super::{Closed, Connection};
use crate::http2::message::{fields_of_lines, write};
use crate::http2::stream::{End, Stream};

impl Connection {
    /// Sends the start of `left`, the rest of a body, in one DATA frame: as much as is [sendable](Connection::sendable). A frame
    /// with all of it has `end`. Returns the number of bytes sent.
    ///
    /// # Errors
    /// When the stream is closed; nothing is written then.
    #[inline]
    pub fn send_body(
        &mut self,
        stream: Stream,
        left: &[u8],
        end: End,
        out: &mut Vec<u8>,
    ) -> Result<usize, Closed> {
        let count = self.sendable(stream).min(left.len());
        let end = match count == left.len() {
            true => end,
            false => End::Open,
        };
        self.data(stream, count, end, out)?;
        out.extend_from_slice(&left[..count]);
        Ok(count)
    }

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
