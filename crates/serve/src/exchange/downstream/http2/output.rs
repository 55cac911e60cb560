//! The frames of a connection on their way out, and whose turn it is.

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
use crate::worker::spare_fields::SpareFields;

/// The changing part of a session.
pub(crate) struct State {
    pub(crate) http: Connection,
    /// Frames that were not handed to the transport.
    pub(crate) frames: Vec<u8>,
    /// Bytes that were, since all of them were sent last.
    unsent: usize,
    /// Bytes of held responses that were dropped unsent.
    pub(super) dropped: usize,
    /// Streams whose responses are written and whose requests have not ended: they are reset once all that is written is sent.
    leaving: Vec<Stream>,
    /// By the slots of their streams.
    flows: Vec<Option<Rc<Flow>>>,
    spare: Vec<Rc<Flow>>,
    spare_fields: SpareFields,
    pub(super) last_heads: Option<Box<LastHeads>>,
}

impl State {
    pub(super) fn new(http: Connection, frames: Vec<u8>) -> State {
        State {
            http,
            frames,
            unsent: 0,
            dropped: 0,
            leaving: Vec::new(),
            flows: Vec::new(),
            spare: Vec::new(),
            spare_fields: SpareFields::default(),
            last_heads: None,
        }
    }

    /// What holds the two directions of a stream that has begun.
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

    /// Room for the fields of a request.
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

    /// The fields of a request that is over.
    pub(super) fn give_fields(&mut self, fields: Box<FieldSection>) {
        self.spare_fields.give(fields, FLOWS_SPARE_MAX);
    }

    /// Nobody finds the flow by its stream any more.
    pub(super) fn forget(&mut self, flow: &Rc<Flow>, stream: Stream) {
        if let Some(place) = self.flows.get_mut(stream.slot())
            && place.as_ref().is_some_and(|there| Rc::ptr_eq(there, flow))
        {
            *place = None;
        }
    }

    /// Keeps a part of a body until there is room for it.
    pub(super) fn hold(&mut self, flow: &Flow, stream: Stream, part: Part) {
        flow.outgoing.waiting.borrow_mut().push_back(part);
        self.http.ready(stream);
    }

    /// Nobody gets what waits.
    pub(super) fn drop_held(&mut self, flow: &Flow) {
        self.dropped += flow.own_bytes();
        flow.outgoing.waiting.take();
    }

    /// Nobody needs the flow any more.
    pub(super) fn recycle(&mut self, flow: &Rc<Flow>) {
        self.drop_held(flow);
        if self.spare.len() < FLOWS_SPARE_MAX {
            flow.clear();
            self.spare.push(Rc::clone(flow));
        }
    }

    /// Closes a stream whose response is written and whose request is over. If the client has not ended its request, the stream is
    /// reset (RFC 9113 8.1): the client might never send the rest, and the stream would stay open.
    pub(super) fn close(&mut self, flow: &Rc<Flow>, stream: Stream) {
        if self.http.is_open(stream) {
            if !self.is_sent() {
                // With the response in one record of TLS, curl up to 7.88 would take it for a failure.
                return self.leaving.push(stream);
            }
            self.http.reset(stream, Code::NO_ERROR, &mut self.frames);
        }
        self.forget(flow, stream);
        self.recycle(flow);
    }

    /// Discards bytes of a request's body. Their frame may end the stream before it is reset.
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

    /// Whether enough is waiting that it should be sent before there is more of bodies.
    pub(super) fn is_full(&self) -> bool {
        self.frames.len() + self.unsent >= HTTP2_UNSENT_MAX
    }

    /// Whether so much is waiting that nothing should be read that makes more: behind bodies there is room for heads and answers.
    pub(super) fn is_choked(&self) -> bool {
        self.frames.len() + self.unsent >= HTTP2_UNSENT_MAX + HTTP2_ANSWERS_MAX
    }

    pub(super) fn has_unsent(&self) -> bool {
        self.unsent > 0
    }

    /// Whether all that was written has left.
    pub(super) fn is_sent(&self) -> bool {
        self.frames.is_empty() && !self.has_unsent()
    }

