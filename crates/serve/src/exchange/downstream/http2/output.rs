//! Outgoing frames of a connection, and the order in which streams send.

use std::cell::RefCell;
use std::rc::Rc;

use onrush_engine::Part;
use onrush_http::http2::code::Code;
use onrush_http::http2::fields::FieldSection;
use onrush_http::http2::{Connection, End, Stream};
use onrush_tls::Transport;

use super::flow::{Flow, Receiving, Sending};
use super::last_heads::LastHeads;
use crate::limits::http2::{FLOWS_SPARE_MAX, HTTP2_COPY_MAX};
use crate::limits::http2::{HTTP2_ANSWERS_MAX, HTTP2_UNSENT_MAX};
use crate::worker::field_pool::FieldPool;

/// The mutable part of a session.
pub(crate) struct State {
    pub(crate) http: Connection,
    /// Frames not yet handed to the transport.
    pub(crate) frames: Vec<u8>,
    /// Bytes handed to the transport since everything was last sent.
    unsent: usize,
    /// Number of bytes of held responses that were dropped unsent.
    pub(super) dropped: usize,
    /// Streams with a complete response and an incomplete request: they are reset after all written frames are sent.
    resets_after_send: Vec<Stream>,
    /// Indexed by the slot of the stream.
    flows: Vec<Option<Rc<Flow>>>,
    spare: Vec<Rc<Flow>>,
    spare_fields: FieldPool,
    pub(super) last_heads: Option<Box<LastHeads>>,
}

impl State {
    pub(super) fn new(http: Connection, frames: Vec<u8>) -> State {
        State {
            http,
            frames,
            unsent: 0,
            dropped: 0,
            resets_after_send: Vec::new(),
            flows: Vec::new(),
            spare: Vec::new(),
            spare_fields: FieldPool::default(),
            last_heads: None,
        }
    }

    pub(super) fn open(&mut self, stream: Stream, body: Receiving) -> Rc<Flow> {
        let flow = self.spare.pop().unwrap_or_default();
        flow.begin(stream, body);
        let slot = stream.slot();
        if self.flows.len() <= slot {
            self.flows.resize(slot + 1, None);
        }
        self.flows[slot] = Some(Rc::clone(&flow));
        flow
    }

    /// Memory for the fields of a request.
    pub(crate) fn spare_fields(&mut self) -> Box<FieldSection> {
        self.spare_fields.take()
    }

    pub(super) fn flow(&self, stream: Stream) -> Option<Rc<Flow>> {
        let flow = self.flows.get(stream.slot())?.as_ref()?;
        flow.is_of(stream).then(|| Rc::clone(flow))
    }

    pub(super) fn take_flows(&mut self) -> Vec<Option<Rc<Flow>>> {
        std::mem::take(&mut self.flows)
    }

    /// Returns the memory of a completed request's fields.
    pub(super) fn give_fields(&mut self, fields: Box<FieldSection>) {
        self.spare_fields.give(fields, FLOWS_SPARE_MAX);
    }

    /// Removes the flow from the table of streams.
    pub(super) fn forget(&mut self, flow: &Rc<Flow>, stream: Stream) {
        if let Some(place) = self.flows.get_mut(stream.slot())
            && place.as_ref().is_some_and(|there| Rc::ptr_eq(there, flow))
        {
            *place = None;
        }
    }

    /// Holds a part of a body until there is room for it.
    pub(super) fn hold(&mut self, flow: &Flow, stream: Stream, part: Part) {
        flow.outgoing.waiting.borrow_mut().push_back(part);
        self.http.ready(stream);
    }

    pub(super) fn drop_held(&mut self, flow: &Flow) {
        self.dropped += flow.own_bytes();
        flow.outgoing.waiting.take();
    }

    pub(super) fn recycle(&mut self, flow: &Rc<Flow>) {
        self.drop_held(flow);
        if self.spare.len() < FLOWS_SPARE_MAX {
            flow.clear();
            self.spare.push(Rc::clone(flow));
        }
    }

