//! One core's part of a run: what its connections share. It parts into what dials ([`Dialer`]), what gives requests
//! ([`Supply`]), what speaks ([`Codec`]) and what records ([`Recorder`]); here is what is of several of them.

mod dialer;
mod lanes;
mod loss;
mod one_way;
pub(crate) mod recorder;
pub(crate) mod stepping;
mod supply;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use onrush_engine::{Address, Core, Instant};
use onrush_tls::Transport;

use crate::connection::work::Work;
use crate::limits::BATCH_BYTES_MAX;
use crate::pace::gate::Signal;
use crate::pace::stop::Progress;
use crate::plan::Plan;
use crate::protocol::Codec;
use crate::record::Record;
use crate::record::host::{ThreadTime, thread_number};
use crate::record::rows::Reading;
use crate::record::standing::{Standing, Thread};
use crate::record::times::ResponseTimes;
use crate::record::unanswered::Unanswered;
use crate::requests::request::Last;
use crate::requests::response::Met;
use dialer::Dialer;
use recorder::{Received, Recorder};
use supply::Supply;

/// One core's part of a run.
pub(crate) struct CoreRun {
    pub(crate) core: Core,
    plan: Arc<Plan>,
    /// How long nothing may arrive while a response is due.
    timeout: Duration,
    sends_much: bool,
    pub(crate) dialer: Dialer,
    pub(crate) supply: Supply,
    pub(crate) codec: Codec,
    pub(crate) recorder: Recorder,
    /// Connections, or lanes of sockets, that have work to do. At 0 the core stops.
    active: Cell<usize>,
    started: Signal,
    /// When the run began on this core.
    begin: Cell<Instant>,
    /// The thread's time at the beginning.
    time_before: Cell<ThreadTime>,
    end: Cell<Option<End>>,
}

/// What a core had come to when its part of the run was over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub(crate) elapsed: Duration,
    /// What it cost the thread.
    pub(crate) time: ThreadTime,
    /// How long it had something to do, where it busy-polled and was on a CPU all the time.
    pub(crate) worked: Option<Duration>,
    /// The longest time between two looks at the kernel.
    pub(crate) busy_max: Duration,
    /// The time of this in which it saw nothing, in pieces that are longer than a turn may be.
    pub(crate) stalled: Duration,
    /// Requests whose response had not come.
    pub(crate) unfinished: u64,
}

