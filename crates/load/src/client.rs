//! What the connections of one core share: the requests to send, what may still be sent, and what has come of it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use onrush_engine::random::Random;
use onrush_engine::{Address, Core, Errno, Error, Input, Instant, Kind, Stream, TcpInfo};
use onrush_tls::{Connector, HandshakeError, Transport};

use crate::answer::{Answer, Heads, Lost};
use crate::connection;
use crate::dispatch::Dispatch;
use crate::gate::Signal;
use crate::host::{ThreadTime, thread_number};
use crate::limits::{BATCH_BYTES_MAX, CONNECT_AHEAD, CONNECT_TIMEOUT, TCP_SAMPLES};
use crate::pace::arrivals::{Arrivals, Share};
use crate::pace::{self, Pace, Schedule};
use crate::plan::{Connecting, Plan};
use crate::reach::Way;
use crate::record::{Failure, Measured, Record, TcpTotal};
use crate::requests::cookies::Jar;
use crate::requests::expect::Met;
use crate::requests::mix::{Last, Recipe};
use crate::sending::Sending;
use crate::standing::{Standing, Thread};
use crate::stop::Budget;
use crate::times::{Answered, Times};
use crate::wall_clock::WallTime;

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
    sending: Sending,
    source: Source,
    /// Which of the run's turns are the core's, and how many of them it has taken, where no arrival says so.
    share: Share,
    turns: Cell<u64>,
    pub(crate) heads: Heads,
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
    budget: Cell<Budget>,
    /// Requests taken that have neither been answered nor failed.
    in_flight: Cell<u64>,
    /// Seconds of the run, for what is looked at once in each.
    second: Cell<u32>,
    /// Answers of each connection.
    answers: Box<[Cell<u64>]>,
    /// The cookies of the users whom the connections stand for; empty where none are kept.
    jars: Box<[RefCell<Jar>]>,
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
        let client = Rc::new(Client {
            core: core.clone(),
            plan: Arc::clone(plan),
            way: Way::new(plan, core.id(), address),
            timeout: options.timeout,
            connect_timeout: options.timeout.min(CONNECT_TIMEOUT),
            turn,
            per_connection,
            sending: Sending::new(plan),
            share: plan.share_of(core.id()),
            turns: Cell::new(0),
            source: Source::new(plan, core.id(), connections, turn),
            heads: Heads::new(plan.mix.keeps_cookies()),
            record: RefCell::new(Record::of(plan.mix.recipes().len())),
            active: Cell::new(connections),
            opening: Cell::new(if is_before { connections } else { 0 }),
            opened: Signal::default(),
            started: Signal::default(),
            begin: Cell::new(core.now_exact()),
            measured_from: Cell::default(),
            budget: Cell::new(plan.budget_of(core.id(), core.now_exact())),
            in_flight: Cell::new(0),
            second: Cell::new(0),
            answers: vec![Cell::new(0); connections].into(),
            jars: match plan.mix.keeps_cookies() {
                true => vec![RefCell::default(); connections].into(),
                false => Box::default(),
            },
            samples: vec![Cell::new(None); connections.min(TCP_SAMPLES)].into(),
            time_before: Cell::default(),
            end: Cell::new(None),
        });
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
            dispatch.begin(begin, budget.end());
        }
        self.time_before.set(ThreadTime::now());
        self.core.take_busy_max();
        self.core.take_worked();
        self.started.give();
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
        if let Source::Open(dispatch) = &self.source {
            let over = self.budget.get().end().map_or(now, |end| end.min(now));
            if !self.budget.get().is_spent() {
                dispatch.end(over);
            }
            dispatch.close();
        }
        let end = End {
            elapsed: self.elapsed(),
            time: ThreadTime::now().since(self.time_before.get()),
            worked: self.plan.options.busy_poll.then(|| self.core.take_worked()),
            busy_max: self.core.take_busy_max(),
            unfinished: self.in_flight.get(),
        };
        self.end.set(Some(end));
        end
    }

    /// Whether answers are still due.
    pub(crate) fn is_waiting(&self) -> bool {
        self.in_flight.get() > 0
    }

    /// Arrivals that nobody made a request of.
    pub(crate) fn missed(&self) -> u64 {
        match &self.source {
            Source::Open(dispatch) => dispatch.missed(),
            Source::Closed | Source::Think(..) | Source::Own => 0,
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
        let schedule = match options.pace {
            Pace::EachConnection(rate) => {
                Some(Schedule::new(number, connections, rate, self.turn, begin))
            }
            Pace::Closed | Pace::Think(_) | Pace::Open(_) => None,
        };
        Work {
            index,
            schedule,
            due: 0,
            number: 0,
            start: begin,
            second: 0,
            is_first: true,
            is_sent: false,
        }
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
        match &self.source {
            Source::Closed => work.start = *now,
            Source::Think(time, random) => {
                work.start = *now;
                if !work.is_first {
                    work.start = *now + pace::think(*time, random);
                }
                self.wait_until(work.start, now).await;
            }
            Source::Open(dispatch) => {
                let Some(turn) = dispatch.take(&self.core, work.index).await else {
                    return false;
                };
                work.start = turn.start;
                work.number = turn.number * self.turn;
                *now = self.core.now_exact();
            }
            Source::Own => {
                if let Some(schedule) = &mut work.schedule {
                    work.start = schedule.next();
                }
                self.wait_until(work.start, now).await;
            }
        }
        if !matches!(self.source, Source::Open(_)) {
            let taken = self.turns.get();
            self.turns.set(taken + 1);
            work.number = (self.share.first + taken * self.share.stride) * self.turn;
        }
        (work.is_first, work.is_sent) = (false, false);
        self.grant(work, *now, answered)
    }

    /// A connection is there for `work` since `now`. In a closed loop a request starts when there is a connection for it.
    pub(crate) fn starts(&self, work: &mut Work, now: Instant) {
        match self.source {
            Source::Closed | Source::Think(..) if !work.is_sent => work.start = now,
            Source::Closed | Source::Think(..) | Source::Open(_) | Source::Own => {}
        }
    }

    async fn wait_until(&self, start: Instant, now: &mut Instant) {
        if start > *now {
            self.core.sleep_until(start).await;
            *now = self.core.now_exact();
        }
    }

    fn grant(&self, work: &mut Work, now: Instant, answered: u64) -> bool {
        if self.end.get().is_some() {
            return false;
        }
        let mut budget = self.budget.get();
        work.due = budget.take(now, self.turn.min(self.per_connection - answered));
        self.budget.set(budget);
        self.in_flight.set(self.in_flight.get() + work.due);
        self.record.borrow_mut().sent += work.due;
        if let Source::Open(dispatch) = &self.source
            && work.due == 0
            && budget.is_spent()
        {
            dispatch.close();
        }
        work.due > 0
    }

    /// So many requests have been answered or have failed.
    fn landed(&self, requests: u64) {
        let in_flight = self.in_flight.get() - requests;
        self.in_flight.set(in_flight);
        // Connections that wait for their next turn need not find out one by one.
        if in_flight == 0 && self.budget.get().is_spent() {
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
        work.is_sent = true;
        let due = (work.number, work.due);
        let jar = self.jar_of(work).map(RefCell::borrow);
        self.sending
            .queue(&self.plan, stream, due, last, jar.as_deref());
    }

    /// The cookies of the connection, where they are kept.
    pub(crate) fn jar_of(&self, work: &Work) -> Option<&RefCell<Jar>> {
        self.jars.get(work.index as usize)
    }

    /// Whether a request may have more bytes than its server takes before it answers.
    pub(crate) fn sends_much(&self) -> bool {
        self.plan.mix.bytes_max() > BATCH_BYTES_MAX
    }

    /// How the request was made that the next answer of `work` is one to.
    pub(crate) fn recipe_of(&self, work: &Work) -> &Recipe {
        let mix = &self.plan.mix;
        &mix.recipes()[mix.choose(work.number)]
    }

    /// The peer has one timeout from `now` on for its next bytes.
    pub(crate) fn extend_deadline(&self, stream: &Transport, now: Instant) {
        stream.set_deadline(Some(now + self.timeout));
    }

    /// Receives once, and moves `now` and the deadline on: also the one of the requests that are sent next.
    pub(crate) async fn receive_more(
        &self,
        stream: &Transport,
        input: &mut Input,
        now: &mut Instant,
    ) -> Result<usize, Error> {
        let count = stream.recv(input).await?;
        *now = self.core.now_exact();
        self.extend_deadline(stream, *now);
        if self.end.get().is_none() {
            self.record.borrow_mut().tally.bytes += count as u64;
        }
        Ok(count)
    }

    /// One of the requests of `work`, written at `written`, is answered.
    pub(crate) fn answered(&self, work: &mut Work, answer: Answer, written: Instant, now: Instant) {
        work.due -= 1;
        let kind = self.plan.mix.choose(work.number);
        work.number += 1;
        self.landed(1);
        let mut record = self.record.borrow_mut();
        if self.end.get().is_some() {
            record.late += 1;
            return;
        }
        let answers = &self.answers[work.index as usize];
        answers.set(answers.get() + 1);
        let is_skipped = answer.is_first && self.plan.options.skip_first;
        let measured = if work.start >= self.measured_from.get() && !is_skipped {
            Measured::Yes
        } else {
            Measured::No
        };
        let answered = Answered {
            send_lag: written.nanoseconds_since(work.start),
            first_byte: answer.first_byte.nanoseconds_since(written),
            service: now.nanoseconds_since(written),
            response: now.nanoseconds_since(work.start),
        };
        record.answered(answer.status, &answered, measured);
        record.answered_kind(kind, answered.response, measured);
        if answer.met != Met::Yes {
            let name = &self.plan.mix.recipes()[kind].name;
            record.unexpected(kind, answer.met, || {
                format!("status {} for {name}", answer.status)
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

    /// Counts how a connection ended on which `answered` requests were answered, and what became of those still due.
    pub(crate) fn closed(
        &self,
        stream: &Transport,
        work: &mut Work,
        end: Result<(), Lost>,
        answered: u64,
    ) {
        if self.end.get().is_some() {
            // What ends behind the end was open for the whole run, is shown so, and whatever it did not do is unfinished.
            self.landed(std::mem::take(&mut work.due));
            return;
        }
        self.sample(stream, work);
        let mut record = self.record.borrow_mut();
        if let Some(info) = self.samples.get(work.index as usize).and_then(Cell::take) {
            record.add_tcp(info);
        }
        record.tally.connections_open -= 1;
        let Err(lost) = end else {
            // What was pipelined behind an answer with `Connection: close` has not been looked at (RFC 9112 9.6).
            record.resent += work.due;
            return;
        };
        if answered > 0 && is_keep_alive_close(lost) {
            record.resent += work.due;
            return;
        }
        let failure = match lost {
            Lost::Failed(error) => Failure::of_exchange(error),
            Lost::Ended | Lost::Cut => Failure::EarlyClose,
            Lost::Refused(reason) => {
                record.protocol_error = Some(reason);
                Failure::Protocol
            }
        };
        match work.due {
            0 => record.count(failure, 1),
            due => record.failed(failure, due),
        }
        drop(record);
        self.landed(std::mem::take(&mut work.due));
    }

    /// A connection could not be made.
    pub(crate) fn connect_failed(&self, error: &NotConnected) {
        if self.end.get().is_none() {
            self.record.borrow_mut().connect_failed(error);
        }
    }

    /// One connection has nothing left to do, or no time for it.
    pub(crate) fn finished(&self, work: &mut Work) {
        self.landed(std::mem::take(&mut work.due));
        self.active.set(self.active.get() - 1);
        if self.active.get() == 0 {
            self.core.stop(Duration::ZERO);
        }
    }
}

/// Why there is no connection.
pub(crate) enum NotConnected {
    Failed(Error),
    Handshake(HandshakeError),
}

impl From<Error> for NotConnected {
    fn from(error: Error) -> NotConnected {
        NotConnected::Failed(error)
    }
}

impl From<HandshakeError> for NotConnected {
    fn from(error: HandshakeError) -> NotConnected {
        NotConnected::Handshake(error)
    }
}

/// What a connection has to do; it outlives the connection.
pub(crate) struct Work {
    /// Its number on the core.
    index: u32,
    /// Of a connection that keeps its own time.
    schedule: Option<Schedule>,
    /// Requests to be answered before more are taken.
    pub(crate) due: u64,
    /// The number, in the whole run, of the first of them.
    number: u64,
    /// When they are or were intended to start.
    start: Instant,
    /// The second in which its TCP counters were last looked at.
    second: u32,
    /// Nothing was taken yet.
    is_first: bool,
    /// What is due has been sent, in vain if it is to be sent again.
    is_sent: bool,
}

impl Work {
    pub(crate) fn start(&self) -> Instant {
        self.start
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
                let dispatch = Dispatch::new(arrivals, connections, options.catch_up);
                Source::Open(Box::new(dispatch))
            }
            Pace::EachConnection(_) => Source::Own,
        }
    }
}

/// Whether the peer ended a kept-alive connection in good order while a request was on its way: EPIPE is what a reset
/// is called when the end of the stream had come before it (Linux, tcp_reset). Many a server ends an idle connection
/// without the word that TLS wants.
fn is_keep_alive_close(lost: Lost) -> bool {
    match lost {
        Lost::Ended => true,
        Lost::Failed(error) => error.kind == Kind::Os(Errno::PIPE) || error.kind == Kind::Truncated,
        Lost::Cut | Lost::Refused(_) => false,
    }
}
