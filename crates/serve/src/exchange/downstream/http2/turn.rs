//! When more of a response is made: its windows have to take it, and of streams that read files a few of a connection have their turn
//! at a time, so that what is read is what is sent next.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use onrush_engine::Error;
use onrush_http::http2::Stream;
use onrush_http::http2::priority::{Delivery, Priority};

use super::flow::Flow;
use super::output::State;
use super::session::Session;
use crate::limits::http2::HTTP2_READERS_MAX;

/// The turns of a connection.
#[derive(Default)]
pub(super) struct Turns {
    taken: Cell<usize>,
    /// The stream that was woken last for its turn, and the one that was the first to be woken for room.
    last: Cell<u32>,
    last_for_room: Cell<u32>,
    /// The urgency of the most urgent one that makes more of its response, until others send.
    woken: Cell<Option<u8>>,
}

impl Turns {
    /// Streams make more of their responses; this is the urgency of the most urgent one.
    pub(super) fn are_woken(&self, urgency: u8) {
        self.woken.set((urgency < u8::MAX).then_some(urgency));
    }

    /// What was said last, which is dealt with now: the urgency, or less than any.
    pub(super) fn take_woken(&self) -> u8 {
        self.woken.take().unwrap_or(u8::MAX)
    }
}

/// A stream's turn, up to when this is dropped.
pub(crate) struct Turn(Rc<Session>);

impl Drop for Turn {
    fn drop(&mut self) {
        let turns = &self.0.turns;
        turns.taken.set(turns.taken.get() - 1);
        self.0.wake_for_turn();
    }
}

impl Session {
    /// How much of the body may be sent now, once that is something.
    ///
    /// # Errors
    /// When the stream is reset meanwhile.
    pub(crate) fn room(
        self: &Rc<Self>,
        flow: &Rc<Flow>,
    ) -> impl Future<Output = Result<usize, Error>> + use<> {
        let (session, flow) = (Rc::clone(self), Rc::clone(flow));
        poll_fn(move |context| session.poll_room(&flow, context))
    }

    pub(super) fn poll_room(
        &self,
        flow: &Flow,
        context: &Context<'_>,
    ) -> Poll<Result<usize, Error>> {
        if let Poll::Ready(error) = flow.poll_reset(context) {
            return Poll::Ready(Err(error));
        }
        let room = self.room_now(flow);
        flow.outgoing.awaits_room.set(room == 0);
        match room {
            0 => Poll::Pending,
            room => Poll::Ready(Ok(room)),
        }
    }

    /// How much of the body may be sent now.
    pub(super) fn room_now(&self, flow: &Flow) -> usize {
        let http = &self.state.borrow().http;
        let stream = flow.stream.get();
        stream.map_or(0, |stream| http.send_window(stream))
    }

    /// Waits until it is the stream's turn, and says how much its windows take then, which may be nothing.
    ///
    /// # Errors
    /// When the stream is reset meanwhile.
    pub(crate) fn turn(
        self: &Rc<Self>,
        flow: &Rc<Flow>,
    ) -> impl Future<Output = Result<(Turn, usize), Error>> + use<> {
        let (session, flow) = (Rc::clone(self), Rc::clone(flow));
        poll_fn(move |context| {
            if let Poll::Ready(error) = flow.poll_reset(context) {
                return Poll::Ready(Err(error));
            }
            let taken = &session.turns.taken;
            let is_free = taken.get() < HTTP2_READERS_MAX;
            flow.outgoing.awaits_turn.set(!is_free);
            if !is_free {
                return Poll::Pending;
            }
            taken.set(taken.get() + 1);
            let turn = Turn(Rc::clone(&session));
            Poll::Ready(Ok((turn, session.room_now(&flow))))
        })
    }

    /// The stream waits for no turn any more: another one may be the next.
    pub(super) fn give_up_turn(&self, flow: &Flow) {
        if flow.outgoing.awaits_turn.replace(false) {
            self.wake_for_turn();
        }
    }

    /// Wakes the stream whose turn is next.
    fn wake_for_turn(&self) {
        let state = self.state.borrow();
        let last = self.turns.last.get();
        let waiting = state.flows_waiting_for_turn();
        let next = waiting.min_by_key(|(stream, _)| rank(&state, *stream, last));
        if let Some((stream, flow)) = next {
            self.turns.last.set(stream.id());
            flow.wake();
        }
    }

    /// Windows have opened: who waits for room goes on in the order of priorities, since the first may use all that there is.
    pub(crate) fn windows_opened(&self) {
        let state = self.state.borrow();
        let last = self.turns.last_for_room.get();
        let mut waiting: Vec<_> = state.flows_waiting_for_room().collect();
        waiting.sort_by_key(|(stream, _)| rank(&state, *stream, last));
        if let Some((first, _)) = waiting.first() {
            self.turns.last_for_room.set(first.id());
            self.turns.are_woken(state.http.priority(*first).urgency);
        }
        waiting.iter().for_each(|(_, flow)| flow.wake());
    }
}

/// The place of a stream among those that wait (RFC 9218 10), where `last` was the first before: the most urgent come first, and of those
/// the oldest, or one after the other where parts are of use.
fn rank(state: &State, stream: Stream, last: u32) -> (u8, bool, u32) {
    let Priority { urgency, delivery } = state.http.priority(stream);
    let had_turn = delivery == Delivery::Incremental && stream.id() <= last;
    (urgency, had_turn, stream.id())
}