    /// Closes a stream whose response is written and whose request is over. If the client has not ended its request,
    /// the stream is reset (RFC 9113 8.1): the client might never send the rest, and the stream would stay open.
    pub(super) fn close(&mut self, flow: &Rc<Flow>, stream: Stream) {
        if self.http.is_open(stream) {
            if !self.is_sent() {
                // Delay the reset: curl up to 7.88 reports a failure if it is in the same TLS record as the response.
                return self.resets_after_send.push(stream);
            }
            self.http.reset(stream, Code::NO_ERROR, &mut self.frames);
        }
        self.forget(flow, stream);
        self.recycle(flow);
    }

    /// Discards bytes of a request body. Their frame may end the stream before it is reset.
    pub(super) fn discard(&mut self, stream: Stream, bytes: u32) {
        self.http.release(stream, bytes, &mut self.frames);
        if !self.http.is_open(stream)
            && let Some(flow) = self.flow(stream)
            && flow.outgoing.state.get() == Sending::Ended
            && flow.incoming.state.get() == Receiving::Unwanted
        {
            self.forget(&flow, stream);
            self.recycle(&flow);
        }
    }

    /// Whether so much is unsent that no more body data should be written.
    pub(super) fn is_full(&self) -> bool {
        self.frames.len() + self.unsent >= HTTP2_UNSENT_MAX
    }

    /// Whether so much is unsent that nothing should be read that produces output. Beyond body data there is room for
    /// heads and control frames.
    pub(super) fn must_stop_reading(&self) -> bool {
        self.frames.len() + self.unsent >= HTTP2_UNSENT_MAX + HTTP2_ANSWERS_MAX
    }

    pub(super) fn has_unsent(&self) -> bool {
        self.unsent > 0
    }

    pub(super) fn is_sent(&self) -> bool {
        self.frames.is_empty() && !self.has_unsent()
    }

    pub(super) fn sent(&mut self) {
        self.unsent = 0;
        self.http.sent();
        for stream in std::mem::take(&mut self.resets_after_send) {
            if let Some(flow) = self.flow(stream) {
                self.close(&flow, stream);
            }
        }
    }

    /// The open streams.
    pub(super) fn flows(&self) -> impl Iterator<Item = &Rc<Flow>> {
        self.flows.iter().flatten()
    }

    pub(super) fn flows_waiting_for_turn(&self) -> impl Iterator<Item = (Stream, &Rc<Flow>)> {
        let waiting = |flow: &&Rc<Flow>| flow.outgoing.awaits_turn.get();
        let flows = self.flows.iter().flatten().filter(waiting);
        flows.filter_map(|flow| Some((flow.stream.get()?, flow)))
    }

    pub(super) fn flows_waiting_for_room(&self) -> impl Iterator<Item = (Stream, &Rc<Flow>)> {
        let waiting = |flow: &&Rc<Flow>| flow.outgoing.awaits_room.get();
        let flows = self.flows.iter().flatten().filter(waiting);
        flows.filter_map(|flow| Some((flow.stream.get()?, flow)))
    }

    pub(super) fn free_idle_memory(&mut self) {
        self.http.release_memory();
        self.spare = Vec::new();
        self.spare_fields = FieldPool::default();
        self.resets_after_send = Vec::new();
        self.last_heads = None;
        if self.http.open_streams() == 0 {
            self.flows = Vec::new();
        }
        if self.frames.is_empty() {
            self.frames = Vec::new();
        }
    }

    /// Counts `bytes` as the next part of the body. Returns `None` if they cannot be written now in one frame, else
    /// whether they end the stream.
    #[inline]
    pub(super) fn room_for(&mut self, flow: &Flow, stream: Stream, bytes: usize) -> Option<End> {
        let outgoing = &flow.outgoing;
        let left = outgoing.remaining.get();
        let left = left.map(|left| left.saturating_sub(bytes as u64));
        outgoing.remaining.set(left);
        // If other streams wait, the order of priorities decides.
        let fits = outgoing.waiting.borrow().is_empty()
            && !self.http.has_ready()
            && !self.is_full()
            && bytes <= self.http.sendable(stream);
        fits.then_some(match left {
            Some(0) => End::Stream,
            _ => End::Open,
        })
    }

