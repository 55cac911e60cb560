//! State that the streams of one connection share: the protocol state machine, outgoing frames and the flows of all
//! streams.
//!
//! ```text
//!   a request's task ── head, data, end ──> frames ──> transport     one send for all streams of a turn
//!                            │ what the windows do not take
//!                            └──> Flow::waiting ── pump, by priority ──> frames
//! ```
//! Only the connection's own task receives and sends; request tasks write here and wake it.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use onrush_engine::{Error, Part};
use onrush_http::Method;
use onrush_http::http2::code::{Code, ConnectionError};
use onrush_http::http2::fields::FieldSection;
use onrush_http::http2::hpack::Encoder;
use onrush_http::http2::{Connection, End, LocalSettings, Role, Stream};
use onrush_tls::Transport;

use super::flow::{Flow, Receiving, Sending};
use super::last_heads::LastHeads;
use super::output::State;
use super::turn::Turns;
use crate::exchange::reply::fields::BodyLength;
use crate::routing::client::Client;
use crate::worker::upload_budget::UploadBudget;

/// Payload of the ping after the first GOAWAY of a graceful shutdown.
pub(crate) const SHUTDOWN_PING: [u8; 8] = *b"leaving.";

/// Owner of the connection.
pub(crate) trait Carrier {
    fn transport(&self) -> &Transport;

    fn client(&self) -> &Client;

    /// The core's budget for uploads held outside the windows of all connections.
    fn uploads_held(&self) -> &UploadBudget;
}

/// The HTTP/2 connection as its streams see it.
pub(crate) struct Session {
    pub(super) carrier: Box<dyn Carrier>,
    pub(crate) state: RefCell<State>,
    task: RefCell<Option<Waker>>,
    /// The protocol error of the client, found by a stream.
    failure: Cell<Option<ConnectionError>>,
    /// Whether the connection's task is running: it sends all written frames before it waits, and need not be woken.
    is_awake: Cell<bool>,
    pub(super) turns: Turns,
}

impl Session {
    pub(crate) fn new(carrier: Box<dyn Carrier>, settings: LocalSettings) -> Rc<Session> {
        let mut frames = Vec::new();
        let http = Connection::new(Role::Server, settings, &mut frames);
        Rc::new(Session {
            carrier,
            state: RefCell::new(State::new(http, frames)),
            task: RefCell::default(),
            failure: Cell::default(),
            is_awake: Cell::default(),
            turns: Turns::default(),
        })
    }

    pub(crate) fn transport(&self) -> &Transport {
        self.carrier.transport()
    }

    pub(crate) fn client(&self) -> &Client {
        self.carrier.client()
    }

    /// Marks the connection's task as running. After [`Session::mark_waiting`], writes of streams wake it.
    pub(crate) fn mark_running(&self, context: &Context<'_>) {
        self.is_awake.set(true);
        let task = &mut *self.task.borrow_mut();
        match task {
            Some(waker) => waker.clone_from(context.waker()),
            None => *task = Some(context.waker().clone()),
        }
    }

    /// Marks the connection's task as waiting.
    pub(crate) fn mark_waiting(&self) {
        self.is_awake.set(false);
    }

    /// Wakes the connection's task because something was written.
    pub(crate) fn wake(&self) {
        if !self.is_awake.get() {
            self.call();
        }
    }

    /// Schedules the connection's task after the tasks that are already woken.
    fn call(&self) {
        if let Some(task) = &*self.task.borrow() {
            task.wake_by_ref();
        }
    }

    /// Writes a head with `fields`, ending the stream if the response has no body.
    pub(crate) fn head(
        &self,
        flow: &Flow,
        (status, method): (u16, Method),
        fields: impl FnOnce(&mut Encoder, &mut Vec<u8>, &mut LastHeads) -> Option<BodyLength>,
    ) {
        let State {
            http,
            frames,
            last_heads,
            ..
        } = &mut *self.state.borrow_mut();
        let last = last_heads.get_or_insert_default();
        let Some(stream) = flow.stream.get() else {
            return;
        };
        let before = frames.len();
        let mut length = None;
        let is_empty = method == Method::Head || matches!(status, 204 | 304);
        let written = http.head_then(stream, frames, |encoder, out| {
            encoder.status(status, out);
            length = fields(encoder, out, last);
            match is_empty || length == Some(BodyLength::Known(0)) {
                true => End::Stream,
                false => End::Open,
            }
        });
        let Ok(end) = written else {
            return;
        };
        flow.count(frames.len() - before);
        if status < 200 {
            return;
        }
        flow.outgoing.state.set(match end {
            End::Stream => Sending::Ended,
            End::Open => Sending::Open,
        });
        flow.outgoing.remaining.set(match length {
            Some(BodyLength::Known(length)) => Some(length),
            Some(BodyLength::Unknown) | None => None,
        });
    }

