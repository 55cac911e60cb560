//! One HTTP/2 connection to a server: the protocol's state, frames to be sent, and streams.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use onrush_config::plan::Multiplexing;
use onrush_engine::Instant;
use onrush_http::Method;
use onrush_http::http2::code::Code;
use onrush_http::http2::fields::FieldSection;
use onrush_http::http2::hpack::Indexing;
use onrush_http::http2::limits::STREAMS_BEFORE_SETTINGS;
use onrush_http::http2::message::{HeadCache, Lines};
use onrush_http::http2::{CannotOpen, Connection, End, LocalSettings, Role, Stream};

use super::flow::{Flow, Sending};
use super::request::{Body, Request, RequestTimeouts};
use super::unsettled::Unsettled;
use crate::limits::{MULTIPLEXED_SPARE_MAX, MULTIPLEXED_WINDOW};
use crate::proxy::failure::Failure;
use crate::proxy::upgrade::PROTOCOL;
use crate::worker::field_pool::FieldPool;
use crate::worker::waiter::Parked;

/// Limit of streams per connection last announced by the server; shared by its connections.
pub(super) type AnnouncedStreams = Rc<Cell<Option<u32>>>;

/// A deadline that never passes.
pub(super) const NEVER: Instant = Instant::from_nanoseconds(u64::MAX);

pub(super) struct State {
    pub(super) http: Connection,
    /// Frames not yet handed to the transport.
    pub(super) frames: Vec<u8>,
    scheme: &'static str,
    streams_max: u32,
    pub(super) stage: Stage,
    /// Whether the connection is established; from then on bytes may have been sent.
    pub(super) is_connected: bool,
    /// Last announced limit on streams per connection; `None` before the first announcement.
    said: AnnouncedStreams,
    /// Open streams, by slot.
    pub(super) flows: Vec<Option<Rc<Flow>>>,
    /// Requests that got streams before the connection was established, with their timeouts from then on.
    pub(super) early: Vec<(Rc<Flow>, RequestTimeouts)>,
    /// Requests that wait for a stream, oldest first, with their response timeouts, counted from the default instant.
    pub(super) waiting: VecDeque<(Rc<Flow>, Instant)>,
    /// Requests that wait for the server's settings.
    pub(super) pending_tunnels: Vec<Unsettled>,
    /// No deadline is earlier than this.
    pub(super) next_deadline: Instant,
    pub(super) received_at: Instant,
    /// Parked requests with a part of their response; resumed after all received frames have been processed.
    pub(super) to_resume: Vec<Rc<dyn Parked>>,
    repeated: HeadCache,
    spare: Vec<Rc<Flow>>,
    spare_fields: FieldPool,
}

/// Life cycle of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// The connection accepts requests.
    Open,
    /// The connection accepts no more requests; those in flight are finished.
    Leaving,
    /// The connection is closed and has no requests.
    Ended,
}

impl State {
    pub(super) fn new(bounds: Multiplexing, scheme: &'static str, said: AnnouncedStreams) -> State {
        let settings = LocalSettings {
            stream_window: MULTIPLEXED_WINDOW,
            // All streams may use their windows at the same time.
            connection_window: bounds.streams_max * MULTIPLEXED_WINDOW,
            ..LocalSettings::CLIENT
        };
        let mut frames = Vec::new();
        State {
            http: Connection::new(Role::Client, settings, &mut frames),
            frames,
            scheme,
            streams_max: bounds.streams_max,
            stage: Stage::Open,
            is_connected: false,
            said,
            flows: Vec::new(),
            early: Vec::new(),
            waiting: VecDeque::new(),
            pending_tunnels: Vec::new(),
            next_deadline: NEVER,
            received_at: Instant::default(),
            to_resume: Vec::new(),
            repeated: HeadCache::default(),
            spare: Vec::new(),
            spare_fields: FieldPool::default(),
        }
    }

    pub(super) fn takes_requests(&self) -> bool {
        self.stage == Stage::Open
    }

    /// Number of requests, including waiting ones.
    pub(super) fn requests(&self) -> u32 {
        self.http.open_streams() + (self.waiting.len() + self.pending_tunnels.len()) as u32
    }

    /// Whether one more request would have a stream at once; before the server announces a limit, `streams_max` counts.
    pub(super) fn has_room(&self) -> bool {
        self.free() > 0
    }