    #[inline]
    pub(super) fn put_data(&mut self, flow: &Flow, stream: Stream, (bytes, end): (&[u8], End)) {
        if self.put_head(flow, stream, (bytes.len(), end)) {
            self.frames.extend_from_slice(bytes);
        }
    }

    /// Writes the header of a DATA frame. Returns false if the stream does not allow it.
    #[inline]
    fn put_head(&mut self, flow: &Flow, stream: Stream, (bytes, end): (usize, End)) -> bool {
        let written = self.http.data(stream, bytes, end, &mut self.frames);
        flow.count(bytes);
        if end == End::Stream {
            flow.outgoing.state.set(Sending::Ended);
        }
        written.is_ok()
    }

    pub(super) fn put_part(
        &mut self,
        flow: &Flow,
        (stream, end): (Stream, End),
        part: Part,
        transport: &Transport,
    ) {
        let bytes = part.bytes().len();
        if bytes <= HTTP2_COPY_MAX {
            return self.put_data(flow, stream, (part.bytes(), end));
        }
        if self.put_head(flow, stream, (bytes, end)) {
            self.queue_frames(transport);
            self.unsent += bytes;
            transport.queue(part);
        }
    }

    /// Ends a stream whose data is written, with its trailers if it has any.
    pub(super) fn put_end(&mut self, flow: &Flow, stream: Stream) {
        if let Sending::Breaks(code) = flow.outgoing.state.get() {
            self.http.reset(stream, code, &mut self.frames);
            return flow.outgoing.state.set(Sending::Ended);
        }
        let lines = flow.outgoing.trailers.get().map(RefCell::take);
        let lines = lines.unwrap_or_default();
        // A closed stream needs no end.
        let _ = self.http.end_with(stream, &lines, &mut self.frames);
        flow.outgoing.state.set(Sending::Ended);
    }

    /// Sends one frame of the stream whose turn it is. Returns true if nothing is left waiting and its producer may
    /// write more.
    pub(super) fn send_waiting(
        &mut self,
        flow: &Rc<Flow>,
        stream: Stream,
        transport: &Transport,
    ) -> bool {
        let room = self.http.sendable(stream);
        let mut waiting = flow.outgoing.waiting.borrow_mut();
        let Some(front) = waiting.front_mut() else {
            self.http.not_ready(stream);
            return false;
        };
        let bytes = front.bytes().len();
        if bytes > room {
            let (piece, end) = (&front.bytes()[..room], End::Open);
            self.put_data(flow, stream, (piece, end));
            front.consume(room);
            if flow.is_tunnel.get() {
                // Its timeout restarts.
                flow.wake();
            }
            return false;
        }
        let part = waiting.pop_front();
        let is_over = waiting.is_empty();
        let state = flow.outgoing.state.get();
        let has_trailers = flow.outgoing.has_trailers();
        let is_end = flow.outgoing.remaining.get() == Some(0) || state == Sending::Ends;
        let end = match is_over && is_end && !has_trailers {
            true => End::Stream,
            false => End::Open,
        };
        drop(waiting);
        if let Some(part) = part {
            self.put_part(flow, (stream, end), part, transport);
        }
        if !is_over {
            return false;
        }
        self.http.not_ready(stream);
        if matches!(state, Sending::Ends | Sending::Breaks(_)) && end == End::Open {
            self.put_end(flow, stream);
        }
        flow.wake();
        let has_left = flow.incoming.state.get() == Receiving::Unwanted;
        if has_left && flow.outgoing.state.get() == Sending::Ended {
            self.close(flow, stream);
        }
        flow.outgoing.state.get() == Sending::Open
    }

    pub(super) fn queue_frames(&mut self, transport: &Transport) {
        self.unsent += self.frames.len();
        transport.queue_bytes(&self.frames);
        self.frames.clear();
    }
}
