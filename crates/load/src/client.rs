//! What the connections of one core share: the requests to send, what may still be sent, and what has come of it.

mod outstanding;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use onrush_engine::random::Random;
use onrush_engine::{Address, Core, Errno, Instant, Kind, Op, Stream, TcpInfo};
use onrush_measure::second::Tally;
use onrush_tls::{Connector, Transport};

use crate::connection;
use crate::connection::Received;
use crate::dispatch::Dispatch;
use crate::failure::{Failure, Lost, NotConnected};
use crate::gate::Signal;
use crate::host::{ThreadTime, thread_number};
use crate::limits::{BATCH_BYTES_MAX, CONNECT_AHEAD, CONNECT_TIMEOUT, TCP_SAMPLES};
use crate::pace::arrivals::{Arrivals, Share};
use crate::pace::{self, Pace, Schedule};
use crate::plan::{Connecting, Plan};
use crate::protocol::Codec;
use crate::protocol::request::{Last, RequestKind};
use crate::protocol::response::Met;
use crate::reach::Way;
use crate::record::{Measured, Record, TcpTotal};
use crate::standing::{Standing, Thread};
use crate::stop::Budget;
use crate::times::{Answered, Times};
use crate::wall_clock::WallTime;
use crate::work::Work;

/// One core's side of the run.
pub(crate) struct Client {
    pub(crate) core: Core,
    plan: Arc<Plan>,
    way: Way,
    timeout: Duration,
    connect_timeout: Duration,
    /// Requests taken at a time.
    turn: u64,
    per_connection: u64,
    pub(crate) codec: Codec,
    source: Source,
    /// Which of the run's turns are the core's, and how many of them it has taken, where no arrival says so.
    share: Share,
    turns: Cell<u64>,
    pub(crate) record: RefCell<Record>,
    /// Connections that have work to do. At 0 the core stops.
    active: Cell<usize>,
    /// Connections that are being made before the beginning, and that all of them have been.
    opening: Cell<usize>,
    opened: Signal,
    started: Signal,
    /// When the run began on this core, and from when on answers are measured.
    begin: Cell<Instant>,
    measured_from: Cell<Instant>,
    /// When the last answer came.
    last_answer: Cell<Instant>,
    /// What had been counted when answers began to be measured, and how long the run had taken then.
    before: Cell<(Tally, Duration)>,
    budget: Cell<Budget>,
    /// Requests taken that have neither been answered nor failed.
    in_flight: Cell<u64>,
    /// The same of each connection: what it would leave behind.
    waiting: Box<[Cell<Waiting>]>,
    /// Of connections that keep their own time, when the next request of each is due.
    schedules: Box<[Cell<Schedule>]>,
    /// Requests of these that were due and never sent.
    missed: Cell<u64>,
    /// Seconds of the run, for what is looked at once in each.
    second: Cell<u32>,
    /// Answers of each connection.
    answers: Box<[Cell<u64>]>,
    /// What TCP said last about the first few connections.
    samples: Box<[Cell<Option<TcpInfo>>]>,
    /// The thread's time at the beginning.
    time_before: Cell<ThreadTime>,
    end: Cell<Option<End>>,
}

/// Where intended starts come from.
enum Source {
    /// The moment itself.
    Closed,
    /// The moment, after a pause of about so long.
    Think(Duration, Random),
    /// The core's arrivals.
    Open(Box<Dispatch>),
    /// Each connection's own schedule.
    Own,
}

/// Requests of one connection that have no answer.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    start: Instant,
    ready: Instant,
    count: u64,
}

/// What a core had come to when its part of the run was over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub(crate) elapsed: Duration,
    /// What it cost the thread.
    pub(crate) time: ThreadTime,
    /// How long it had something to do, where it polled busily and was on a CPU all the time.
    pub(crate) worked: Option<Duration>,
    /// The longest time between two looks at the kernel.
    pub(crate) busy_max: Duration,
    /// The time of this in which it saw nothing, in pieces that are longer than a turn may be.
    pub(crate) stalled: Duration,
    /// Requests whose answer had not come.
    pub(crate) unfinished: u64,
}

