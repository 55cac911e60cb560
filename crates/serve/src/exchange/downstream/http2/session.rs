//! What the streams of one connection share: the protocol's state, the frames that are to be sent, and whose they are.
//!
//! ```text
//!   a request's task ── head, data, end ──> frames ──> transport     one send for all streams of a turn
//!                            │ what the windows do not take
//!                            └──> Flow::waiting ── pump, by priority ──> frames
//! ```
//! Only the connection's own task receives and sends; those of requests write here and wake it.

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
use crate::worker::uploads_held::UploadsHeld;

/// What is in the ping behind the first word of the end.
pub(crate) const LEAVING: [u8; 8] = *b"leaving.";

/// Who holds the connection that the streams are on.
pub(crate) trait Carrier {
    fn transport(&self) -> &Transport;

    fn client(&self) -> &Client;

    /// What of requests' bodies is held on the core, for all connections.
    fn uploads_held(&self) -> &UploadsHeld;
}

/// A connection of HTTP/2, as its streams see it.
pub(crate) struct Session {
    pub(super) carrier: Box<dyn Carrier>,
    pub(crate) state: RefCell<State>,
    task: RefCell<Option<Waker>>,
    /// The rule that the client has broken, where its stream has shown it.
    failure: Cell<Option<ConnectionError>>,
    /// The connection's task is running: it sends what is written before it waits, and need not be woken for that.
    is_awake: Cell<bool>,
    pub(super) turns: Turns,
}

impl Session {
    /// A connection that has just begun, over what `carrier` holds.
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

    /// The connection's task runs, and is to be woken when streams write behind [`Session::sleep`].
    pub(crate) fn wake_up(&self, context: &Context<'_>) {
        self.is_awake.set(true);
        let task = &mut *self.task.borrow_mut();
        match task {
            Some(waker) => waker.clone_from(context.waker()),
            None => *task = Some(context.waker().clone()),
        }
    }

    /// It has sent what there was, as far as that could be sent.
    pub(crate) fn sleep(&self) {
        self.is_awake.set(false);
    }

    /// Something was written.
    pub(crate) fn wake(&self) {
        if !self.is_awake.get() {
            self.call();
        }
    }

    /// Has the connection's task run once more, behind those that are woken already.
    fn call(&self) {
        if let Some(task) = &*self.task.borrow() {
            task.wake_by_ref();
        }
    }