    fn takes_data(flow: &Flow) -> Option<Stream> {
        match flow.outgoing.state.get() {
            Sending::Open => flow.stream.get(),
            Sending::Nothing | Sending::Ends | Sending::Breaks(_) | Sending::Ended => None,
        }
    }

    /// Appends bytes of the body.
    pub(crate) fn data(&self, flow: &Flow, bytes: &[u8]) {
        let state = &mut *self.state.borrow_mut();
        // Drop bytes beyond the declared length.
        let left = flow.outgoing.remaining.get().unwrap_or(u64::MAX);
        let bytes = &bytes[..bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
        let Some(stream) = Self::takes_data(flow).filter(|_| !bytes.is_empty()) else {
            return;
        };
        match state.room_for(flow, stream, bytes.len()) {
            Some(end) => state.put_data(flow, stream, (bytes, end)),
            // Not in the core's buffers, which all clients share.
            None => state.hold(flow, stream, Part::Shared(Rc::from(bytes), 0)),
        }
    }

    /// Appends a part of the body without copying it where possible.
    pub(crate) fn part(&self, flow: &Flow, part: Part) {
        let state = &mut *self.state.borrow_mut();
        let Some(stream) = Self::takes_data(flow) else {
            return;
        };
        let bytes = part.bytes().len();
        if bytes == 0 {
            return;
        }
        match state.room_for(flow, stream, bytes) {
            Some(end) => state.put_part(flow, (stream, end), part, self.transport()),
            None => state.hold(flow, stream, part),
        }
    }

    /// Ends the body after the bytes written.
    pub(crate) fn end(&self, flow: &Flow) {
        let state = &mut *self.state.borrow_mut();
        if let Some(stream) = Self::takes_data(flow) {
            flow.outgoing.state.set(Sending::Ends);
            if flow.outgoing.waiting.borrow().is_empty() {
                state.put_end(flow, stream);
            }
        }
    }

    /// Appends lines of trailers; an empty line ends the body.
    pub(crate) fn trailers(&self, flow: &Flow, lines: &[u8]) {
        let trailers = flow.outgoing.trailers.get_or_default();
        trailers.borrow_mut().extend_from_slice(lines);
        if lines == b"\r\n" || lines.ends_with(b"\r\n\r\n") {
            self.end(flow);
        }
    }

    /// Waits until the stream's windows and the connection have taken all written parts.
    /// Fails if the stream is reset meanwhile.
    pub(crate) fn flush(&self, flow: &Rc<Flow>) -> impl Future<Output = Result<(), Error>> + use<> {
        let flow = Rc::clone(flow);
        self.wake();
        poll_fn(move |context| match flow.poll_reset(context) {
            Poll::Ready(error) => Poll::Ready(Err(error)),
            Poll::Pending if flow.outgoing.waiting.borrow().is_empty() => Poll::Ready(Ok(())),
            Poll::Pending => Poll::Pending,
        })
    }

    /// Marks the response as incomplete: resets the stream with `code` after its waiting parts.
    pub(crate) fn cut_off(&self, flow: &Flow, code: Code) {
        let is_waiting = !flow.outgoing.waiting.borrow().is_empty();
        match flow.outgoing.state.get() {
            Sending::Open if is_waiting => flow.outgoing.state.set(Sending::Breaks(code)),
            Sending::Nothing | Sending::Open => self.reset(flow, code),
            Sending::Ends | Sending::Breaks(_) | Sending::Ended => {}
        }
    }

    /// Rejects a malformed message on a stream (RFC 9113 8.1.1).
    pub(crate) fn reject(&self, stream: Stream, reason: &'static str) {
        let State { http, frames, .. } = &mut *self.state.borrow_mut();
        if let Err(error) = http.reject(stream, reason, frames) {
            self.failure.set(Some(error));
        }
    }

    /// The client's protocol error; the connection ends after the written frames.
    pub(crate) fn failure(&self) -> Option<ConnectionError> {
        self.failure.get()
    }

    fn reset(&self, flow: &Flow, code: Code) {
        let State { http, frames, .. } = &mut *self.state.borrow_mut();
        if let Some(stream) = flow.stream.get() {
            http.reset(stream, code, frames);
        }
        flow.outgoing.state.set(Sending::Ended);
    }

    /// Announces the shutdown with GOAWAY (RFC 9113 6.8) and a ping; new streams are accepted until the ping is
    /// acknowledged.
    pub(crate) fn announce_shutdown(&self) {
        let State { http, frames, .. } = &mut *self.state.borrow_mut();
        http.announce_shutdown(frames);
        http.ping(SHUTDOWN_PING, frames);
    }

    /// Resets a stream and drops its waiting parts.
    pub(super) fn cancel(&self, flow: &Flow, code: Code) {
        self.state.borrow_mut().drop_held(flow);
        self.reset(flow, code);
        self.wake();
    }

    /// Sends GOAWAY with this code and accepts no more streams.
    pub(crate) fn go_away(&self, code: Code) {
        let State { http, frames, .. } = &mut *self.state.borrow_mut();
        http.go_away(code, frames);
    }

    pub(crate) fn has_streams(&self) -> bool {
        self.state.borrow().http.open_streams() > 0
    }

    /// Whether a field block has arrived in part.
    pub(crate) fn is_in_field_block(&self) -> bool {
        self.state.borrow().http.is_block_incomplete()
    }

    pub(super) fn open(&self, stream: Stream, body: Receiving) -> Rc<Flow> {
        let state = &mut *self.state.borrow_mut();
        state.open(stream, body)
    }

    /// Ends the request of a stream. Waiting parts of its response are still sent.
    pub(super) fn end_request(&self, flow: &Rc<Flow>, fields: Box<FieldSection>) {
        self.give_up_turn(flow);
        self.state.borrow_mut().give_fields(fields);
        match flow.outgoing.state.get() {
            Sending::Nothing | Sending::Open => self.cut_off(flow, Code::INTERNAL_ERROR),
            Sending::Ends | Sending::Breaks(_) | Sending::Ended => {}
        }
        flow.incoming.state.set(Receiving::Unwanted);
        if let Some(body) = flow.incoming.body_if_any() {
            let unread = body.bytes.take().len();
            self.release_quietly(flow, unread as u32); // within a window
            // A broken tunnel may have taken bytes without releasing them.
            self.give_back_held(body, body.in_core_budget.get());
        }
        let state = &mut *self.state.borrow_mut();
        if let Some(stream) = flow.stream.get()
            && flow.outgoing.state.get() == Sending::Ended
        {
            state.close(flow, stream);
        }
        self.wake();
    }

    pub(super) fn flow(&self, stream: Stream) -> Option<Rc<Flow>> {
        self.state.borrow().flow(stream)
    }

    /// Hands to the transport as much as can be sent now, by priority if not everything fits. Returns whether anything
    /// is unsent.
    pub(crate) fn pump(&self) -> bool {
        let transport = self.transport();
        let state = &mut *self.state.borrow_mut();
        // The highest urgency of the streams whose producers were woken now or since the last call; lower values are
        // more urgent.
        let mut urgency = self.turns.take_woken_urgency();
        while !state.is_full()
            && let Some(stream) = state.http.next_ready()
        {
            let of_stream = state.http.priority(stream).urgency;
            if of_stream > urgency {
                // More urgent streams are about to write: let them go first.
                self.call();
                urgency = u8::MAX;
                break;
            }
            match state.flow(stream) {
                Some(flow) if state.send_waiting(&flow, stream, transport) => {
                    urgency = urgency.min(of_stream);
                }
                Some(_) => {}
                None => state.http.not_ready(stream),
            }
        }
        self.turns.set_woken_urgency(urgency);
        state.queue_frames(transport);
        state.has_unsent()
    }

    /// Records that all frames handed to the transport are sent.
    pub(crate) fn sent(&self) {
        self.state.borrow_mut().sent();
    }

    /// Refills the client's abuse budgets for the elapsed time.
    pub(crate) fn elapsed(&self, time: Duration) {
        self.state.borrow_mut().http.elapsed(time);
    }

    /// Whether to stop reading until some output is sent.
    pub(crate) fn is_choked(&self) -> bool {
        self.state.borrow().must_stop_reading()
    }

    /// Frees memory that an idle connection does not need.
    pub(crate) fn rest(&self) {
        self.state.borrow_mut().free_idle_memory();
    }
}
