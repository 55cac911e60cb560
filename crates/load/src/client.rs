//! What the connections of one core share: the requests to send, what may still be sent, and what has come of it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use onrush_engine::{Address, Core, Errno, Error, Input, Instant, Kind, Part, Stream};
use onrush_tls::{Connector, HandshakeError, Transport};

use crate::answer::{Answer, Heads, Lost};
use crate::connection;
use crate::limits::CONNECT_TIMEOUT;
use crate::pace::Schedule;
use crate::plan::Plan;
use crate::record::{Failure, Record};
use crate::stop::Budget;

/// One core's side of the run.
pub(crate) struct Client {
    pub(crate) core: Core,
    plan: Arc<Plan>,
    address: Address,
    /// When the run began on this core.
    begin: Instant,
    timeout: Duration,
    connect_timeout: Duration,
    /// Requests taken at a time.
    turn: u64,
    per_connection: u64,
    /// As many requests as are pipelined, one behind the other.
    requests: Rc<[u8]>,
    request_bytes: usize,
    request_last: Rc<[u8]>,
    budget: Cell<Budget>,
    pub(crate) heads: Heads,
    pub(crate) record: RefCell<Record>,
    /// Connections that have work to do. At 0 the core stops.
    active: Cell<usize>,
}

impl Client {
    /// Begins core `core.id()`'s part of `plan`: its connections are tasks of the core when this returns.
    pub(crate) fn begin(core: &Core, plan: &Arc<Plan>, address: Address) -> Rc<Client> {
        let options = &plan.options;
        let begin = core.now_exact();
        let per_connection = options.requests_per_connection.unwrap_or(u64::MAX);
        let client = Rc::new(Client {
            core: core.clone(),
            plan: Arc::clone(plan),
            address,
            begin,
            timeout: options.timeout,
            connect_timeout: options.timeout.min(CONNECT_TIMEOUT),
            turn: options.pipeline.min(per_connection),
            per_connection,
            requests: plan.request.repeat(options.pipeline as usize).into(),
            request_bytes: plan.request.len(),
            request_last: plan.request_last.as_slice().into(),
            budget: Cell::new(plan.budget_of(core.id(), begin)),
            heads: Heads::new(plan.method),
            record: RefCell::new(Record::new()),
            active: Cell::new(plan.connections_of(core.id()).count()),
        });
        for number in plan.connections_of(core.id()) {
            core.spawn(connection::run(Rc::clone(&client), number));
        }
        client
    }

    /// What connection `number` of the run has to do.
    pub(crate) fn work_of(&self, number: u64) -> Work {
        Work {
            schedule: self.plan.schedule_of(number, self.begin),
            due: 0,
            start: None,
        }
    }

    /// When the run began on this core.
    pub(crate) fn began(&self) -> Instant {
        self.begin
    }

    /// How long the run has taken on this core.
    pub(crate) fn elapsed(&self) -> Duration {
        self.core.now_exact().since(self.begin)
    }

    /// When the run ends by the clock.
    pub(crate) fn end(&self) -> Option<Instant> {
        self.budget.get().end()
    }

    /// Whether requests are due on a connection with `answered` ones, after more were taken if none were.
    pub(crate) fn has_work(&self, work: &mut Work, now: Instant, answered: u64) -> bool {
        if work.due > 0 {
            return true;
        }
        let mut budget = self.budget.get();
        work.due = budget.take(now, self.turn.min(self.per_connection - answered));
        work.start = None;
        self.budget.set(budget);
        work.due > 0
    }

    pub(crate) async fn connect(&self) -> Result<Transport, NotConnected> {
        self.record.borrow_mut().tally.connections += 1;
        let deadline = self.core.now_exact() + self.connect_timeout;
        let stream = Stream::connect(&self.core, &self.address, Some(deadline)).await?;
        let transport = match &self.plan.connector {
            None => Transport::plain(stream),
            // Boxed: connections without TLS need not have room for it.
            Some(connector) => Box::pin(self.shake_hands(stream, connector, deadline)).await?,
        };
        let mut record = self.record.borrow_mut();
        record.established += 1;
        record.tally.connections_open += 1;
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

    /// Queues `count` requests, at most those of one turn.
    pub(crate) fn queue(&self, stream: &Transport, count: u64, last: Last) {
        let plain = match last {
            Last::No => count as usize,
            Last::Yes => count as usize - 1,
        };
        let offset = self.requests.len() - plain * self.request_bytes;
        stream.queue(Part::Shared(Rc::clone(&self.requests), offset));
        if last == Last::Yes {
            stream.queue(Rc::clone(&self.request_last));
        }
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
        self.record.borrow_mut().tally.bytes += count as u64;
        Ok(count)
    }

    pub(crate) fn answered(&self, answer: Answer, start: Instant, now: Instant) {
        self.record.borrow_mut().answered(
            answer.status,
            answer.first_byte.nanoseconds_since(start),
            now.nanoseconds_since(start),
        );
    }

    /// Counts how a connection ended on which `answered` requests were answered, and what became of those still due.
    pub(crate) fn closed(&self, work: &mut Work, end: Result<(), Lost>, answered: u64) {
        let mut record = self.record.borrow_mut();
        // One that ends because the time is over was open for the whole run, and is shown so.
        if !self.budget.get().is_over(self.core.now_exact()) {
            record.tally.connections_open -= 1;
        }
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
        work.due = 0;
    }

    /// One connection has nothing left to do.
    pub(crate) fn finished(&self) {
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
    schedule: Schedule,
    /// Requests to be answered before more are taken.
    pub(crate) due: u64,
    /// When they are or were intended to start; `None` before that is known, and while none are due.
    start: Option<Instant>,
}

impl Work {
    /// When the requests that are due are intended to start. A request that is sent again keeps its first start.
    pub(crate) fn start(&mut self, now: Instant) -> Instant {
        *self.start.get_or_insert_with(|| self.schedule.next(now))
    }
}

/// Whether the connection ends behind the requests that are about to be sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    Yes,
    No,
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
