//! Field blocks, i.e. HEADERS and its CONTINUATIONs (RFC 9113 6.2, 6.10), and their effect on the stream. A block in
//! one piece is decoded in place; otherwise its pieces are joined first. Every block is decoded, even if it is
//! discarded, because the tables of both sides must stay equal (RFC 9113 4.3).

use super::event::{EventKind, Progress};
use super::parse_state::{Block, Fragment, FramesAllowedNext, ParseState};
use super::{Connection, STREAM_CLOSED};
use crate::http2::code::{Code, ConnectionError, StreamError};
use crate::http2::flood_guard::Flood;
use crate::http2::frame::{
    self, Flags, HEAD_BYTES, Head, Kind, PAYLOAD_BYTES_DEFAULT, dependency, read_headers,
};
use crate::http2::hpack;
use crate::http2::limits::{BLOCK_BYTES_MAX, CONTINUATIONS_MAX, FRAME_WHOLE_BYTES_MAX};
use crate::http2::message_info::{MessageInfo, Section};
use crate::http2::settings::Role;
use crate::http2::stream::{Content, End, Incoming, Stream, UNKNOWN};

impl Connection {
    #[inline]
    pub(super) fn headers(
        &mut self,
        head: Head,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Progress, ConnectionError> {
        let payload = &input[HEAD_BYTES..];
        let Some((before, padding)) = read_headers(&head, payload)? else {
            // At most the length of the padding and a priority.
            return Ok(Progress::need(HEAD_BYTES + head.length.min(6) as usize));
        };
        let block = Block {
            id: head.stream,
            end: match head.flags.has(Flags::END_STREAM) {
                true => End::Stream,
                false => End::Open,
            },
            error: match head.flags.has(Flags::PRIORITY) {
                true => dependency(head.stream, &payload[before as usize - 5..]).err(),
                false => None,
            },
            continuations: 0,
        };
        let rest = Fragment {
            left: head.length - before - padding,
            padding,
            follows: match head.flags.has(Flags::END_HEADERS) {
                true => FramesAllowedNext::Frame,
                false => FramesAllowedNext::Block,
            },
        };
        let whole = HEAD_BYTES + head.length as usize;
        if rest.follows == FramesAllowedNext::Frame && input.len() >= whole {
            let (start, length) = (before as usize, rest.left as usize);
            self.expect = ParseState::Frame;
            let found = self.block(block, &payload[start..start + length], out)?;
            return Ok(Progress::of(whole, found));
        }
        if rest.follows == FramesAllowedNext::Frame && whole <= FRAME_WHOLE_BYTES_MAX {
            return Ok(Progress::need(whole));
        }
        self.block = block;
        self.joined.clear();
        self.fragment(input, HEAD_BYTES + before as usize, rest, out)
    }

    pub(super) fn continuation(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Progress, ConnectionError> {
        let Some(head) = Head::read(input) else {
            return Ok(Progress::need(HEAD_BYTES));
        };
        if head.kind != Kind::Continuation || head.stream != self.block.id {
            return Err(ConnectionError::protocol(
                "a frame in the middle of a field block",
            ));
        }
        head.check(self.local.frame_bytes_max)?;
        self.block.continuations += 1;
        if self.block.continuations > CONTINUATIONS_MAX {
            return Err(Flood::Continuation.into());
        }
        let rest = Fragment {
            left: head.length,
            padding: 0,
            follows: match head.flags.has(Flags::END_HEADERS) {
                true => FramesAllowedNext::Frame,
                false => FramesAllowedNext::Block,
            },
        };
        self.fragment(input, HEAD_BYTES, rest, out)
    }

    /// Appends the part of a field block at `start` to the earlier parts.
    pub(super) fn fragment(
        &mut self,
        input: &[u8],
        start: usize,
        mut rest: Fragment,
        out: &mut Vec<u8>,
    ) -> Result<Progress, ConnectionError> {
        let there = &input[start..];
        let (piece, behind) = there.split_at(there.len().min(rest.left as usize));
        if self.joined.len() + piece.len() > BLOCK_BYTES_MAX {
            return Err(Flood::Continuation.into());
        }
        self.joined.extend_from_slice(piece);
        let padding = behind.len().min(rest.padding as usize);
        rest.left -= piece.len() as u32;
        if rest.left == 0 {
            rest.padding -= padding as u32;
        }
        let done = input.len() - behind.len() + padding;
        if rest.left + rest.padding > 0 {
            self.expect = ParseState::Fragment(rest);
            return Ok(Progress::of(done, EventKind::Nothing));
        }
        if rest.follows == FramesAllowedNext::Block {
            self.expect = ParseState::Continuation;
            return Ok(Progress::of(done, EventKind::Nothing));
        }
        self.expect = ParseState::Frame;
        let block = std::mem::replace(&mut self.block, Block::NONE);
        let joined = std::mem::take(&mut self.joined);
        let found = self.block(block, &joined, out)?;
        if joined.capacity() <= PAYLOAD_BYTES_DEFAULT as usize {
            self.joined = joined;
        }
        Ok(Progress::of(done, found))
    }

    #[inline]
    fn block(
        &mut self,
        block: Block,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<EventKind, ConnectionError> {
        let list_bytes_max = self.local.list_bytes_max;
        let decoded = self.decoder.decode(bytes, list_bytes_max, &mut self.fields);
        match decoded {
            Ok(()) => self.guard.excess(self.fields.excess())?,
            Err(hpack::Error::TooMuchWork) => return Err(Flood::Fields.into()),
            Err(error) => {
                let reason = error.reason();
                return Err(ConnectionError::new(Code::COMPRESSION_ERROR, reason));
            }
        }
        match self.streams.find(block.id) {
            Some(stream) => self.next_block(stream, block, out),
            None => self.first_block(block, out),
        }
    }

    /// Handles a block for a stream that is not open: a request, if the id is new.
    #[inline]
    fn first_block(
        &mut self,
        block: Block,
        out: &mut Vec<u8>,
    ) -> Result<EventKind, ConnectionError> {
        let Block { id, end, error, .. } = block;
        if self.role == Role::Client || self.is_own(id) || !self.is_idle(id) {
            return self.block_of_closed(id);
        }
        self.last_peer_stream = id;
        if id > self.last_accepted {
            return self.ignore_closed(id, self.fields.list_bytes());
        }
        if self.streams.open() >= self.local.concurrent_streams_max {
            // Not an error of the client: it may not have received the limit yet (RFC 9113 5.1.2).
            self.guard.reset()?;
            self.note_reset(id);
            self.answer(out, |out| frame::reset(id, Code::REFUSED_STREAM, out))?;
            return Ok(EventKind::Nothing);
        }
        let facts = match error {
            Some(error) => Err(error),
            None => MessageInfo::of(&self.fields, Section::Request),
        };
        let facts = match facts.and_then(|facts| facts.check_end(end, Content::Any)) {
            Ok(facts) => facts,
            Err(error) => {
                self.fail_id(id, error, out)?;
                return Ok(EventKind::Nothing);
            }
        };
        let mut slot = self.new_slot(id);
        slot.content_left = facts.content_length;
        slot.content = facts.content;
        if end == End::Stream {
            slot.incoming = Incoming::Nothing;
        }
        slot.priority = facts.priority;
        // PRIORITY_UPDATE overrides the field (RFC 9218 8).
        if let Some(&(_, priority)) = self.early_priorities.iter().find(|(ahead, _)| *ahead == id) {
            slot.priority = priority;
        }
        let stream = self.streams.insert(slot);
        Ok(EventKind::Head { stream, end })
    }

    /// Handles a block for a stream that is not open and that the block cannot open. It is ignored if the peer may have
    /// sent it before it received our RST_STREAM.
    #[cold]
    fn block_of_closed(&mut self, id: u32) -> Result<EventKind, ConnectionError> {
        if !self.is_idle(id) && self.gone.may_be_in_transit(id) {
            return self.ignore_closed(id, self.fields.list_bytes());
        }
        if self.gone.has_ended(id) {
            return Err(ConnectionError::new(
                Code::STREAM_CLOSED,
                "a field block on a closed stream",
            ));
        }
        Err(ConnectionError::protocol(
            "HEADERS with a stream ID that the peer cannot open",
        ))
    }

    /// Handles a block for an open stream: trailers, or the head of a response.
    fn next_block(
        &mut self,
        stream: Stream,
        block: Block,
        out: &mut Vec<u8>,
    ) -> Result<EventKind, ConnectionError> {
        let incoming = self.streams.get(stream).map(|slot| slot.incoming);
        let outcome = match (block.error, incoming) {
            (Some(error), _) => Err(error),
            (None, Some(Incoming::Head)) => self.response(stream, block.end),
            (None, Some(Incoming::Content)) => self.trailers_block(stream, block.end),
            (None, Some(Incoming::Nothing) | None) => Err(STREAM_CLOSED),
        };
        match outcome {
            Ok(found) => {
                if block.end == End::Stream {
                    self.end_incoming(stream);
                }
                Ok(found)
            }
            Err(error) => self.fail_stream(stream, error, out),
        }
    }

    /// Handles the head of a response, possibly interim (RFC 9113 8.1).
    fn response(&mut self, stream: Stream, end: End) -> Result<EventKind, StreamError> {
        let facts = MessageInfo::of(&self.fields, Section::Response)?;
        let found = EventKind::Head { stream, end };
        let slot = self.streams.get_mut(stream).ok_or(STREAM_CLOSED)?;
        if facts.is_interim() {
            return match end {
                End::Open => Ok(found),
                End::Stream => Err(StreamError::protocol("interim response that ends a stream")),
            };
        }
        let content = match (slot.content, facts.has_no_content()) {
            (Content::Tunnel, _) if facts.grants_tunnel() => {
                slot.incoming = Incoming::Content;
                return Ok(found);
            }
            (_, true) => Content::None,
            (Content::Tunnel, false) => Content::Any,
            (content, false) => content,
        };
        slot.content = content;
        let facts = facts.check_end(end, content)?;
        slot.content_left = match content {
            Content::None => 0,
            Content::Any | Content::Tunnel => facts.content_length,
        };
        slot.incoming = Incoming::Content;
        Ok(found)
    }

    /// Handles trailers (RFC 9113 8.1); they must end the stream.
    fn trailers_block(&mut self, stream: Stream, end: End) -> Result<EventKind, StreamError> {
        if end == End::Open {
            return Err(StreamError::protocol("trailers that do not end the stream"));
        }
        MessageInfo::of(&self.fields, Section::Trailers)?;
        let slot = self.streams.get(stream).ok_or(STREAM_CLOSED)?;
        if slot.content == Content::Tunnel {
            return Err(StreamError::protocol("HEADERS in a tunnel"));
        }
        if slot.content_left != UNKNOWN && slot.content_left != 0 {
            return Err(StreamError::protocol("less data than Content-Length"));
        }
        Ok(EventKind::Trailers(stream))
    }
}
