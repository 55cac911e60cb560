//! One connection (RFC 9113) of a client or server: consumes bytes, returns events, and writes frames into the caller's
//! buffer. It holds the state of both sides and of all streams, but no data.
//!
//! ```text
//!   bytes ──> receive ──> Head, Data, Trailers, Reset …     replies to the peer's frames ──> out
//!                          │
//!                        the user: head, data, trailers, reset, release ──> out
//! ```
//!
//! Data is never copied. Received data is returned as a range of the input, whole frames or parts. To send data, the
//! user calls [`Connection::data`], which writes a frame header, and appends the payload.

pub(crate) mod event;
mod parse_state;

mod receive;

mod block;
mod control;
mod data;

pub(crate) mod send;

mod body;

use std::time::Duration;

use super::code::{Code, ConnectionError, StreamError};
use super::fields::FieldSection;
use super::flood_guard::FloodGuard;
use super::flow::{ReceiveWindow, SendWindow};
use super::frame::{self, NUMBER_MAX};
use super::hpack::{Decoder, Encoder};
use super::limits::{EARLY_PRIORITIES_MAX, STREAMS_BEFORE_SETTINGS};
use super::priority::Priority;
use super::settings::{LocalSettings, PeerSettings, Role, TABLE_BYTES_DEFAULT, WINDOW_DEFAULT};
use super::stream::{ClosedStreams, Outgoing, Slot, Stream, Streams};
use event::{Cause, EventKind};
use parse_state::{Block, ParseState};

/// HTTP/2 connection.
pub struct Connection {
    role: Role,
    expect: ParseState,
    local: LocalSettings,
    /// Until the peer has acknowledged our settings it may use the defaults.
    acknowledged: Acknowledged,
    peer: PeerSettings,
    sending: SendWindow,
    receiving: ReceiveWindow,
    streams: Streams,
    gone: ClosedStreams,
    /// Highest stream opened by the peer.
    last_peer_stream: u32,
    next: u32,
    /// Peer streams above this one are ignored: `NUMBER_MAX` until we send GOAWAY.
    last_accepted: u32,
    /// Our streams above this one are not processed or not opened any more; `None` until one side sends GOAWAY.
    last_opened: Option<u32>,
    /// Priorities of streams that are not open yet, in a ring; id 0 is an unused entry.
    early_priorities: [(u32, Priority); EARLY_PRIORITIES_MAX],
    ahead_next: u8,
    /// Current field block, if it arrives in several pieces.
    block: Block,
    joined: Vec<u8>,
    fields: Box<FieldSection>,
    decoder: Decoder,
    encoder: Encoder,
    guard: FloodGuard,
}

const _: () = assert!(
    size_of::<Connection>() <= 1024,
    "the budget of an idle connection is 4 KiB, mostly for tables and the data of the user"
);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Acknowledged {
    NotYet,
    Yes,
}

/// Error: the stream is closed, because both sides have ended it or one has reset it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

impl std::fmt::Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the stream is closed")
    }
}

impl std::error::Error for Closed {}

impl Connection {
    /// Creates a connection and writes its first frames: a client's preface, SETTINGS, and WINDOW_UPDATE if the
    /// connection's window is larger than the default.
    pub fn new(role: Role, local: LocalSettings, out: &mut Vec<u8>) -> Self {
        let local = local.within_bounds();
        let (expect, next) = match role {
            Role::Client => (ParseState::Settings, 1),
            Role::Server => (ParseState::Preface, 2),
        };
        if role == Role::Client {
            out.extend_from_slice(frame::PREFACE);
        }
        local.put(role, out);
        if local.connection_window > WINDOW_DEFAULT {
            frame::window_update(0, local.connection_window - WINDOW_DEFAULT, out);
        }
        Connection {
            role,
            expect,
            local,
            acknowledged: Acknowledged::NotYet,
            peer: PeerSettings::ASSUMED,
            sending: SendWindow::new(WINDOW_DEFAULT),
            receiving: ReceiveWindow::new(local.connection_window),
            streams: Streams::new(),
            gone: ClosedStreams::default(),
            last_peer_stream: 0,
            next,
            last_accepted: NUMBER_MAX,
            last_opened: None,
            early_priorities: [(0, Priority::DEFAULT); EARLY_PRIORITIES_MAX],
            ahead_next: 0,
            block: Block::NONE,
            joined: Vec::new(),
            fields: Box::default(),
            decoder: Decoder::new(TABLE_BYTES_DEFAULT),
            encoder: Encoder::new(),
            guard: FloodGuard::new(local.resets_per_second),
        }
    }

    /// Settings of the peer.
    pub fn peer(&self) -> &PeerSettings {
        &self.peer
    }

    /// Whether the peer's SETTINGS, its first frame (RFC 9113 3.4), have been received.
    #[inline]
    pub fn has_peer_settings(&self) -> bool {
        !matches!(self.expect, ParseState::Preface | ParseState::Settings)
    }

    /// Whether `input`, the first bytes that a client receives, is an HTTP/1 response, so HTTP/2 is not supported.
    #[inline]
    pub fn is_http1_response(&self, input: &[u8]) -> bool {
        matches!(self.expect, ParseState::Settings) && input.starts_with(b"HTTP/")
    }

    /// Maximum number of streams that we may open concurrently: SETTINGS_MAX_CONCURRENT_STREAMS of the peer (RFC 9113
    /// 5.1.2), or [`STREAMS_BEFORE_SETTINGS`] until its SETTINGS are received.
    #[inline]
    pub fn streams_max(&self) -> u32 {
        match self.has_peer_settings() {
            true => self.peer.concurrent_streams_max,
            false => STREAMS_BEFORE_SETTINGS,
        }
    }