    /// Number of further requests for which `has_room` holds.
    pub(super) fn free(&self) -> u32 {
        let most = match self.http.has_peer_settings() {
            true => Some(self.http.peer().concurrent_streams_max),
            false => self.said.get(),
        };
        let most = most.unwrap_or(u32::MAX).min(self.streams_max);
        most.saturating_sub(self.requests())
    }

    /// Number of streams that may be open. One, if the server has never announced a limit: it would refuse streams
    /// above its limit, and its settings arrive with its first bytes.
    fn streams_at_once(&self) -> u32 {
        let most = match self.http.has_peer_settings() {
            true => self.http.peer().concurrent_streams_max,
            false => self.said.get().unwrap_or(1).min(STREAMS_BEFORE_SETTINGS),
        };
        most.min(self.streams_max)
    }

    /// Whether a stream may be opened now.
    fn may_open(&self) -> bool {
        // `early` includes streams of clients that have left; they are reset when the connection is established.
        let open = self.http.open_streams().max(self.early.len() as u32);
        open < self.streams_at_once()
    }

    /// Applies the server's settings.
    pub(super) fn apply_settings(&mut self) {
        self.said.set(Some(self.http.peer().concurrent_streams_max));
        self.settle_tunnels(self.received_at);
    }

    pub(super) fn stop_accepting(&mut self) {
        if self.stage == Stage::Open {
            self.stage = Stage::Leaving;
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.stage != Stage::Open && self.requests() == 0
    }

    /// Accepts a request; opens its stream at once if possible.
    pub(super) fn submit(&mut self, request: Request<'_>, now: Instant) -> Rc<Flow> {
        let flow = self.spare.pop().unwrap_or_default();
        flow.outgoing.method.set(Some(request.method));
        flow.outgoing.sensitivity.set(request.sensitivity);
        match request.body {
            Body::None => flow.outgoing.state.set(Sending::Ended),
            Body::Whole(bytes) => {
                flow.outgoing.held().body.replace(bytes);
                flow.outgoing.state.set(Sending::Ends);
            }
            Body::Follows => flow.outgoing.state.set(Sending::Open),
        }
        if self.stage == Stage::Ended {
            flow.fail(Failure::Closed);
            return flow;
        }
        match request.method {
            Method::Connect => self.submit_tunnel(&flow, request.text, request.patience, now),
            _ => self.enter(&flow, request.text, request.patience, now),
        }
        flow
    }

    /// Opens a stream for a request, or queues it.
    #[inline]
    pub(super) fn enter(
        &mut self,
        flow: &Rc<Flow>,
        head: &[u8],
        patience: RequestTimeouts,
        now: Instant,
    ) {
        if self.waiting.is_empty() && self.may_open() {
            if self.is_connected {
                return self.open(flow, head, patience.response_by(now));
            }
            self.early.push((Rc::clone(flow), patience));
            return self.open(flow, head, patience.until);
        }
        flow.outgoing.held().head.replace(head.to_vec());
        flow.queued_since.set(Some(now));
        self.late(flow, patience.stream_by(now));
        let response = patience.response_by(now).since(now);
        self.waiting
            .push_back((Rc::clone(flow), Instant::default() + response));
    }

    /// Opens a stream for a request with this head; its response must begin by `until`.
    fn open(&mut self, flow: &Rc<Flow>, head: &[u8], until: Instant) {
        let method = flow.outgoing.method.get();
        let sensitivity = flow.outgoing.sensitivity.get();
        let end = match flow.outgoing.state.get() {
            Sending::Ended => End::Stream,
            Sending::Open | Sending::Ends => End::Open,
        };
        let scheme = self.scheme;
        let repeated = &mut self.repeated;
        let opened =
            self.http.open(
                end,
                flow.content(),
                &mut self.frames,
                |encoder, out| match method {
                    Some(Method::Connect) => {
                        encoder.set_sensitivity(sensitivity);
                        Lines::whole(head).put_connect(PROTOCOL, scheme, encoder, out);
                    }
                    _ => {
                        let from = (scheme, Indexing::Without);
                        repeated.put((head, sensitivity), from, encoder, out);
                    }
                },
            );
        let stream = match opened {
            Ok(stream) => stream,
            Err(CannotOpen::Full | CannotOpen::GoingAway | CannotOpen::Exhausted) => {
                self.stop_accepting();
                return flow.fail(UNPROCESSED);
            }
        };
        flow.stream.set(Some(stream));
        let slot = stream.slot();
        if self.flows.len() <= slot {
            self.flows.resize(slot + 1, None);
        }
        self.flows[slot] = Some(Rc::clone(flow));
        self.late(flow, until);
        self.resume(flow);
        flow.opened();
    }

    /// Opens streams for waiting requests, as far as the limit allows.
    pub(super) fn open_waiting(&mut self, now: Instant) {
        while let Some((flow, _)) = self.waiting.front() {
            if flow.failure.get().is_some() {
                self.waiting.pop_front();
                continue;
            }
            if !self.may_open() {
                return;
            }
            let Some((flow, patience)) = self.waiting.pop_front() else {
                return;
            };
            let head = flow.outgoing.held().head.take();
            let until = now + patience.since(Instant::default());
            let since = flow.queued_since.take();
            self.open(&flow, &head, until);
            if let Some(since) = since {
                flow.waiter.queued(now.since(since));
            }
        }
    }

    pub(super) fn flow(&self, stream: Stream) -> Option<Rc<Flow>> {
        let flow = self.flows.get(stream.slot())?.as_ref()?;
        flow.is_of(stream).then(|| Rc::clone(flow))
    }

    /// Removes the flow from the open streams.
    pub(super) fn forget(&mut self, flow: &Rc<Flow>) {
        let Some(stream) = flow.stream.take() else {
            return;
        };
        if let Some(place) = self.flows.get_mut(stream.slot())
            && place.as_ref().is_some_and(|there| Rc::ptr_eq(there, flow))
        {
            *place = None;
        }
    }

    /// Fails the requests that satisfy `is_meant`.
    fn fail_those(&mut self, failure: Failure, is_meant: impl Fn(&Flow) -> bool) {
        let meant: Vec<_> = self
            .flows
            .iter()
            .flatten()
            .filter(|flow| is_meant(flow))
            .cloned()
            .collect();
        for flow in meant {
            flow.fail(failure);
            self.forget(&flow);
        }
    }

    /// Ends the connection and fails all its requests.
    pub(super) fn fail(&mut self, failure: Failure) {
        self.stage = Stage::Ended;
        self.early.clear();
        self.fail_those(failure, |_| true);
        self.fail_waiting(match self.is_connected {
            // They were not sent.
            true => UNPROCESSED,
            false => failure,
        });
    }

    /// Handles GOAWAY: the server accepts no new streams and has not processed those above `last`.
    pub(super) fn handle_goaway(&mut self, last: u32) {
        self.stop_accepting();
        self.fail_those(UNPROCESSED, |flow| {
            flow.stream.get().is_some_and(|stream| stream.id() > last)
        });
        self.fail_waiting(UNPROCESSED);
    }

    fn fail_waiting(&mut self, failure: Failure) {
        for (flow, _) in self.waiting.drain(..) {
            flow.fail(failure);
        }
        self.fail_tunnels(failure);
    }

    pub(super) fn spare_fields(&mut self) -> Box<FieldSection> {
        self.spare_fields.take()
    }

    pub(super) fn give_fields(&mut self, fields: Box<FieldSection>) {
        self.spare_fields.give(fields, MULTIPLEXED_SPARE_MAX);
    }

    /// Frees the flows and fields kept for reuse and returns the number of flows.
    pub(super) fn free_spare(&mut self) -> usize {
        self.spare_fields = FieldPool::default();
        std::mem::take(&mut self.spare).len()
    }

    /// Ends a flow that the client's task has dropped, with a reset if the stream is still open.
    pub(super) fn drop_flow(&mut self, flow: &Rc<Flow>) {
        match flow.stream.get() {
            None => {
                self.waiting.retain(|(other, _)| !Rc::ptr_eq(other, flow));
                self.drop_tunnel(flow);
            }
            Some(stream) => self.http.reset(stream, Code::CANCEL, &mut self.frames),
        }
        self.forget(flow);
        // Before the connection is established, `early` still refers to the flow.
        if self.is_connected && self.spare.len() < MULTIPLEXED_SPARE_MAX {
            flow.clear();
            self.spare.push(Rc::clone(flow));
        }
    }
}

/// For requests that the server has not processed (RFC 9113 8.7).
const UNPROCESSED: Failure = Failure::Unprocessed("it accepts no more requests on its connection");
