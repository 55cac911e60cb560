//! Sending. Everything is written to the caller's buffer; nothing is stored here.

use super::{Closed, Connection};
use crate::http2::code::{Code, ConnectionError, StreamError};
use crate::http2::frame::{
    self, Flags, HEAD_BYTES, Head, Kind, NUMBER_MAX, put_head, set_flags, set_length,
};
use crate::http2::hpack::Encoder;
use crate::http2::priority::Priority;
use crate::http2::settings::Role;
use crate::http2::stream::{Content, End, Incoming, Outgoing, SendState, Stream};

/// Why a client cannot open a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CannotOpen {
    /// The server's limit of concurrent streams is reached: wait for one to end.
    Full,
    /// The server or the client has sent GOAWAY: use another connection.
    GoingAway,
    /// All ids are used: use another connection.
    Exhausted,
}

impl std::fmt::Display for CannotOpen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            CannotOpen::Full => "the server allows no more concurrent streams",
            CannotOpen::GoingAway => "the connection takes no new streams",
            CannotOpen::Exhausted => "all stream IDs of the connection are used",
        })
    }
}

impl std::error::Error for CannotOpen {}

/// The window that prevents a stream from sending data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// The stream's window.
    Stream,
    /// The window of the connection, which blocks all streams.
    Connection,
}

impl Connection {
    /// Opens a stream. `fields` writes the request's fields, pseudo-fields first; `content` is what the response may
    /// have.
    ///
    /// # Errors
    /// If no stream can be opened; nothing is written then.
    ///
    /// # Panics
    /// On a server.
    pub fn open(
        &mut self,
        end: End,
        content: Content,
        out: &mut Vec<u8>,
        fields: impl FnOnce(&mut Encoder, &mut Vec<u8>),
    ) -> Result<Stream, CannotOpen> {
        assert_eq!(self.role, Role::Client, "servers cannot open streams");
        if self.last_opened.is_some() {
            return Err(CannotOpen::GoingAway);
        }
        if self.next > NUMBER_MAX {
            return Err(CannotOpen::Exhausted);
        }
        if self.streams.open() >= self.streams_max() {
            return Err(CannotOpen::Full);
        }
        let id = self.next;
        self.next += 2;
        let mut slot = self.new_slot(id);
        slot.incoming = Incoming::Head;
        slot.content = content;
        if end == End::Stream {
            slot.outgoing = Outgoing::Nothing;
        }
        let stream = self.streams.insert(slot);
        self.put_block(id, out, |encoder, out| {
            fields(encoder, out);
            end
        });
        Ok(stream)
    }

    /// Writes the head of a final or interim response, without flow control. `fields` writes pseudo-fields first.
    ///
    /// # Errors
    /// If the stream is closed; nothing is written then, and `fields` is not called.
    #[inline]
    pub fn head(
        &mut self,
        stream: Stream,
        end: End,
        out: &mut Vec<u8>,
        fields: impl FnOnce(&mut Encoder, &mut Vec<u8>),
    ) -> Result<(), Closed> {
        let put = |encoder: &mut Encoder, out: &mut Vec<u8>| {
            fields(encoder, out);
            end
        };
        self.head_then(stream, out, put).map(drop)
    }

    /// [`Connection::head`], where `fields` returns whether the head ends the stream. Returns the same.
    ///
    /// # Errors
    /// As [`Connection::head`].
    #[inline]
    pub fn head_then(
        &mut self,
        stream: Stream,
        out: &mut Vec<u8>,
        fields: impl FnOnce(&mut Encoder, &mut Vec<u8>) -> End,
    ) -> Result<End, Closed> {
        self.check_outgoing(stream)?;
        let end = self.put_block(stream.id, out, fields);
        if end == End::Stream {
            self.end_outgoing(stream);
        }
        Ok(end)
    }

    /// Writes trailers, which end the message.
    ///
    /// # Errors
    /// As [`Connection::head`].
    pub fn trailers(
        &mut self,
        stream: Stream,
        out: &mut Vec<u8>,
        fields: impl FnOnce(&mut Encoder, &mut Vec<u8>),
    ) -> Result<(), Closed> {
        self.head(stream, End::Stream, out, fields)
    }

