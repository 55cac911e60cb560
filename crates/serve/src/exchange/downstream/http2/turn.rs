//! When producers of responses may continue: once their windows have room. Only a few streams of a connection read
//! files at a time, so that data is read in the order in which it is sent.

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

#[derive(Default)]
pub(super) struct Turns {
    taken: Cell<usize>,
    /// The stream woken last for its turn, and the first one woken last for room.
    last: Cell<u32>,
    last_for_room: Cell<u32>,
    /// Highest urgency of the streams that were woken to write more, until others send.
    woken: Cell<Option<u8>>,
}

impl Turns {
    /// Records that streams were woken to write, the most urgent with this urgency.
    pub(super) fn set_woken_urgency(&self, urgency: u8) {
        self.woken.set((urgency < u8::MAX).then_some(urgency));
    }

    /// Takes the recorded urgency, or `u8::MAX` if there is none.
    pub(super) fn take_woken_urgency(&self) -> u8 {
        self.woken.take().unwrap_or(u8::MAX)
    }
}

/// A stream's turn to read, until it is dropped.
pub(crate) struct Turn(Rc<Session>);

impl Drop for Turn {
    fn drop(&mut self) {
        let turns = &self.0.turns;
        turns.taken.set(turns.taken.get() - 1);
        self.0.wake_for_turn();
    }
}

impl Session {
    /// Waits until the windows have room; returns how many bytes may be sent. Fails if the stream is reset meanwhile.
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

    /// Number of bytes that may be sent now.
    pub(super) fn room_now(&self, flow: &Flow) -> usize {
        let http = &self.state.borrow().http;
        let stream = flow.stream.get();
        stream.map_or(0, |stream| http.send_window(stream))
    }

    /// Waits for the stream's turn. Returns the number of bytes its windows take then, which may be 0.
    /// Fails if the stream is reset meanwhile.
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

    /// Stops waiting for a turn, and wakes the next stream.
    pub(super) fn give_up_turn(&self, flow: &Flow) {
        if flow.outgoing.awaits_turn.replace(false) {
            self.wake_for_turn();
        }
    }

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

    /// Wakes streams that wait for room, in the order of priorities: the first may use all of it.
    pub(crate) fn windows_opened(&self) {
        let state = self.state.borrow();
        let last = self.turns.last_for_room.get();
        let mut waiting: Vec<_> = state.flows_waiting_for_room().collect();
        waiting.sort_by_key(|(stream, _)| rank(&state, *stream, last));
        if let Some((first, _)) = waiting.first() {
            self.turns.last_for_room.set(first.id());
            self.turns
                .set_woken_urgency(state.http.priority(*first).urgency);
        }
        waiting.iter().for_each(|(_, flow)| flow.wake());
    }
}

/// Sort key of a waiting stream (RFC 9218 10); `last` is the stream that was first before. The most urgent come first,
/// then the oldest, but incremental streams take turns.
fn rank(state: &State, stream: Stream, last: u32) -> (u8, bool, u32) {
    let Priority { urgency, delivery } = state.http.priority(stream);
    let had_turn = delivery == Delivery::Incremental && stream.id() <= last;
    (urgency, had_turn, stream.id())
}
