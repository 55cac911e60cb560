//! Sends bodies from memory within the flow-control windows (RFC 9113 6.9.1), and ends messages (RFC 9113 8.1).

use super::{Closed, Connection};
use crate::http2::message::{fields_of_lines, write};
use crate::http2::stream::{End, Stream};

impl Connection {
    /// Sends the next bytes of a body in one DATA frame: as many of `left` as are [sendable](Connection::sendable). The
    /// frame has `end` if it contains all of `left`. Returns the number of bytes sent.
    ///
    /// # Errors
    /// If the stream is closed; nothing is written then.
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

    /// Ends a message whose body is written: with trailers made of [field lines](fields_of_lines), or with an empty
    /// DATA frame if there are none.
    ///
    /// # Errors
    /// If the stream is closed; nothing is written then.
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
