//! State shared by the lanes of a connection: the current connection, if any, and the lanes that wait for a stream.
//! Lanes write their requests into it; a driver task sends them and processes received bytes for all lanes.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use onrush_engine::{Input, Instant};
use onrush_http::http2::code::Code;
use onrush_tls::Transport;

use super::lane::{End, GoAwayScope, Lane, State};
use super::session::Session;
use crate::connection::core_run::CoreRun;
use crate::connection::work::Work;
use crate::limits::http2::GOAWAY_RETRIES_MAX;
use crate::protocol::failure::{Failure, NoResponse};

/// A connection that is replaced whenever it ends, and its lanes.
pub(super) struct ConnectionSlot {
    core_run: Rc<CoreRun>,
    index: u32,
    shared: RefCell<Shared>,
    driver: RefCell<Option<Waker>>,
    /// Whether the driver was woken and has not run since.
    is_called: Cell<bool>,
}

/// Returns the position of a new lane in the queue, given the times at which the queued requests were first sent: at
/// the end, but a request that is sent again comes directly after the requests that were first sent before it.
/// Otherwise, if each connection serves only a few requests, it could get an unserved stream again and again.
fn queue_position(line: impl Iterator<Item = Option<Instant>>, sent: Option<Instant>) -> usize {
    match sent {
        None => line.count(),
        Some(sent) => {
            let is_before = |other: &Option<Instant>| other.is_some_and(|other| other <= sent);
            line.take_while(is_before).count()
        }
    }
}

struct Shared {
    session: Option<Session>,
    /// Number of sessions so far, and the time of the last.
    sessions: u64,
    made: Instant,
    lanes: Box<[Lane]>,
    /// Lanes that wait for a stream, the longest waiting first.
    waiting: VecDeque<u32>,
    /// Lanes that may open a stream and have not done so.
    may_open: u32,
}

impl ConnectionSlot {
    pub(super) fn new(core_run: &Rc<CoreRun>, index: u32, lanes: usize) -> ConnectionSlot {
        let now = core_run.core.now_exact();
        ConnectionSlot {
            core_run: Rc::clone(core_run),
            index,
            shared: RefCell::new(Shared {
                session: None,
                sessions: 0,
                made: now,
                lanes: (0..lanes).map(|_| Lane::new(now)).collect(),
                waiting: VecDeque::with_capacity(lanes),
                may_open: 0,
            }),
            driver: RefCell::default(),
            is_called: Cell::new(false),
        }
    }

    /// Makes the request of `work` for the lane at `place`, and waits for its result.
    pub(super) async fn request(&self, place: usize, kind: usize, work: &mut Work) -> End {
        poll_fn(|context| self.poll_ask((place, kind), work, context)).await
    }

    fn poll_ask(
        &self,
        (place, kind): (usize, usize),
        work: &mut Work,
        context: &mut Context<'_>,
    ) -> Poll<End> {
        let shared = &mut *self.shared.borrow_mut();
        let lane = &mut shared.lanes[place];
        match lane.state {
            State::Ended(end) => {
                lane.state = State::Idle;
                return Poll::Ready(end);
            }
            State::Waiting | State::Open(_) => {}
            State::Idle => {
                (lane.number, lane.kind) = (work.number, kind);
                if !work.is_sent {
                    (lane.failed_connections, lane.sent) = (0, None);
                }
                lane.waits_since = shared.sessions;
                let turn = shared.queue_position(place);
                if turn > 0 || !self.opens(shared, place, work) {
                    shared.lanes[place].state = State::Waiting;
                    shared.waiting.insert(turn, place as u32);
                }
                self.wake_driver();
            }
            State::MayOpen => {
                shared.may_open -= 1;
                if !self.opens(shared, place, work) {
                    shared.lanes[place].state = State::Waiting;
                    shared.waiting.push_front(place as u32);
                }
                self.wake_driver();
            }
        }
        shared.lanes[place].await_more(context);
        Poll::Pending
    }

