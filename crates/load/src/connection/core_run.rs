//! State shared by the connections of a core. [`Dialer`] connects, [`Supply`] provides requests, [`Codec`] writes and
//! parses them, and [`Recorder`] records; this module has what involves several of them.

mod dialer;
pub(crate) mod journey_recorder;
mod lanes;
mod loss;
mod one_way;
pub(crate) mod recorder;
mod supply;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use onrush_engine::{Address, Core, Instant};
use onrush_tls::Transport;

use crate::connection::work::Work;
use crate::limits::BATCH_BYTES_MAX;
use crate::pace::start_barrier::Signal;
use crate::pace::stop::Progress;
use crate::plan::Plan;
use crate::protocol::Codec;
use crate::record::Record;
use crate::record::host::{ThreadTime, thread_number};
use crate::record::incomplete_waits::IncompleteWaits;
use crate::record::live_counters::{LiveCounters, Thread};
use crate::record::rows::Reading;
use crate::record::times::ResponseTimes;
use crate::requests::request::LastRequest;
use crate::requests::response::ExpectationResult;
use dialer::Dialer;
use recorder::{Received, Recorder};
use supply::Supply;

pub(crate) struct CoreRun {
    pub(crate) core: Core,
    plan: Arc<Plan>,
    /// Longest time without received bytes while a response is pending.
    timeout: Duration,
    may_exceed_buffers: bool,
    pub(crate) dialer: Dialer,
    pub(crate) supply: Supply,
    pub(crate) codec: Codec,
    pub(crate) recorder: Recorder,
    /// Connections, or lanes of connections with several concurrent requests, that have work left. At 0 the core stops.
    active: Cell<usize>,
    started: Signal,
    begin: Cell<Instant>,
    /// CPU times of the thread at the start.
    time_before: Cell<ThreadTime>,
    end: Cell<Option<CoreEnd>>,
}

/// Figures of a core at the end of its part of the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CoreEnd {
    pub(crate) elapsed: Duration,
    /// CPU times of the thread during the run.
    pub(crate) time: ThreadTime,
    /// With busy polling: the time during which it had work, if it was on a CPU all the time.
    pub(crate) worked: Option<Duration>,
    /// Longest time between two calls into the kernel.
    pub(crate) busy_max: Duration,
    /// Total of the stalls, which are times longer than a turn may take.
    pub(crate) stalled: Duration,
    pub(crate) unfinished: u64,
}

impl CoreRun {
    /// Creates core `core.id()`'s part of `plan`. It waits for [`start`](Self::start).
    pub(crate) fn new(core: &Core, plan: &Arc<Plan>, address: Address) -> Rc<CoreRun> {
        let options = &plan.options;
        let connections = plan.connections_of(core.id()).count();
        // With several concurrent requests per connection, each has its own lane.
        let lanes = connections * plan.concurrency();
        let run = Rc::new(CoreRun {
            core: core.clone(),
            plan: Arc::clone(plan),
            timeout: options.timeout,
            may_exceed_buffers: plan.protocol.may_exceed(BATCH_BYTES_MAX),
            dialer: Dialer::new(core, plan, connections, address),
            supply: Supply::new(core, plan, lanes),
            codec: plan.protocol.codec(lanes, options.pipeline),
            recorder: Recorder::new(plan, lanes),
            active: Cell::new(lanes),
            started: Signal::default(),
            begin: Cell::new(core.now_exact()),
            time_before: Cell::default(),
            end: Cell::new(None),
        });
        core.note_writes();
        if options.busy_poll {
            core.busy_poll();
        }
        run
    }

    /// Spawns the task that assigns due requests to connections in an open loop.
    pub(crate) fn spawn_release(self: &Rc<CoreRun>) {
        if self.supply.is_released() {
            let run = Rc::clone(self);
            self.core.spawn(async move {
                run.started.wait().await;
                run.supply.release().await;
            });
        }
    }

    pub(crate) fn start(&self, begin: Instant) {
        self.begin.set(begin);
        self.recorder.measure_from(begin + self.plan.unmeasured());
        let budget = self.plan.budget_of(self.core.id(), begin);
        self.supply.begin(begin, budget);
        self.time_before.set(ThreadTime::now());
        self.core.take_busy_max();
        self.core.take_stalled();
        self.core.take_work_time();
        self.started.set();
    }

    pub(crate) fn begin_measuring(&self) {
        self.recorder.begin_measuring(self.elapsed());
    }