impl CoreRun {
    /// Core `core.id()`'s part of `plan`. It waits for [`start`](Self::start).
    pub(crate) fn new(core: &Core, plan: &Arc<Plan>, address: Address) -> Rc<CoreRun> {
        let options = &plan.options;
        let connections = plan.connections_of(core.id()).count();
        // Who waits for answers: over datagrams several of a socket.
        let lanes = connections * plan.lanes();
        let run = Rc::new(CoreRun {
            core: core.clone(),
            plan: Arc::clone(plan),
            timeout: options.timeout,
            sends_much: plan.protocol.may_exceed(BATCH_BYTES_MAX),
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

    /// In an open loop, a task of the core releases what is due.
    pub(crate) fn spawn_release(self: &Rc<CoreRun>) {
        if self.supply.is_released() {
            let run = Rc::clone(self);
            self.core.spawn(async move {
                run.started.given().await;
                run.supply.release().await;
            });
        }
    }

    /// The run begins at `begin`.
    pub(crate) fn start(&self, begin: Instant) {
        self.begin.set(begin);
        self.recorder.measure_from(begin + self.plan.unmeasured());
        let budget = self.plan.budget_of(self.core.id(), begin);
        self.supply.begin(begin, budget);
        self.time_before.set(ThreadTime::now());
        self.core.take_busy_max();
        self.core.take_stalled();
        self.core.take_worked();
        self.started.give();
    }

    /// Responses are measured from now on.
    pub(crate) fn begin_measuring(&self) {
        self.recorder.begin_measuring(self.elapsed());
    }

    /// The run is over: from now on nothing starts, and nothing is counted but responses that are late.
    pub(crate) fn finish(&self) -> End {
        if let Some(end) = self.end.get() {
            return end;
        }
        let now = self.core.now_exact();
        if now < self.recorder.measured_from() {
            // Nothing was measured: no rate is of what came until now.
            self.begin_measuring();
        }
        let over = self.supply.end().map_or(now, |end| end.min(now));
        // Before the rest, which is no part of the run.
        let elapsed = self.elapsed();
        let missed = self.supply.close(over);
        if missed.count() > 0 {
            let mut record = self.recorder.record.borrow_mut();
            record.unanswered.response.merge(&missed);
        }
        let end = End {
            elapsed,
            time: ThreadTime::now().since(self.time_before.get()),
            worked: self.plan.options.busy_poll.then(|| self.core.take_worked()),
            busy_max: self.core.take_busy_max(),
            stalled: self.core.take_stalled(),
            unfinished: self.in_flight(),
        };
        self.end.set(Some(end));
        end
    }

    /// Nobody waits for responses any more: hands out what was recorded. What is known of those that have not come is how long
    /// they have not.
    pub(crate) fn take_record(&self) -> Record {
        let empty = Record::new(self.plan.protocol.outcomes());
        let mut record = self.recorder.record.replace(empty);
        let now = self.core.now_exact();
        for waiting in self.supply.take_waits() {
            self.add_wait(&mut record, waiting, now);
        }
        record.settle();
        record.begun = self.supply.sent();
        record.sent = sent(&record, record.begun);
        let samples = self.recorder.samples();
        samples.for_each(|info| record.add_tcp(info));
        record
    }

    /// How long the run had taken when the last response came; none without one.
    pub(crate) fn answered_until(&self) -> Option<Duration> {
        self.recorder.answered_until(self.begin.get())
    }

    /// What the core has come to so far, or had at its end.
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

    fn standing(&self) -> Standing {
        let record = self.recorder.record.borrow();
        let (supply, end) = (&self.supply, self.end.get());
        let in_flight = in_flight(&record, supply.in_flight());
        Standing {
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

    /// Sets `sum` to what requests without a response have waited so far, those for whose response nobody waits any more among
    /// them.
    pub(crate) fn unanswered(&self, sum: &mut Unanswered) {
        let now = self.core.now_exact();
        sum.clear();
        sum.merge(&self.recorder.record.borrow().unanswered);
        let from = self.recorder.measured_from();
        let waits = self.supply.waits();
        waits
            .filter(|waiting| waiting.start >= from)
            .for_each(|waiting| waiting.add_to(sum, now));
        // At the end those that were due and not sent were missed, and are among the others.
        if !self.is_over() && self.started.is_given() {
            self.supply.add_due(&mut sum.response, now);
        }
    }

    /// The thread, and the time it had used when the run began on it.
    pub(crate) fn thread(&self) -> Option<Thread> {
        Some(Thread {
            number: thread_number()?,
            before: self.time_before.get(),
        })
    }

    /// When the run began on this core.
    pub(crate) fn began(&self) -> Instant {
        self.begin.get()
    }

    /// How long the run has taken on this core.
    pub(crate) fn elapsed(&self) -> Duration {
        match self.end.get() {
            Some(end) => end.elapsed,
            None if self.started.is_given() => self.core.now_exact().since(self.begin.get()),
            // It waits for its beginning.
            None => Duration::ZERO,
        }
    }

    /// Requests without a response yet.
    fn in_flight(&self) -> u64 {
        in_flight(&self.recorder.record.borrow(), self.supply.in_flight())
    }

    pub(crate) fn is_over(&self) -> bool {
        self.end.get().is_some()
    }

    /// What connection `index` of the core, number `number` of the run, has to do, once the run has begun.
    pub(crate) async fn work_of(&self, index: u32, number: u64) -> Work {
        self.started.given().await;
        let options = &self.plan.options;
        let connections = options.connections as u64;
        let begin = self.begin.get();
        self.core
            .sleep_until(begin + options.start.admits(number, connections))
            .await;
        Work::new(index, begin)
    }

    /// Queues the requests that are due.
    pub(crate) fn queue(&self, stream: &Transport, work: &mut Work, last: Last) {
        let due = (work.number, work.due);
        work.queued(self.codec.queue(stream, work.index, due, last));
    }

    /// Whether a request may have more bytes than its server takes before it responds.
    pub(crate) fn sends_much(&self) -> bool {
        self.sends_much
    }

    /// The peer has one timeout from `now` on for its next bytes.
    pub(crate) fn extend_deadline(&self, stream: &Transport, now: Instant) {
        stream.set_deadline(Some(now + self.timeout));
    }

    /// So many bytes have come. Moves the deadline on, also the one of the requests that are sent next, and returns the
    /// time of the receive.
    pub(crate) fn received(&self, stream: &Transport, bytes: usize) -> Instant {
        let now = self.core.now_exact();
        self.extend_deadline(stream, now);
        if !self.is_over() {
            self.recorder.record.borrow_mut().tally.bytes += bytes as u64;
        }
        now
    }

    /// A datagram of so many bytes has come.
    pub(crate) fn received_datagram(&self, bytes: usize) {
        if !self.is_over() {
            self.recorder.record.borrow_mut().tally.bytes += bytes as u64;
        }
    }

    /// How long an answer may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The first requests of `work`, written at `written`, have their responses.
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
        self.supply.landed(work, count);
        let mut record = self.recorder.record.borrow_mut();
        if self.is_over() {
            record.responded_late((response.outcome, count), &took, measured);
            return;
        }
        self.recorder.note_responses(work.index, count, now);
        record.responded((response.outcome, count), &took, measured);
        record.responded_kind((kind, count), took.response, measured);
        if !protocol.kind(kind).lists_outcomes {
            record.unlisted((response.outcome, count));
        }
        if response.met != Met::Yes {
            record.unexpected(kind, response.met, || {
                let what = protocol.outcomes().phrase(response.outcome);
                format!("{what} for {}", protocol.kind(kind).name)
            });
        }
    }

    /// What the response to a request of `work` took, which was written at `written` and received at `now`.
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

    /// One connection has nothing left to do, or no time for it.
    pub(crate) fn finished(&self, work: &mut Work) {
        self.supply.leave(work);
        self.active.set(self.active.get() - 1);
        if self.active.get() == 0 {
            self.core.stop(Duration::ZERO);
        }
    }
}

/// How many requests were sent, of so many that the pace asked for: a journey is several.
fn sent(record: &Record, begun: u64) -> u64 {
    let journeys = record.journeys.as_ref();
    journeys.map_or(begun, |journeys| journeys.requests_sent)
}

/// How many requests have no response yet, of so many turns that have not ended: a user on its journey may wait for none.
fn in_flight(record: &Record, turns: u64) -> u64 {
    let journeys = record.journeys.as_ref();
    journeys.map_or(turns, |journeys| journeys.in_flight)
}