impl Client {
    /// Core `core.id()`'s part of `plan`: its connections are tasks of the core when this returns, and wait for
    /// [`Client::start`].
    pub(crate) fn new(core: &Core, plan: &Arc<Plan>, address: Address) -> Rc<Client> {
        let options = &plan.options;
        let per_connection = options.requests_per_connection.unwrap_or(u64::MAX);
        let turn = options.pipeline.min(per_connection);
        let connections = plan.connections_of(core.id()).count();
        let is_before = options.connecting == Connecting::Before;
        let mut client = Client {
            core: core.clone(),
            plan: Arc::clone(plan),
            way: Way::new(plan, core.id(), address),
            timeout: options.timeout,
            connect_timeout: options.timeout.min(CONNECT_TIMEOUT),
            turn,
            per_connection,
            codec: plan.protocol.codec(connections, options.pipeline),
            share: plan.share_of(core.id()),
            turns: Cell::new(0),
            source: Source::new(plan, core.id(), connections, turn),
            record: RefCell::new(Record::of(plan.protocol.outcomes(), plan.protocol.kinds())),
            active: Cell::new(connections),
            opening: Cell::new(if is_before { connections } else { 0 }),
            opened: Signal::default(),
            started: Signal::default(),
            begin: Cell::new(core.now_exact()),
            measured_from: Cell::default(),
            last_answer: Cell::default(),
            before: Cell::default(),
            budget: Cell::new(plan.budget_of(core.id(), core.now_exact())),
            in_flight: Cell::new(0),
            waiting: vec![Cell::default(); connections].into(),
            schedules: Box::default(),
            missed: Cell::new(0),
            second: Cell::new(0),
            answers: vec![Cell::new(0); connections].into(),
            samples: vec![Cell::new(None); connections.min(TCP_SAMPLES)].into(),
            time_before: Cell::default(),
            end: Cell::new(None),
        };
        client.schedules = client.schedules();
        let client = Rc::new(client);
        core.note_writes();
        if options.busy_poll {
            core.poll_busily();
        }
        for (index, number) in (0..).zip(plan.connections_of(core.id())) {
            core.spawn(connection::run(Rc::clone(&client), index, number));
        }
        if let Source::Open(_) = client.source {
            let releasing = Rc::clone(&client);
            core.spawn(async move {
                if let Source::Open(dispatch) = &releasing.source {
                    releasing.started.given().await;
                    dispatch.run(&releasing.core).await;
                }
            });
        }
        client
    }

    /// Waits until all connections are made, or have failed to be, that are to be made before the beginning.
    pub(crate) async fn opened(&self) {
        if self.opening.get() > 0 {
            self.opened.given().await;
        }
    }

    /// The run begins at `begin`.
    pub(crate) fn start(&self, begin: Instant) {
        self.begin.set(begin);
        self.measured_from.set(begin + self.plan.unmeasured());
        let budget = self.plan.budget_of(self.core.id(), begin);
        self.budget.set(budget);
        if let Source::Open(dispatch) = &self.source {
            dispatch.begin(begin, budget);
        }
        self.time_before.set(ThreadTime::now());
        for schedule in &self.schedules {
            schedule.set(schedule.get().from(begin));
        }
        self.core.take_busy_max();
        self.core.take_stalled();
        self.core.take_worked();
        self.started.give();
    }

    /// Answers are measured from now on.
    pub(crate) fn begin_measuring(&self) {
        let tally = self.record.borrow().tally;
        self.before.set((tally, self.elapsed()));
    }

    /// When the answers that are measured may begin to come.
    pub(crate) fn measured_from(&self) -> Instant {
        self.measured_from.get()
    }

    /// What had been counted when answers began to be measured, and how long the run had taken then.
    pub(crate) fn before(&self) -> (Tally, Duration) {
        self.before.get()
    }

    /// How long the run had taken when the last answer came; none without one.
    pub(crate) fn answered_until(&self) -> Option<Duration> {
        let last = self.last_answer.get();
        (last != Instant::default()).then(|| last.since(self.begin.get()))
    }

    /// A second has passed.
    pub(crate) fn next_second(&self) {
        self.second.set(self.second.get() + 1);
    }

    /// Hands out what was measured since this was last called, for `empty` in return.
    pub(crate) fn take_times(&self, empty: Box<Times>) -> Box<Times> {
        std::mem::replace(&mut self.record.borrow_mut().times, empty)
    }