    fn opens(&self, shared: &mut Shared, place: usize, work: &mut Work) -> bool {
        let Some(session) = &mut shared.session else {
            return false;
        };
        if session.room() <= shared.may_open {
            return false;
        }
        let lane = &mut shared.lanes[place];
        let Some(bytes) = session.open(&self.core_run, self.index, (place, lane)) else {
            return false;
        };
        if lane.waits_since < shared.sessions {
            self.core_run.supply.start(work, shared.made);
        }
        work.queued(bytes);
        true
    }

    fn wake_driver(&self) {
        if self.is_called.replace(true) {
            return;
        }
        if let Some(driver) = &*self.driver.borrow() {
            driver.wake_by_ref();
        }
    }

    /// Records that the driver runs, and stores its waker.
    fn note_driver(&self, context: &Context<'_>) {
        self.is_called.set(false);
        match &mut *self.driver.borrow_mut() {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
    }

    pub(super) async fn needed(&self) {
        poll_fn(|context| {
            self.note_driver(context);
            let shared = &mut *self.shared.borrow_mut();
            shared.give_up_if(&self.core_run);
            match shared.waiting.is_empty() {
                true => Poll::Pending,
                false => Poll::Ready(()),
            }
        })
        .await;
    }

    /// Sends and receives over `stream` until either side ends it. Returns whether a response was received; `work` is
    /// the connection's own.
    pub(super) async fn drive(&self, stream: &Transport, work: &mut Work) -> bool {
        stream.set_deadline(None);
        let now = self.core_run.core.now_exact();
        {
            let shared = &mut *self.shared.borrow_mut();
            shared.session = Some(Session::new(&self.core_run, shared.lanes.len(), now));
            shared.sessions += 1;
            shared.made = now;
            shared.wake_waiting(&self.core_run);
        }
        let mut input = Input::default();
        let end = poll_fn(|context| self.poll_drive(stream, &mut input, work, context)).await;
        self.shared.borrow_mut().end(&self.core_run, end)
    }

    fn poll_drive(
        &self,
        stream: &Transport,
        input: &mut Input,
        work: &mut Work,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), NoResponse>> {
        self.note_driver(context);
        let shared = &mut *self.shared.borrow_mut();
        let moved = self.move_on(shared, stream, input, work);
        let session = shared
            .session
            .as_mut()
            .expect("the operation is in progress");
        if moved.is_err() {
            session.send_last(stream);
            return Poll::Ready(moved);
        }
        if session.is_over() {
            return Poll::Ready(Ok(()));
        }
        if session.is_unsent() {
            // Runs again after the lanes that were woken, so that their frames are sent together.
            self.wake_driver();
        }
        Poll::Pending
    }

    /// Sends queued frames and processes received bytes.
    fn move_on(
        &self,
        shared: &mut Shared,
        stream: &Transport,
        input: &mut Input,
        work: &mut Work,
    ) -> Result<(), NoResponse> {
        let core_run = &*self.core_run;
        let Shared { session, lanes, .. } = shared;
        let session = session.as_mut().expect("the operation is in progress");
        // A server that closed its receiving side may have sent the reason.
        let sent = session.send(core_run, stream, lanes);
        while let Poll::Ready(received) = stream.poll_recv(input) {
            let count = received?;
            if count == 0 {
                return Err(NoResponse::Ended);
            }
            let now = core_run.received(stream, count);
            let what = (stream, input.bytes());
            let done = session.take(core_run, self.index, what, lanes, now)?;
            input.consume(done);
            core_run.recorder.sample_once(stream, work);
        }
        shared.wake_waiting(core_run);
        if let (Some(session), false) = (&mut shared.session, shared.waiting.is_empty()) {
            session.await_room(core_run, stream);
        }
        sent
    }
}

impl Shared {
    /// Returns the position in the queue of the lane at `place`.
    fn queue_position(&self, place: usize) -> usize {
        let line = self.waiting.iter();
        let line = line.map(|&place| self.lanes[place as usize].sent);
        queue_position(line, self.lanes[place].sent)
    }

    /// Wakes as many waiting lanes as streams are available.
    fn wake_waiting(&mut self, core_run: &CoreRun) {
        self.give_up_if(core_run);
        let room = self.session.as_ref().map_or(0, Session::room);
        while self.may_open < room
            && let Some(place) = self.waiting.pop_front()
        {
            let lane = &mut self.lanes[place as usize];
            lane.state = State::MayOpen;
            lane.wake();
            self.may_open += 1;
        }
    }