    /// Number of open streams.
    #[inline]
    pub fn open_streams(&self) -> u32 {
        self.streams.open()
    }

    /// Whether a stream is open, so that something may still be sent or received on it.
    #[inline]
    pub fn is_open(&self, stream: Stream) -> bool {
        self.streams.get(stream).is_some()
    }

    /// Whether a field block is incomplete. No other frame is allowed then, so a slow peer blocks all streams.
    pub fn is_block_incomplete(&self) -> bool {
        self.block.id != 0
    }

    /// Swaps the fields of the last head or trailers with `fields`, so that the caller can keep them without a copy.
    /// The next block overwrites the given ones.
    pub fn swap_fields(&mut self, fields: &mut Box<FieldSection>) {
        std::mem::swap(&mut self.fields, fields);
    }

    /// Reports that everything written so far was sent, so no replies are pending.
    #[inline]
    pub fn sent(&mut self) {
        self.guard.sent();
    }

    /// Reports the time since the last call, which restores the peer's allowance of unproductive frames.
    pub fn elapsed(&mut self, time: Duration) {
        self.guard.elapsed(time);
    }

    /// Frees memory that an idle connection does not need. The decoder's table shrinks; the encoder's starts empty.
    pub fn release_memory(&mut self) {
        self.decoder.release_memory();
        self.encoder.release_memory();
        self.streams.release_memory();
        if self.streams.open() == 0 {
            self.gone.forget();
        }
        if self.block.id == 0 {
            self.joined = Vec::new();
        }
        *self.fields = FieldSection::default();
    }

    /// Whether a stream has not been opened yet by the side that may open it.
    fn is_idle(&self, id: u32) -> bool {
        match self.is_own(id) {
            true => id >= self.next,
            false => id > self.last_peer_stream,
        }
    }

    /// Whether we may open a stream of this id; a client's ids are odd (RFC 9113 5.1.1).
    fn is_own(&self, id: u32) -> bool {
        id % 2 == self.next % 2
    }

    /// Initial receive window of a new stream. Until the peer has acknowledged our settings it may assume the default.
    fn stream_window(&self) -> u32 {
        match self.acknowledged {
            Acknowledged::NotYet => self.local.stream_window.max(WINDOW_DEFAULT),
            Acknowledged::Yes => self.local.stream_window,
        }
    }

    fn new_slot(&self, id: u32) -> Slot {
        let sending = SendWindow::new(self.peer.stream_window);
        Slot::new(id, sending, ReceiveWindow::new(self.stream_window()))
    }

    #[inline]
    fn close_if_over(&mut self, stream: Stream) {
        let is_over = self.streams.get(stream).is_some_and(Slot::is_over);
        if is_over {
            self.streams.remove(stream);
            self.gone.ended(stream.id);
            self.guard.served();
        }
    }

    #[inline]
    fn end_outgoing(&mut self, stream: Stream) {
        if let Some(slot) = self.streams.get_mut(stream) {
            slot.outgoing = Outgoing::Nothing;
        }
        self.streams
            .set_send_state(stream, super::stream::SendState::None);
        self.close_if_over(stream);
    }

    /// Writes a reply to a frame of the peer.
    fn answer(
        &mut self,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), ConnectionError> {
        let before = out.len();
        write(out);
        Ok(self.guard.answered(out.len() - before)?)
    }

    /// Handles a protocol violation of the peer on an open stream.
    #[cold]
    fn fail_stream(
        &mut self,
        stream: Stream,
        error: StreamError,
        out: &mut Vec<u8>,
    ) -> Result<EventKind, ConnectionError> {
        self.streams.remove(stream);
        self.fail_id(stream.id, error, out)?;
        Ok(EventKind::Reset {
            stream,
            cause: Cause::Local(error),
        })
    }

    /// Handles a protocol violation of the peer on a stream that is not open.
    #[cold]
    fn fail_id(
        &mut self,
        id: u32,
        error: StreamError,
        out: &mut Vec<u8>,
    ) -> Result<(), ConnectionError> {
        self.guard.stream_error()?;
        self.note_reset(id);
        self.answer(out, |out| frame::reset(id, error.code, out))
    }

    /// Records that we reset a stream. Up to its window and our limit on heads may still be in transit on it.
    #[inline]
    fn note_reset(&mut self, id: u32) {
        self.gone.reset(id);
        self.guard.expect_late(self.stream_window());
        self.guard.expect_late(self.local.list_bytes_max);
    }

    /// Ignores a frame of `bytes` for a closed stream, which may have been sent before the stream was closed.
    fn ignore_closed(&mut self, id: u32, bytes: u64) -> Result<EventKind, ConnectionError> {
        if self.is_idle(id) {
            return Err(FRAME_OF_IDLE);
        }
        self.guard.late(bytes)?;
        Ok(EventKind::Nothing)
    }

    /// Ends the connection with a last frame that contains the cause.
    #[cold]
    fn fail(&mut self, error: &ConnectionError, out: &mut Vec<u8>) {
        self.expect = ParseState::Nothing;
        let last = self.last_peer_stream.min(self.last_accepted);
        self.last_accepted = last;
        self.last_opened = Some(0);
        frame::go_away(last, error.code, error.reason, out);
    }
}

/// Frame on an idle stream (RFC 9113 5.1).
const FRAME_OF_IDLE: ConnectionError = ConnectionError::protocol("frame on an idle stream");

/// Frame on a stream that the peer has ended.
const STREAM_CLOSED: StreamError =
    StreamError::new(Code::STREAM_CLOSED, "frame on a closed stream");

#[cfg(test)]
mod tests;