    /// The run is over: from now on nothing starts, and nothing is counted but answers that are late.
    pub(crate) fn finish(&self) -> End {
        if let Some(end) = self.end.get() {
            return end;
        }
        let now = self.core.now_exact();
        if now < self.measured_from.get() {
            // Nothing was measured: no rate is of what came until now.
            self.begin_measuring();
        }
        let over = self.budget.get().end().map_or(now, |end| end.min(now));
        // Before the rest, which is no part of the run.
        let elapsed = self.elapsed();
        self.miss_all(over);
        let end = End {
            elapsed,
            time: ThreadTime::now().since(self.time_before.get()),
            worked: self.plan.options.busy_poll.then(|| self.core.take_worked()),
            busy_max: self.core.take_busy_max(),
            stalled: self.core.take_stalled(),
            unfinished: self.in_flight.get(),
        };
        self.end.set(Some(end));
        end
    }

    /// Requests that were due and never sent.
    pub(crate) fn missed(&self) -> u64 {
        match &self.source {
            Source::Open(dispatch) => dispatch.missed(),
            Source::Closed | Source::Think(..) | Source::Own => self.missed.get(),
        }
    }

    /// The answers of each connection.
    pub(crate) fn answers_by_connection(&self) -> Vec<u64> {
        self.answers.iter().map(Cell::get).collect()
    }

    /// What the core has come to so far, or had at its end.
    pub(crate) fn standing(&self) -> Standing {
        let record = self.record.borrow();
        let mut tcp = record.tcp;
        for info in self.samples() {
            *tcp.get_or_insert_default() += TcpTotal::of(info);
        }
        let (in_flight, end) = (self.in_flight.get(), self.end.get());
        Standing {
            sent: record.sent,
            in_flight: end.map_or(in_flight, |end| end.unfinished),
            missed: self.missed(),
            resent: record.resent,
            connections_max: record.connections_max,
            failures: record.failures(),
            tcp,
            busy_max: end.map_or(self.core.busy_max(), |end| end.busy_max),
            stalled: end.map_or(self.core.stalled(), |end| end.stalled),
            worked: end.and_then(|end| end.worked).unwrap_or(self.core.worked()),
        }
    }

    /// The thread, and the time it had used when the run began on it.
    pub(crate) fn thread(&self) -> Option<Thread> {
        Some(Thread {
            number: thread_number()?,
            before: self.time_before.get(),
        })
    }

    /// What TCP said last about the connections that are still open.
    pub(crate) fn samples(&self) -> impl Iterator<Item = TcpInfo> + '_ {
        self.samples.iter().filter_map(Cell::get)
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

    /// When the connections' first requests are due, where each keeps its own time.
    fn schedules(&self) -> Box<[Cell<Schedule>]> {
        let options = &self.plan.options;
        let Pace::EachConnection(rate) = options.pace else {
            return Box::default();
        };
        let numbers = self.plan.connections_of(self.core.id());
        let all = options.connections as u64;
        let begin = self.begin.get();
        numbers
            .map(|number| Cell::new(Schedule::new(number, all, rate, self.turn, begin)))
            .collect()
    }