    /// Writes a head by `fields`, of which nothing follows where that is known.
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
        flow.outgoing.left.set(match length {
            Some(BodyLength::Known(length)) => Some(length),
            Some(BodyLength::Unknown) | None => None,
        });
    }

    /// Whether something may still be written on the stream.
    fn takes_data(flow: &Flow) -> Option<Stream> {
        match flow.outgoing.state.get() {
            Sending::Open => flow.stream.get(),
            Sending::Nothing | Sending::Ends | Sending::Breaks(_) | Sending::Ended => None,
        }
    }

    /// Appends bytes of the body.
    pub(crate) fn data(&self, flow: &Flow, bytes: &[u8]) {
        let state = &mut *self.state.borrow_mut();
        // More than its head has said is none of the response.
        let left = flow.outgoing.left.get().unwrap_or(u64::MAX);
        let bytes = &bytes[..bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
        let Some(stream) = Self::takes_data(flow).filter(|_| !bytes.is_empty()) else {
            return;
        };
        match state.room_for(flow, stream, bytes.len()) {
            Some(end) => state.put_data(flow, stream, (bytes, end)),
            // Not in buffers of the core, which all clients need.
            None => state.hold(flow, stream, Part::Shared(Rc::from(bytes), 0)),
        }
    }

    /// The same, without a copy where it is worth it.
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

    /// Nothing follows what was written.
    pub(crate) fn end(&self, flow: &Flow) {
        let state = &mut *self.state.borrow_mut();
        if let Some(stream) = Self::takes_data(flow) {
            flow.outgoing.state.set(Sending::Ends);
            if flow.outgoing.waiting.borrow().is_empty() {
                state.put_end(flow, stream);
            }
        }
    }

    /// Lines of trailers, the last of which is empty and ends the body.
    pub(crate) fn trailers(&self, flow: &Flow, lines: &[u8]) {
        let trailers = flow.outgoing.trailers.used();
        trailers.borrow_mut().extend_from_slice(lines);
        if lines == b"\r\n" || lines.ends_with(b"\r\n\r\n") {
            self.end(flow);
        }
    }

    /// Waits until everything that was written on a stream has found room in its windows and on the connection.
    ///
    /// # Errors
    /// When the stream is reset meanwhile.
    pub(crate) fn flush(&self, flow: &Rc<Flow>) -> impl Future<Output = Result<(), Error>> + use<> {
        let flow = Rc::clone(flow);
        self.wake();
        poll_fn(move |context| match flow.poll_reset(context) {
            Poll::Ready(error) => Poll::Ready(Err(error)),
            Poll::Pending if flow.outgoing.waiting.borrow().is_empty() => Poll::Ready(Ok(())),
            Poll::Pending => Poll::Pending,
        })
    }

    /// The response is not whole, and never will be: the stream is reset with this code, behind what of it waits.
    pub(crate) fn cut_off(&self, flow: &Flow, code: Code) {
        let is_waiting = !flow.outgoing.waiting.borrow().is_empty();
        match flow.outgoing.state.get() {
            Sending::Open if is_waiting => flow.outgoing.state.set(Sending::Breaks(code)),
            Sending::Nothing | Sending::Open => self.reset(flow, code),
            Sending::Ends | Sending::Breaks(_) | Sending::Ended => {}
        }
    }

    /// What came on a stream is no message, for this `reason` (RFC 9113 8.1.1).
    pub(crate) fn reject(&self, stream: Stream, reason: &'static str) {
        let State { http, frames, .. } = &mut *self.state.borrow_mut();
        if let Err(error) = http.reject(stream, reason, frames) {
            self.failure.set(Some(error));
        }
    }

    /// The rule that the client has broken so that the connection ends with what is written.
    pub(crate) fn failure(&self) -> Option<ConnectionError> {
        self.failure.get()
    }

    /// Ends a stream that has no response.
    fn reset(&self, flow: &Flow, code: Code) {
        let State { http, frames, .. } = &mut *self.state.borrow_mut();
        if let Some(stream) = flow.stream.get() {
            http.reset(stream, code, frames);
        }
        flow.outgoing.state.set(Sending::Ended);
    }

    /// Says that no more streams will be taken in a round trip (RFC 9113 6.8), which the answer to a ping ends.
    pub(crate) fn go_away_soon(&self) {
        let State { http, frames, .. } = &mut *self.state.borrow_mut();
        http.go_away_soon(frames);
        http.ping(LEAVING, frames);
    }

    /// Ends a stream without what waits on it.
    pub(super) fn cancel(&self, flow: &Flow, code: Code) {
        self.state.borrow_mut().drop_held(flow);
        self.reset(flow, code);
        self.wake();
    }

    /// Takes no more streams, for this reason.
    pub(crate) fn go_away(&self, code: Code) {
        let State { http, frames, .. } = &mut *self.state.borrow_mut();
        http.go_away(code, frames);
    }

    /// Whether there are requests that have not got all of their responses.
    pub(crate) fn has_streams(&self) -> bool {
        self.state.borrow().http.open_streams() > 0
    }

    /// Whether a head has come in part.
    pub(crate) fn is_amid_block(&self) -> bool {
        self.state.borrow().http.is_amid_block()
    }

    /// What holds the two directions of a stream that has begun.
    pub(super) fn open(&self, stream: Stream, body: Receiving) -> Rc<Flow> {
        let state = &mut *self.state.borrow_mut();
        state.open(stream, body)
    }

    /// The request of a stream is over: what of its response waits is still sent.
    pub(super) fn leave(&self, flow: &Rc<Flow>, fields: Box<FieldSection>) {
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
            // A tunnel that broke has taken some, and passed them to nobody.
            self.give_back_held(body, body.held.get());
        }
        let state = &mut *self.state.borrow_mut();
        if let Some(stream) = flow.stream.get()
            && flow.outgoing.state.get() == Sending::Ended
        {
            state.close(flow, stream);
        }
        self.wake();
    }

    /// The flow of a stream, if it has one.
    pub(super) fn flow(&self, stream: Stream) -> Option<Rc<Flow>> {
        self.state.borrow().flow(stream)
    }

    /// Hands all that may be sent now to the transport, in the order of priorities where it does not fit. Whether there is
    /// anything.
    pub(crate) fn pump(&self) -> bool {
        let transport = self.transport();
        let state = &mut *self.state.borrow_mut();
        // The urgency of the most urgent one of which more is made now, or has been since this was called last.
        let mut urgency = self.turns.take_woken();
        while !state.is_full()
            && let Some(stream) = state.http.next_ready()
        {
            let of_stream = state.http.priority(stream).urgency;
            if of_stream > urgency {
                // First comes what is made of the others.
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
        self.turns.are_woken(urgency);
        state.queue_frames(transport);
        state.has_unsent()
    }

    /// All that was handed over is sent.
    pub(crate) fn sent(&self) {
        self.state.borrow_mut().sent();
    }

    /// So much time has passed: what a client may do in excess of good work comes back with it.
    pub(crate) fn elapsed(&self, time: Duration) {
        self.state.borrow_mut().http.elapsed(time);
    }

    /// Whether more should not be read before some of what was written is sent.
    pub(crate) fn is_choked(&self) -> bool {
        self.state.borrow().is_choked()
    }

    /// Gives up what an idle connection does not need.
    pub(crate) fn rest(&self) {
        self.state.borrow_mut().rest();
    }
}