    /// Ends the run: no request is started any more, and only late responses are counted.
    pub(crate) fn finish(&self) -> CoreEnd {
        if let Some(end) = self.end.get() {
            return end;
        }
        let now = self.core.now_exact();
        if now < self.recorder.measured_from() {
            // Nothing was measured; responses until now must not count as a rate.
            self.begin_measuring();
        }
        let over = self.supply.end().map_or(now, |end| end.min(now));
        // Taken first, since the rest is not part of the run.
        let elapsed = self.elapsed();
        let missed = self.supply.close(over);
        if missed.count() > 0 {
            let mut record = self.recorder.record.borrow_mut();
            record.unanswered.response.merge(&missed);
        }
        let end = CoreEnd {
            elapsed,
            time: ThreadTime::now().since(self.time_before.get()),
            worked: self
                .plan
                .options
                .busy_poll
                .then(|| self.core.take_work_time()),
            busy_max: self.core.take_busy_max(),
            stalled: self.core.take_stalled(),
            unfinished: self.in_flight(),
        };
        self.end.set(Some(end));
        end
    }

    /// Returns the record when responses are no longer awaited. It includes the waits of requests without a response.
    pub(crate) fn take_record(&self) -> Record {
        let empty = Record::new(self.plan.protocol.outcomes());
        let mut record = self.recorder.record.replace(empty);
        let now = self.core.now_exact();
        for waiting in self.supply.take_waits() {
            self.add_wait(&mut record, waiting, now);
        }
        record.flush_times();
        record.begun = self.supply.sent();
        record.sent = sent(&record, record.begun);
        let samples = self.recorder.samples();
        samples.for_each(|info| record.add_tcp(info));
        record
    }

    /// Returns when the last response arrived, since the start; `None` without responses.
    pub(crate) fn answered_until(&self) -> Option<Duration> {
        self.recorder.answered_until(self.begin.get())
    }

    /// Returns the figures so far, or those at the end.
    pub(crate) fn read(&self) -> Reading {
        let standing = self.standing();
        let record = self.recorder.record.borrow();
        Reading {
            elapsed: self.elapsed(),
            tally: record.tally,
            progress: Progress {
                established: record.established,
                connect_failures: record.connect_failures(),
                responses: record.responses(),
            },
            standing,
        }
    }

    fn standing(&self) -> LiveCounters {
        let record = self.recorder.record.borrow();
        let (supply, end) = (&self.supply, self.end.get());
        let in_flight = in_flight(&record, supply.in_flight());
        LiveCounters {
            begun: supply.sent(),
            sent: sent(&record, supply.sent()),
            in_flight: end.map_or(in_flight, |end| end.unfinished),
            missed: supply.missed(),
            resent: record.resent,
            refused: record.refused,
            connections_max: record.connections_max,
            failures: record.failures(),
            tcp: self.recorder.tcp(),
            busy_max: end.map_or(self.core.busy_max(), |end| end.busy_max),
            stalled: end.map_or(self.core.stalled(), |end| end.stalled),
            worked: end.and_then(|end| end.worked).unwrap_or(self.core.worked()),
        }
    }

    /// Sets `sum` to the waits of requests without a response, including abandoned requests.
    pub(crate) fn unanswered(&self, sum: &mut IncompleteWaits) {
        let now = self.core.now_exact();
        sum.clear();
        sum.merge(&self.recorder.record.borrow().unanswered);
        let from = self.recorder.measured_from();
        let waits = self.supply.waits();
        waits
            .filter(|waiting| waiting.start >= from)
            .for_each(|waiting| waiting.add_to(sum, now));
        // After the end, requests that were due and not sent are included as missed.
        if !self.is_over() && self.started.is_set() {
            self.supply.add_due(&mut sum.response, now);
        }
    }

    pub(crate) fn thread(&self) -> Option<Thread> {
        Some(Thread {
            number: thread_number()?,
            before: self.time_before.get(),
        })
    }

    pub(crate) fn began(&self) -> Instant {
        self.begin.get()
    }

    pub(crate) fn elapsed(&self) -> Duration {
        match self.end.get() {
            Some(end) => end.elapsed,
            None if self.started.is_set() => self.core.now_exact().since(self.begin.get()),
            // The run has not started.
            None => Duration::ZERO,
        }
    }