    /// Makes a connection before the run, where that is wanted; `None` where it is not or cannot be made.
    pub(crate) async fn connect_before(&self) -> Option<Transport> {
        if self.plan.options.connecting == Connecting::AtStart {
            return None;
        }
        if let Some(at) = self.plan.options.start_at {
            let left = at.since(WallTime::now());
            self.core.sleep(left.saturating_sub(CONNECT_AHEAD)).await;
        }
        let made = self.connect().await;
        self.opening.set(self.opening.get() - 1);
        if self.opening.get() == 0 {
            self.opened.give();
        }
        match made {
            Ok(stream) => Some(stream),
            Err(error) => {
                self.record.borrow_mut().connect_failed(&error);
                None
            }
        }
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

    /// When the run ends by the clock.
    pub(crate) fn end(&self) -> Option<Instant> {
        self.budget.get().end()
    }

    /// Whether requests are due on a connection with `answered` ones, after more were taken if none were. Waits for the
    /// moment they are to start, and moves `now` on to it.
    pub(crate) async fn take(&self, work: &mut Work, now: &mut Instant, answered: u64) -> bool {
        if self.end.get().is_some() {
            return false;
        }
        if work.due > 0 {
            // Sent in vain before: they keep their first start.
            return true;
        }
        if work.rest > 0 {
            self.take_rest(work, answered);
            return true;
        }
        let wanted = match &self.source {
            Source::Closed => {
                work.start = *now;
                self.turn.min(self.per_connection - answered)
            }
            Source::Think(time, random) => {
                work.start = *now;
                if !work.is_first {
                    work.start = *now + pace::think(*time, random);
                }
                self.wait_until(work.start, now).await;
                self.turn.min(self.per_connection - answered)
            }
            Source::Open(dispatch) => {
                let Some(turn) = dispatch.take(&self.core, work.index).await else {
                    return false;
                };
                *now = self.core.now_exact();
                if self.budget.get().is_over(*now) {
                    dispatch.miss(turn, *now);
                    return false;
                }
                work.start = turn.start;
                work.number = turn.number * self.turn;
                // Until now it was late for want of a connection, or for want of the generator.
                work.own = match turn.was_awaited {
                    true => now.nanoseconds_since(turn.start),
                    false => 0,
                };
                work.ready = *now;
                turn.count
            }
            Source::Own => {
                let schedule = &self.schedules[work.index as usize];
                let before = *now;
                work.start = schedule.get().peek();
                self.wait_until(work.start, now).await;
                if self.end.get().is_some() || self.budget.get().is_over(*now) {
                    return false;
                }
                let mut next = schedule.get();
                next.next();
                schedule.set(next);
                work.own = now.nanoseconds_since(work.start.max(before));
                work.ready = *now;
                self.turn
            }
        };
        if !matches!(self.source, Source::Open(_)) {
            let taken = self.turns.get();
            self.turns.set(taken + 1);
            work.number = (self.share.first + taken * self.share.stride) * self.turn;
        }
        if matches!(self.source, Source::Closed | Source::Think(..)) {
            (work.own, work.ready) = (now.nanoseconds_since(work.start), *now);
        }
        (work.is_first, work.is_sent) = (false, false);
        work.written = Instant::default();
        self.grant(work, *now, wanted, answered)
    }

    /// What is left of a turn of which a connection has carried as much as it may.
    fn take_rest(&self, work: &mut Work, answered: u64) {
        work.due = work.rest.min(self.per_connection - answered);
        work.rest -= work.due;
        work.written = Instant::default();
        work.is_sent = false;
    }

    /// A connection is there for `work` since `now`. In a closed loop a request starts when there is a connection for it.
    pub(crate) fn starts(&self, work: &mut Work, now: Instant) {
        work.connected();
        work.ready = work.ready.max(now);
        match self.source {
            Source::Closed | Source::Think(..) if !work.is_sent => work.start = now,
            Source::Closed | Source::Think(..) | Source::Open(_) | Source::Own => {}
        }
        self.note_waiting(work);
    }

    async fn wait_until(&self, start: Instant, now: &mut Instant) {
        if start > *now {
            self.core.sleep_until(start).await;
            *now = self.core.now_exact();
        }
    }

    fn grant(&self, work: &mut Work, now: Instant, wanted: u64, answered: u64) -> bool {
        if self.end.get().is_some() {
            return false;
        }
        let mut budget = self.budget.get();
        let granted = budget.take(now, wanted);
        self.budget.set(budget);
        self.in_flight.set(self.in_flight.get() + granted);
        self.record.borrow_mut().sent += granted;
        work.due = granted.min(self.per_connection - answered);
        work.rest = granted - work.due;
        self.note_waiting(work);
        granted > 0
    }

    fn note_waiting(&self, work: &Work) {
        self.waiting[work.index as usize].set(Waiting {
            start: work.start,
            ready: work.ready,
            count: work.due + work.rest,
        });
    }

    /// So many of its requests have been answered or have failed.
    fn landed(&self, work: &mut Work, requests: u64) {
        work.due -= requests;
        self.note_waiting(work);
        let in_flight = self.in_flight.get() - requests;
        self.in_flight.set(in_flight);
        // Connections that wait for their next turn need not find out one by one.
        if in_flight == 0 && (self.budget.get().is_spent() || self.end.get().is_some()) {
            self.core.stop(Duration::ZERO);
        }
    }

    /// Nobody waits for these any more; what they leave behind stays noted.
    fn leave(&self, work: &mut Work) {
        let left = std::mem::take(&mut work.due) + std::mem::take(&mut work.rest);
        self.in_flight.set(self.in_flight.get() - left);
        if self.in_flight.get() == 0 && self.end.get().is_some() {
            self.core.stop(Duration::ZERO);
        }
    }

    pub(crate) async fn connect(&self) -> Result<Transport, NotConnected> {
        self.record.borrow_mut().tally.connections += 1;
        let begin = self.core.now_exact();
        let deadline = begin + self.connect_timeout;
        let stream = self.way.connect(&self.core, deadline).await?;
        let time = self.core.now_exact().nanoseconds_since(begin);
        let transport = match &self.plan.connector {
            None => Transport::plain(stream),
            // Boxed: connections without TLS need not have room for it.
            Some(connector) => Box::pin(self.shake_hands(stream, connector, deadline)).await?,
        };
        self.record.borrow_mut().connected(time);
        Ok(transport)
    }

    async fn shake_hands(
        &self,
        stream: Stream,
        connector: &Connector,
        deadline: Instant,
    ) -> Result<Transport, NotConnected> {
        let begin = self.core.now_exact();
        let name = self.plan.options.target.name();
        let transport = Transport::connect(stream, connector, name, deadline).await?;
        let time = self.core.now_exact().nanoseconds_since(begin);
        if let Some(info) = transport.info() {
            self.record.borrow_mut().shaken(&info, time);
        }
        Ok(transport)
    }

    pub(crate) fn is_last(&self, requests_of_connection: u64) -> Last {
        if requests_of_connection >= self.per_connection {
            Last::Yes
        } else {
            Last::No
        }
    }

    /// Queues the requests that are due.
    pub(crate) fn queue(&self, stream: &Transport, work: &mut Work, last: Last) {
        let due = (work.number, work.due);
        work.queued(self.codec.queue(stream, work.index, due, last));
    }

    /// Whether a request may have more bytes than its server takes before it answers.
    pub(crate) fn sends_much(&self) -> bool {
        self.plan.protocol.may_exceed(BATCH_BYTES_MAX)
    }

    /// The kind of request `number` of the run.
    fn kind_of(&self, number: u64) -> &RequestKind {
        let protocol = &self.plan.protocol;
        protocol.kind(protocol.kind_of(number))
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
        if self.end.get().is_none() {
            self.record.borrow_mut().tally.bytes += bytes as u64;
        }
        now
    }

    /// One of the requests of `work`, written at `written`, is answered.
    pub(crate) fn answered(
        &self,
        work: &mut Work,
        received: Received,
        written: Instant,
        now: Instant,
    ) {
        let (start, number) = (work.start, work.number);
        let Received { response, .. } = received;
        let protocol = &self.plan.protocol;
        let kind = protocol.kind_of(number);
        work.number += 1;
        let (written_first, own) = work.sent_at(&self.core, written, now);
        let answered = Answered {
            send_lag: written_first.nanoseconds_since(start),
            first_byte: received.first_byte.nanoseconds_since(written_first),
            service: now.nanoseconds_since(written_first),
            response: now.nanoseconds_since(start),
            own,
        };
        let is_skipped = received.is_first && self.plan.options.skip_first;
        let measured = if start >= self.measured_from.get() && !is_skipped {
            Measured::Yes
        } else {
            Measured::No
        };
        self.landed(work, 1);
        let mut record = self.record.borrow_mut();
        if self.end.get().is_some() {
            record.answered_late(&answered, measured);
            return;
        }
        self.last_answer.set(now);
        let answers = &self.answers[work.index as usize];
        answers.set(answers.get() + 1);
        record.answered(response.outcome, &answered, measured);
        record.answered_kind(kind, answered.response, measured);
        if response.met != Met::Yes {
            record.unexpected(kind, response.met, || {
                let what = protocol.outcomes().phrase(response.outcome);
                format!("{what} for {}", protocol.kind(kind).name)
            });
        }
    }

    /// Looks at what TCP counts on the connection, once a second, if it is one of the first few.
    #[inline]
    pub(crate) fn sample_once(&self, stream: &Transport, work: &mut Work) {
        let second = self.second.get();
        if work.second != second {
            work.second = second;
            self.sample(stream, work);
        }
    }

    fn sample(&self, stream: &Transport, work: &Work) {
        if let Some(sample) = self.samples.get(work.index as usize) {
            sample.set(stream.tcp_info());
        }
    }

    /// Counts how a connection ended, and what became of the requests still due.
    pub(crate) fn closed(&self, stream: &Transport, work: &mut Work, end: Result<(), Lost>) {
        if self.end.get().is_some() {
            // What ends behind the end was open for the whole run, is shown so, and whatever it did not do is unfinished.
            return self.leave(work);
        }
        self.sample(stream, work);
        let mut record = self.record.borrow_mut();
        if let Some(info) = self.samples.get(work.index as usize).and_then(Cell::take) {
            record.add_tcp(info);
        }
        record.tally.connections_open -= 1;
        let failure = match end {
            Ok(()) if work.due == 0 => return,
            // Nothing had been written that could be lost.
            Err(Lost::Unwritten) => return,
            // The same, and the answer before had more bytes than it should have.
            Err(Lost::Unasked) => return record.unasked(),
            _ if self.may_repeat(stream, work, &end) => {
                record.resent += work.due;
                return;
            }
            Ok(()) | Err(Lost::Ended) => Failure::ClosedUnanswered,
            Err(Lost::Failed(error)) => Failure::of_unanswered(error),
            Err(Lost::Broken(error)) => Failure::of_exchange(error),
            Err(Lost::Cut) => Failure::EarlyClose,
            Err(Lost::Refused(reason)) => {
                record.protocol_error = Some(reason);
                Failure::Protocol
            }
        };
        match work.due {
            0 => record.count(failure, 1),
            due => record.failed(failure, due),
        }
        if failure == Failure::Timeout {
            let now = self.core.now_exact();
            let [response, service] =
                [work.start, work.ready].map(|since| now.nanoseconds_since(since));
            record.unanswered.record(response, service, work.due);
        }
        drop(record);
        self.landed(work, work.due);
    }

    /// Whether what is due may be sent again after `end`: the server cannot have read it, and nothing changes if it is
    /// done twice.
    fn may_repeat(&self, stream: &Transport, work: &Work, end: &Result<(), Lost>) -> bool {
        let is_unread = match end {
            // What was pipelined behind an answer with `Connection: close` has not been looked at (RFC 9112 9.6).
            Ok(()) => true,
            // The kernel did not take it, which with a small batch means all of it.
            Err(Lost::Failed(error)) if error.op == Op::Send && !self.sends_much() => {
                work.is_kept() && error.kind == Kind::Os(Errno::PIPE)
            }
            Err(Lost::Ended) => work.is_kept() && work.is_unread(stream),
            Err(Lost::Failed(error)) => {
                let has_ended = error.kind == Kind::Os(Errno::PIPE);
                work.is_kept() && has_ended && work.is_unread(stream)
            }
            Err(
                Lost::Unwritten | Lost::Unasked | Lost::Broken(_) | Lost::Cut | Lost::Refused(_),
            ) => false,
        };
        let mut numbers = work.number..work.number + work.due;
        is_unread && numbers.all(|number| self.kind_of(number).is_repeatable)
    }

    /// A connection could not be made.
    pub(crate) fn connect_failed(&self, error: &NotConnected) {
        if self.end.get().is_none() {
            self.record.borrow_mut().connect_failed(error);
        }
    }

    /// One connection has nothing left to do, or no time for it.
    pub(crate) fn finished(&self, work: &mut Work) {
        self.leave(work);
        self.active.set(self.active.get() - 1);
        if self.active.get() == 0 {
            self.core.stop(Duration::ZERO);
        }
    }
}

impl Source {
    fn new(plan: &Plan, core: usize, connections: usize, turn: u64) -> Source {
        let options = &plan.options;
        match &options.pace {
            Pace::Closed => Source::Closed,
            Pace::Think(time) => {
                let stream = plan.share_of(core).first;
                Source::Think(*time, Random::stream(options.seed, stream))
            }
            Pace::Open(arrivals) => {
                let arrivals = Arrivals::new(arrivals, plan.share_of(core), turn);
                let dispatch = Dispatch::new(arrivals, turn, connections, options.catch_up);
                Source::Open(Box::new(dispatch))
            }
            Pace::EachConnection(_) => Source::Own,
        }
    }
}
