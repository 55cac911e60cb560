//! Stalled streams: a part of the response waits because the client's window of the stream is exhausted. A stalled
//! stream does not block other streams, holds a bounded part of its response, and is reset when the client takes too
//! long.

use std::rc::Rc;
use std::time::Duration;

use onrush_engine::{Instant, Part};
use onrush_http::http2::code::Code;
use onrush_http::http2::{Blocked, Stream};

use super::flow::{Flow, Stall};
use super::output::State;
use super::session::Session;
use crate::limits::http2::HTTP2_STREAM_HELD_MAX;

/// State of the waiting responses of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stalled {
    /// At least one response waits, for any reason.
    pub(crate) is_any_waiting: bool,
    /// Number of stalled streams, each weighted by [`count_of`].
    pub(crate) count: u32,
    /// Start of the longest stall, in which little progress does not count.
    pub(crate) since: Option<Instant>,
    /// Earliest deadline of a stalled stream.
    pub(crate) late_at: Option<Instant>,
}

impl Session {
    /// Updates the stall times of all streams. `patience` applies to streams without a time of their own.
    pub(crate) fn update_stalls(&self, patience: Duration, now: Instant) -> Stalled {
        let state = &*self.state.borrow();
        let mut found = Stalled::default();
        for flow in state.flows().filter(|flow| !flow.is_tunnel.get()) {
            let is_waiting = flow.is_waiting();
            found.is_any_waiting |= is_waiting;
            let outgoing = &flow.outgoing;
            if !is_waiting || !state.is_blocked(flow) {
                outgoing.stalled.set(None);
                continue;
            }
            let written = flow.written();
            let stall = match outgoing.stalled.get() {
                Some(stall) => stall.at(now, written),
                None => Stall::new(now, written),
            };
            outgoing.stalled.set(Some(stall));
            let late_at = stall.since.0 + outgoing.patience.get().unwrap_or(patience);
            let earliest = |found: Option<Instant>, at: Instant| found.map_or(at, |it| it.min(at));
            found.count += count_of(flow);
            found.since = Some(earliest(found.since, stall.slow_since.0));
            found.late_at = Some(earliest(found.late_at, late_at));
        }
        found
    }

    /// Returns the bytes of held responses that were dropped unsent since the last call.
    pub(crate) fn take_dropped(&self) -> usize {
        std::mem::take(&mut self.state.borrow_mut().dropped)
    }

    /// Resets the streams that are past their deadline.
    pub(crate) fn reset_late_streams(&self, patience: Duration, now: Instant) {
        let is_late = |flow: &Flow, stall: &Stall| {
            stall.since.0 + flow.outgoing.patience.get().unwrap_or(patience) <= now
        };
        let late = self.state.borrow().stalled_streams(is_late);
        self.end_streams(late.iter().map(|(_, stream)| *stream), Code::CANCEL);
    }

    /// Resets streams that have made little progress since `until`, the longest stalled first, until their weights
    /// reach `excess`.
    pub(crate) fn reset_longest_stalled(&self, mut excess: u32, until: Instant) {
        let is_meant = |_: &Flow, stall: &Stall| stall.slow_since.0 <= until;
        let mut stalled = self.state.borrow().stalled_streams(is_meant);
        stalled.sort_by_key(|(since, stream)| (*since, stream.id()));
        for (_, stream) in stalled {
            let Some(flow) = self.flow(stream).filter(|_| excess > 0) else {
                return;
            };
            excess = excess.saturating_sub(count_of(&flow));
            self.end_streams([stream].into_iter(), Code::ENHANCE_YOUR_CALM);
        }
    }

    fn end_streams(&self, streams: impl Iterator<Item = Stream>, code: Code) {
        for stream in streams {
            let mut state = self.state.borrow_mut();
            let State { http, frames, .. } = &mut *state;
            http.reset(stream, code, frames);
            drop(state);
            self.was_reset(stream);
        }
    }
}

impl State {
    /// Whether the window of the stream itself is exhausted, not only the window of the connection.
    fn is_blocked(&self, flow: &Flow) -> bool {
        let stream = flow.stream.get();
        stream.and_then(|stream| self.http.blocked(stream)) == Some(Blocked::Stream)
    }

    /// Stalled streams for which `is_meant` is true, each with the time since which it has made little progress.
    fn stalled_streams(&self, is_meant: impl Fn(&Flow, &Stall) -> bool) -> Vec<(Instant, Stream)> {
        let stalled = |flow: &Rc<Flow>| {
            let stall = flow.outgoing.stalled.get()?;
            let stream = flow.stream.get().filter(|_| is_meant(flow, &stall))?;
            Some((stall.slow_since.0, stream))
        };
        self.flows().filter_map(stalled).collect()
    }
}

/// Weight of a stalled stream: 1, or more if it holds more than the bound of one stream.
fn count_of(flow: &Flow) -> u32 {
    let count = flow.own_bytes().div_ceil(HTTP2_STREAM_HELD_MAX);
    count.max(1) as u32 // the largest is a directory listing
}

impl Flow {
    /// Held bytes in memory that is not shared with other responses.
    pub(super) fn own_bytes(&self) -> usize {
        let own = |part: &Part| match part {
            Part::Buffer(buffer) => buffer.len(),
            Part::Shared(bytes, _) if Rc::strong_count(bytes) == 1 => bytes.len(),
            Part::Shared(..) | Part::Static(_) => 0,
        };
        self.outgoing.waiting.borrow().iter().map(own).sum()
    }
}
