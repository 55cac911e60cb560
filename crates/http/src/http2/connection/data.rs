//! DATA (RFC 9113 6.1): returns content as it arrives, and checks it against both windows and Content-Length.
//!
//! The whole frame is subtracted from the windows when its header is read. Padding is returned to them at once; content
//! when the user releases it, or here if it is discarded.

use super::event::{EventKind, Progress};
use super::parse_state::{Data, ParseState};
use super::{Connection, STREAM_CLOSED};
use crate::http2::code::{Code, ConnectionError, StreamError};
use crate::http2::flood_guard::Flood;
use crate::http2::frame::{self, Flags, HEAD_BYTES, Head, padded};
use crate::http2::stream::{End, Incoming, Stream, UNKNOWN};

impl Connection {
    #[inline]
    pub(super) fn data_frame(
        &mut self,
        head: Head,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Progress, ConnectionError> {
        let Some((before, padding)) = padded(&head, &input[HEAD_BYTES..], 0)? else {
            return Ok(Progress::need(HEAD_BYTES + 1));
        };
        if self.receiving.take(head.length).is_err() {
            return Err(ConnectionError::new(
                Code::FLOW_CONTROL_ERROR,
                "more data than the connection's window allows",
            ));
        }
        let end = match head.flags.has(Flags::END_STREAM) {
            true => End::Stream,
            false => End::Open,
        };
        let left = head.length - before - padding;
        if left == 0 && end == End::Open {
            self.guard.chatter(Flood::EmptyData)?;
        }
        self.guard.data_received(left as usize);
        let Some(stream) = self.streams.find(head.stream) else {
            let found = self.data_of_closed(head, out)?;
            return Ok(Progress::of(HEAD_BYTES, found));
        };
        let taken = self.take_from_stream(stream, head.length, u64::from(left), end);
        if let Err(error) = taken {
            self.discard(head.length, out);
            self.skip(head.length);
            let found = self.fail_stream(stream, error, out)?;
            return Ok(Progress::of(HEAD_BYTES, found));
        }
        if before + padding > 0 {
            self.release(stream, before + padding, out);
        }
        let rest = Data {
            stream,
            left,
            padding,
            end,
        };
        self.more_data(input, HEAD_BYTES + before as usize, rest, out)
    }

    /// Subtracts a frame of `bytes` including padding, with `content` excluding it, before its payload has arrived.
    #[inline]
    fn take_from_stream(
        &mut self,
        stream: Stream,
        bytes: u32,
        content: u64,
        end: End,
    ) -> Result<(), StreamError> {
        let slot = self.streams.get_mut(stream).ok_or(STREAM_CLOSED)?;
        match slot.incoming {
            Incoming::Content => {}
            Incoming::Nothing => return Err(STREAM_CLOSED),
            Incoming::Head => return Err(StreamError::protocol("data before the head")),
        }
        if slot.receiving.take(bytes).is_err() {
            return Err(StreamError::new(
                Code::FLOW_CONTROL_ERROR,
                "more data than the stream's window allows",
            ));
        }
        // RFC 9113 8.1.1.
        if slot.content_left != UNKNOWN {
            let left = slot.content_left.checked_sub(content);
            slot.content_left =
                left.ok_or(StreamError::protocol("more data than Content-Length"))?;
            if end == End::Stream && slot.content_left > 0 {
                return Err(StreamError::protocol("less data than Content-Length"));
            }
        }
        Ok(())
    }

    /// Handles the part of a DATA frame at `start`: as much content as has arrived.
    #[inline]
    pub(super) fn more_data(
        &mut self,
        input: &[u8],
        start: usize,
        mut rest: Data,
        out: &mut Vec<u8>,
    ) -> Result<Progress, ConnectionError> {
        let bytes = (input.len() - start).min(rest.left as usize);
        let done = start + bytes;
        if bytes == 0 && rest.left > 0 {
            self.expect = ParseState::Data(rest);
            return Ok(Progress::of(done, EventKind::Nothing));
        }
        let stream = rest.stream;
        let all = rest.left;
        rest.left -= bytes as u32;
        let end = match rest.left {
            0 => rest.end,
            _ => End::Open,
        };
        if !self.is_open(stream) {
            // The user reset the stream in the middle of the frame.
            self.discard(all, out);
            self.skip(rest.left + rest.padding);
            return Ok(Progress::of(done, EventKind::Nothing));
        }
        match rest.left {
            0 => self.skip(rest.padding),
            _ => self.expect = ParseState::Data(rest),
        }
        if end == End::Stream {
            self.end_incoming(stream);
        } else if bytes == 0 {
            return Ok(Progress::of(done, EventKind::Nothing));
        }
        Ok(Progress::of(done, EventKind::Data { stream, bytes, end }))
    }

    #[inline]
    pub(super) fn end_incoming(&mut self, stream: Stream) {
        if let Some(slot) = self.streams.get_mut(stream) {
            slot.incoming = Incoming::Nothing;
        }
        self.close_if_over(stream);
    }

    /// Handles DATA on a stream that is not open: sent before our RST_STREAM arrived, or an error (RFC 9113 5.1).
    fn data_of_closed(
        &mut self,
        head: Head,
        out: &mut Vec<u8>,
    ) -> Result<EventKind, ConnectionError> {
        if self.is_idle(head.stream) {
            return Err(ConnectionError::protocol("data on an idle stream"));
        }
        self.guard.late(head.length.into())?;
        self.discard(head.length, out);
        self.skip(head.length);
        if self.gone.may_be_in_transit(head.stream) || head.stream > self.last_accepted {
            return Ok(EventKind::Nothing);
        }
        self.fail_id(head.stream, STREAM_CLOSED, out)?;
        Ok(EventKind::DataOfClosed(head.stream))
    }

    /// Returns discarded bytes to the connection's window. WINDOW_UPDATE is sent when half of the stream's window is
    /// due, or of the connection's if smaller: unread streams could hold more than half of the connection's window, so
    /// that half of it would never become due and it would stay exhausted.
    fn discard(&mut self, bytes: u32, out: &mut Vec<u8>) {
        let local = &self.local;
        let window = local.connection_window.min(local.stream_window);
        if let Some(increment) = self.receiving.release(bytes, window) {
            frame::window_update(0, increment, out);
        }
    }

    /// Releases `bytes` of content that the user has processed or will ignore, also for a closed stream. Each byte of
    /// [`Event::Data`](crate::http2::Event::Data) must be released once, or the connection's window shrinks by it.
    /// Writes WINDOW_UPDATE once enough bytes are released.
    #[inline]
    pub fn release(&mut self, stream: Stream, bytes: u32, out: &mut Vec<u8>) {
        self.discard(bytes, out);
        self.release_stream_window(stream, bytes, out);
    }

    /// First half of [`Connection::release`]: `bytes` of content no longer count against the window of the connection.
    /// Unread streams thus leave it to the others; their own windows limit what they hold.
    pub fn release_connection_window(&mut self, bytes: u32, out: &mut Vec<u8>) {
        self.discard(bytes, out);
    }

    /// Second half: `bytes` of content no longer count against the window of the stream.
    #[inline]
    pub fn release_stream_window(&mut self, stream: Stream, bytes: u32, out: &mut Vec<u8>) {
        let window = self.local.stream_window;
        let Some(slot) = self.streams.get_mut(stream) else {
            return;
        };
        if slot.incoming == Incoming::Nothing {
            return;
        }
        if let Some(increment) = slot.receiving.release(bytes, window) {
            frame::window_update(stream.id, increment, out);
        }
    }
}