    /// After the end of the run, ends the waiting requests, which were not sent.
    fn give_up_if(&mut self, core_run: &CoreRun) {
        if self.waiting.is_empty() || !core_run.is_over() {
            return;
        }
        for place in self.waiting.drain(..) {
            self.lanes[place as usize].end(End::Lost(Failure::Other));
        }
    }

    /// Handles a GOAWAY with `code` on a connection without any response: limits how often and how long the waiting
    /// lanes wait.
    fn limit_goaway_retries(&mut self, core_run: &CoreRun, code: Code) {
        let now = core_run.core.now_exact();
        let Shared {
            waiting,
            lanes,
            sessions,
            ..
        } = self;
        waiting.retain(|&place| {
            let lane = &mut lanes[place as usize];
            if lane.waits_since == *sessions {
                // It began to wait when the server was already going away, and may have been counted before.
                return true;
            }
            lane.failed_connections += 1;
            let since = *lane.sent.get_or_insert(now);
            let end = match () {
                () if lane.failed_connections >= GOAWAY_RETRIES_MAX => {
                    End::Cancelled(Failure::GoAway, code)
                }
                () if now >= since + core_run.timeout() => End::Lost(Failure::Timeout),
                () => return true,
            };
            lane.end(end);
            false
        });
    }

    /// Ends the session. Returns whether a response was received over it.
    fn end(&mut self, core_run: &CoreRun, end: Result<(), NoResponse>) -> bool {
        let session = self.session.take().expect("the operation was in progress");
        let gone = session.goaway_error();
        let mut is_in_vain = false;
        for (place, lane) in self.lanes.iter_mut().enumerate() {
            match lane.state {
                State::Open(_) => {
                    is_in_vain = true;
                    lane.end(lost(lane, end, gone));
                }
                State::MayOpen => {
                    lane.state = State::Waiting;
                    self.waiting.push_front(place as u32);
                }
                State::Idle | State::Waiting | State::Ended(_) => {}
            }
        }
        self.may_open = 0;
        if let (Some(code), GoAwayScope::Everybody) = (session.goaway_code(), session.passed()) {
            self.limit_goaway_retries(core_run, code);
        }
        if let (false, Err(NoResponse::Failed(error))) = (is_in_vain, end)
            && Failure::of_exchange(error) == Failure::Timeout
        {
            // The server permits no streams at all.
            for place in self.waiting.drain(..) {
                self.lanes[place as usize].end(End::Lost(Failure::Timeout));
            }
        }
        if let (false, Err(NoResponse::Refused(reason))) = (is_in_vain, end) {
            core_run.invalid_bytes(reason);
        }
        session.has_responded()
    }
}

/// Returns the result of the request of `lane` when its connection ends with `end`.
fn lost(lane: &Lane, end: Result<(), NoResponse>, gone: Option<Code>) -> End {
    let failure = match end {
        Err(NoResponse::Refused(reason)) => return End::Refused(reason),
        Err(NoResponse::Failed(error)) if lane.has_begun() => Failure::of_exchange(error),
        Ok(()) | Err(NoResponse::Ended) if lane.has_begun() => Failure::EarlyClose,
        Err(lost) => Failure::of_lost(lost),
        Ok(()) => Failure::ClosedBeforeResponse,
    };
    match (failure, gone) {
        (Failure::Timeout, _) | (_, None) => End::Lost(failure),
        (_, Some(code)) => End::Cancelled(Failure::GoAway, code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resent_requests_are_ordered_by_first_send() {
        let at = |nanoseconds| Some(Instant::from_nanoseconds(nanoseconds));
        for (line, sent, wanted) in [
            (&[][..], None, 0),
            (&[], at(1), 0),
            (&[None, None], None, 2),
            (&[None, None], at(1), 0),
            (&[at(1), at(2), None], at(2), 2),
            (&[at(1), at(3), None], at(2), 1),
            (&[at(2), at(3), None], at(1), 0),
            (&[at(1), at(2), None], None, 3),
        ] {
            assert_eq!(
                queue_position(line.iter().copied(), sent),
                wanted,
                "{line:?} {sent:?}"
            );
        }
    }
}