    pub(super) fn sent(&mut self) {
        self.unsent = 0;
        self.http.sent();
        for stream in std::mem::take(&mut self.leaving) {
            if let Some(flow) = self.flow(stream) {
                self.close(&flow, stream);
            }
        }
    }

    /// The streams that have not ended.
    pub(super) fn flows(&self) -> impl Iterator<Item = &Rc<Flow>> {
        self.flows.iter().flatten()
    }

    /// Those who wait for their turn to read.
    pub(super) fn flows_waiting_for_turn(&self) -> impl Iterator<Item = (Stream, &Rc<Flow>)> {
        let waiting = |flow: &&Rc<Flow>| flow.outgoing.awaits_turn.get();
        let flows = self.flows.iter().flatten().filter(waiting);
        flows.filter_map(|flow| Some((flow.stream.get()?, flow)))
    }

    /// Those who wait for their windows.
    pub(super) fn flows_waiting_for_room(&self) -> impl Iterator<Item = (Stream, &Rc<Flow>)> {
        let waiting = |flow: &&Rc<Flow>| flow.outgoing.awaits_room.get();
        let flows = self.flows.iter().flatten().filter(waiting);
        flows.filter_map(|flow| Some((flow.stream.get()?, flow)))
    }

    pub(super) fn rest(&mut self) {
        self.http.rest();
        self.spare = Vec::new();
        self.spare_fields = SpareFields::default();
        self.leaving = Vec::new();
        self.last_heads = None;
        if self.http.open_streams() == 0 {
            self.flows = Vec::new();
        }
        if self.frames.is_empty() {
            self.frames = Vec::new();
        }
    }

    /// So many bytes of a body are to be written: whether that can be done at once, in one frame, and whether the stream ends
    /// with it.
    #[inline]
    pub(super) fn room_for(&mut self, flow: &Flow, stream: Stream, bytes: usize) -> Option<End> {
        let outgoing = &flow.outgoing;
        let left = outgoing.left.get();
        let left = left.map(|left| left.saturating_sub(bytes as u64));
        outgoing.left.set(left);
        // Whose turn it is decides who has waited.
        let fits = outgoing.waiting.borrow().is_empty()
            && !self.http.has_ready()
            && !self.is_full()
            && bytes <= self.http.sendable(stream);
        fits.then_some(match left {
            Some(0) => End::Stream,
            _ => End::Open,
        })
    }

    /// Writes a frame of data, for which there is room.
    #[inline]
    pub(super) fn put_data(&mut self, flow: &Flow, stream: Stream, (bytes, end): (&[u8], End)) {
        if self.put_head(flow, stream, (bytes.len(), end)) {
            self.frames.extend_from_slice(bytes);
        }
    }

    /// Writes the head of one; whether it may be written.
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

    /// Ends a stream whose data is written: with its trailers, if there are any.
    pub(super) fn put_end(&mut self, flow: &Flow, stream: Stream) {
        if let Sending::Breaks(code) = flow.outgoing.state.get() {
            self.http.reset(stream, code, &mut self.frames);
            return flow.outgoing.state.set(Sending::Ended);
        }
        let lines = flow.outgoing.trailers.get().map(RefCell::take);
        let lines = lines.unwrap_or_default();
        // Whoever is gone needs no end.
        let _ = self.http.end_with(stream, &lines, &mut self.frames);
        flow.outgoing.state.set(Sending::Ended);
    }

    /// A stream whose turn it is sends one frame. Whether that was all that waits, and more of the response is made.
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
                // Its time begins anew.
                flow.wake();
            }
            return false;
        }
        let part = waiting.pop_front();
        let is_over = waiting.is_empty();
        let state = flow.outgoing.state.get();
        let has_trailers = flow.outgoing.has_trailers();
        let is_end = flow.outgoing.left.get() == Some(0) || state == Sending::Ends;
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

    /// Hands the frames to the transport.
    pub(super) fn queue_frames(&mut self, transport: &Transport) {
        self.unsent += self.frames.len();
        transport.queue_bytes(&self.frames);
        self.frames.clear();
    }
}