    fn in_flight(&self) -> u64 {
        in_flight(&self.recorder.record.borrow(), self.supply.in_flight())
    }

    pub(crate) fn is_over(&self) -> bool {
        self.end.get().is_some()
    }

    /// Waits for the start and returns the work of connection `index` of the core, number `number` of the run.
    pub(crate) async fn work_of(&self, index: u32, number: u64) -> Work {
        self.started.wait().await;
        let options = &self.plan.options;
        let connections = options.connections as u64;
        let begin = self.begin.get();
        self.core
            .sleep_until(begin + options.start.start_of(number, connections))
            .await;
        Work::new(index, begin)
    }

    pub(crate) fn queue(&self, stream: &Transport, work: &mut Work, last: LastRequest) {
        let due = (work.number, work.due);
        work.queued(self.codec.queue(stream, work.index, due, last));
    }

    /// Whether requests may be longer than a server reads before it responds.
    pub(crate) fn may_exceed_buffers(&self) -> bool {
        self.may_exceed_buffers
    }

    /// Sets the deadline for the peer's next bytes to one timeout after `now`.
    pub(crate) fn extend_deadline(&self, stream: &Transport, now: Instant) {
        stream.set_deadline(Some(now + self.timeout));
    }

    /// Counts received bytes and extends the deadline, which also applies to the next requests. Returns the time of the
    /// receive.
    pub(crate) fn received(&self, stream: &Transport, bytes: usize) -> Instant {
        let now = self.core.now_exact();
        self.extend_deadline(stream, now);
        if !self.is_over() {
            self.recorder.record.borrow_mut().tally.bytes += bytes as u64;
        }
        now
    }

    pub(crate) fn received_datagram(&self, bytes: usize) {
        if !self.is_over() {
            self.recorder.record.borrow_mut().tally.bytes += bytes as u64;
        }
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Records the responses to the first requests of `work`, which were written at `written`.
    pub(crate) fn responded(
        &self,
        work: &mut Work,
        received: Received,
        written: Instant,
        now: Instant,
    ) {
        let Received {
            response, count, ..
        } = received;
        let protocol = &self.plan.protocol;
        let kind = protocol.kind_of(work.number);
        work.number += count;
        let took = self.times(work, &received, written, now);
        let measured = self.recorder.measured(work.start, &received);
        self.supply.completed(work, count);
        let mut record = self.recorder.record.borrow_mut();
        if self.is_over() {
            record.responded_late((response.outcome, count), &took, measured);
            return;
        }
        self.recorder.note_responses(work.index, count, now);
        record.responded((response.outcome, count), &took, measured);
        record.responded_kind((kind, count), took.response, measured);
        if !protocol.kind(kind).lists_outcomes {
            record.count_unaccepted((response.outcome, count));
        }
        if response.expectation != ExpectationResult::Yes {
            record.unexpected(kind, response.expectation, || {
                let what = protocol.outcomes().phrase(response.outcome);
                format!("{what} for {}", protocol.kind(kind).name)
            });
        }
    }

    /// Returns the times of a response to a request of `work`, which was written at `written` and received at `now`.
    #[inline]
    fn times(
        &self,
        work: &mut Work,
        received: &Received,
        written: Instant,
        now: Instant,
    ) -> ResponseTimes {
        let (written_first, own) = work.sent_at(&self.core, written, now);
        ResponseTimes {
            send_lag: written_first.nanoseconds_since(work.start),
            first_byte: received.first_byte.nanoseconds_since(written_first),
            service: now.nanoseconds_since(written_first),
            response: now.nanoseconds_since(work.start),
            own,
        }
    }

    /// Records that a connection has no work left, or no time for it.
    pub(crate) fn finished(&self, work: &mut Work) {
        self.supply.give_up(work);
        self.active.set(self.active.get() - 1);
        if self.active.get() == 0 {
            self.core.stop(Duration::ZERO);
        }
    }
}

/// Returns the number of requests sent; with journeys, each of the `begun` ones may have sent several.
fn sent(record: &Record, begun: u64) -> u64 {
    let journeys = record.journeys.as_ref();
    journeys.map_or(begun, |journeys| journeys.requests_sent)
}

/// Returns the number of requests without a response; with journeys, a user may be between two requests.
fn in_flight(record: &Record, turns: u64) -> u64 {
    let journeys = record.journeys.as_ref();
    journeys.map_or(turns, |journeys| journeys.in_flight)
}