    /// Writes the header of a DATA frame; the caller appends `bytes` of [sendable](Connection::sendable) payload.
    ///
    /// # Errors
    /// If the stream is closed; nothing is written then.
    #[inline]
    pub fn data(
        &mut self,
        stream: Stream,
        bytes: usize,
        end: End,
        out: &mut Vec<u8>,
    ) -> Result<(), Closed> {
        self.check_outgoing(stream)?;
        assert!(
            bytes <= self.sendable(stream),
            "the caller asks what is sendable"
        );
        let flags = match end {
            End::Open => Flags::default(),
            End::Stream => Flags::END_STREAM,
        };
        let head = Head {
            length: bytes as u32,
            kind: Kind::Data,
            flags,
            stream: stream.id,
        };
        put_head(head, out);
        self.sending.take(bytes as u32);
        self.guard.data_sent(bytes);
        let slot = self.streams.get_mut(stream).ok_or(Closed)?;
        slot.sending.take(bytes as u32);
        if end == End::Stream {
            self.end_outgoing(stream);
        } else if slot.turn == SendState::Queued && slot.sending.room() == 0 {
            self.streams.set_send_state(stream, SendState::Blocked);
        }
        Ok(())
    }

    /// Maximum payload of a DATA frame on this stream now, by windows and frame size. 0 if the stream is closed.
    #[inline]
    pub fn sendable(&self, stream: Stream) -> usize {
        let room = self.send_window(stream);
        room.min(self.peer.frame_bytes_max as usize)
    }

    /// Bytes of data that both windows allow on this stream now, in any number of frames. 0 if the stream is closed.
    #[inline]
    pub fn send_window(&self, stream: Stream) -> usize {
        let slot = self.streams.get(stream);
        slot.map_or(0, |slot| {
            slot.sending.room().min(self.sending.room()) as usize
        })
    }

    /// Window that prevents an open stream from sending data, if one does.
    pub fn blocked(&self, stream: Stream) -> Option<Blocked> {
        let slot = self.streams.get(stream)?;
        if slot.sending.room() == 0 {
            return Some(Blocked::Stream);
        }
        (self.sending.room() == 0).then_some(Blocked::Connection)
    }

    /// Queues a stream that has data to send, until it ends or [`Connection::not_ready`] is called.
    #[inline]
    pub fn ready(&mut self, stream: Stream) {
        let Some(slot) = self.streams.get(stream) else {
            return;
        };
        let turn = match slot.sending.room() {
            0 => SendState::Blocked,
            _ => SendState::Queued,
        };
        if slot.outgoing == Outgoing::Frames {
            self.streams.set_send_state(stream, turn);
        }
    }

    /// Removes a stream that has nothing to send from the queue.
    #[inline]
    pub fn not_ready(&mut self, stream: Stream) {
        if self.is_open(stream) {
            self.streams.set_send_state(stream, SendState::None);
        }
    }

    /// Whether a [ready](Connection::ready) stream has room in its own window. Data sent by another stream before [its
    /// turn](Connection::next_ready) uses up the connection's window.
    #[inline]
    pub fn has_ready(&self) -> bool {
        self.streams.has_ready()
    }

    /// Next stream to send data, by urgency (RFC 9218 10): ready, with room in both windows. It should send one or a
    /// few frames before the next call.
    #[inline]
    pub fn next_ready(&mut self) -> Option<Stream> {
        match self.sending.room() {
            0 => None,
            _ => self.streams.next_ready(),
        }
    }

    /// Priority of a stream; the default if it is closed.
    pub fn priority(&self, stream: Stream) -> Priority {
        let slot = self.streams.get(stream);
        slot.map_or(Priority::DEFAULT, |slot| slot.priority)
    }

    /// Overrides the priority that the client has set (RFC 9218 8).
    pub fn prioritize(&mut self, stream: Stream, priority: Priority) {
        if self.is_open(stream) {
            self.streams.prioritize(stream, priority);
        }
    }

    /// Resets an open stream; frames that still arrive on it are ignored. A server whose response ends before the
    /// request uses `NO_ERROR` (RFC 9113 8.1).
    #[inline]
    pub fn reset(&mut self, stream: Stream, code: Code, out: &mut Vec<u8>) {
        if self.is_open(stream) {
            self.streams.remove(stream);
            self.note_reset(stream.id);
            frame::reset(stream.id, code, out);
        }
    }

    /// Resets a stream whose message is malformed (RFC 9113 8.1.1), and counts that as an error of the peer.
    ///
    /// # Errors
    /// If the peer made too many errors. GOAWAY is written, as by [`Connection::receive`].
    pub fn reject(
        &mut self,
        stream: Stream,
        reason: &'static str,
        out: &mut Vec<u8>,
    ) -> Result<(), ConnectionError> {
        if !self.is_open(stream) {
            return Ok(());
        }
        let rejected = self.fail_stream(stream, StreamError::protocol(reason), out);
        rejected
            .map(drop)
            .inspect_err(|error| self.fail(error, out))
    }

    /// Sends PING; the acknowledgement arrives as [`Event::Pong`](super::event::Event::Pong).
    pub fn ping(&mut self, payload: [u8; 8], out: &mut Vec<u8>) {
        frame::ping(payload, out);
    }

    /// Announces a graceful shutdown (RFC 9113 6.8). Streams in transit are still accepted until
    /// [`Connection::go_away`], which should follow at least a round trip later; a PING can measure that.
    pub fn announce_shutdown(&mut self, out: &mut Vec<u8>) {
        if self.last_accepted == NUMBER_MAX {
            frame::go_away(NUMBER_MAX, Code::NO_ERROR, "", out);
        }
    }

    /// Accepts no new streams from now on; streams that the peer opens are ignored, as the last id in GOAWAY tells it.
    /// Open streams continue. A client opens no more streams.
    pub fn go_away(&mut self, code: Code, out: &mut Vec<u8>) {
        self.last_accepted = self.last_accepted.min(self.last_peer_stream);
        let last_opened = self.next.saturating_sub(2);
        self.last_opened = Some(
            self.last_opened
                .map_or(last_opened, |last| last.min(last_opened)),
        );
        frame::go_away(self.last_accepted, code, "", out);
    }

    #[inline]
    fn check_outgoing(&self, stream: Stream) -> Result<(), Closed> {
        match self.streams.get(stream).map(|slot| slot.outgoing) {
            Some(Outgoing::Frames) => Ok(()),
            Some(Outgoing::Nothing) | None => Err(Closed),
        }
    }

    #[inline]
    fn put_block(
        &mut self,
        id: u32,
        out: &mut Vec<u8>,
        fields: impl FnOnce(&mut Encoder, &mut Vec<u8>) -> End,
    ) -> End {
        let at = out.len();
        let mut head = Head {
            length: 0,
            kind: Kind::Headers,
            flags: Flags::END_HEADERS,
            stream: id,
        };
        put_head(head, out);
        self.encoder.begin(out);
        let end = fields(&mut self.encoder, out);
        if end == End::Stream {
            head.flags = head.flags.and(Flags::END_STREAM);
            set_flags(out, at, head.flags);
        }
        let length = out.len() - at - HEAD_BYTES;
        let length_max = self.peer.frame_bytes_max as usize;
        match length > length_max {
            true => split_block(head, at, length_max, out),
            false => set_length(out, at, length),
        }
        end
    }
}

/// Splits a block that is too large for one frame into HEADERS and CONTINUATION (RFC 9113 6.10).
#[cold]
fn split_block(head: Head, at: usize, length_max: usize, out: &mut Vec<u8>) {
    let block = out.split_off(at + HEAD_BYTES);
    out.truncate(at);
    let pieces = block.chunks(length_max);
    let last = pieces.len() - 1;
    for (number, piece) in pieces.enumerate() {
        let end_stream = Flags(head.flags.0 & Flags::END_STREAM.0);
        let (kind, flags) = match number {
            0 => (Kind::Headers, end_stream),
            _ => (Kind::Continuation, Flags::default()),
        };
        let flags = match number == last {
            true => flags.and(Flags::END_HEADERS),
            false => flags,
        };
        let head = Head {
            length: piece.len() as u32,
            kind,
            flags,
            stream: head.stream,
        };
        put_head(head, out);
        out.extend_from_slice(piece);
    }
}
