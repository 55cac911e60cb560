//! One socket of a run: sending and receiving.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::ops::Range;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use onrush_engine::random::Random;
use onrush_engine::{Core, Datagram, Errno, Error, Instant, Kind, ReceiveBatch, Received};
use onrush_packet::header::{self, Header};
use onrush_packet::report::Report;
use onrush_packet::tally::Counter;

use super::counts::{Counts, PacketTimes, Unsent};
use super::flight::{InTime, OutstandingDatagrams};
use super::frames::Frames;
use super::plan::Direction;
use super::schedule::{Due, Next, Schedule};
use super::sending::SendBuffers;
use super::size::Sizes;

pub(super) struct Shared {
    pub(super) core: Core,
    pub(super) counts: RefCell<Counts>,
    pub(super) times: RefCell<PacketTimes>,
    pub(super) unsent: RefCell<Unsent>,
    /// Buffer for received datagrams; empty between two polls.
    pub(super) arrived: RefCell<ReceiveBatch>,
    pub(super) sizes: Sizes,
    pub(super) timeout: Duration,
    pub(super) direction: Direction,
    /// Whether the core never sleeps, so that it can send with microsecond precision.
    pub(super) spins: BusyWait,
}

/// Whether a core waits actively for a moment that is near.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BusyWait {
    Yes,
    No,
}

pub(super) struct Flow {
    pub(super) shared: Rc<Shared>,
    pub(super) socket: Datagram,
    pub(super) id: header::Flow,
    pub(super) schedule: Schedule,
    /// Generator of its sizes.
    random: Random,
    /// Maximum of outstanding datagrams in a closed loop.
    depth: u64,
    pub(super) sent: Cell<u64>,
    /// Number of the next datagram.
    next: Cell<u64>,
    flight: RefCell<OutstandingDatagrams>,
    /// Waker of the sender, while too many datagrams are outstanding.
    sender_waker: Cell<Option<Waker>>,
    echoes: RefCell<Counter>,
    /// Last report of the target, and the waker of the task that waits for one.
    pub(super) report: Cell<Option<Report>>,
    pub(super) report_waker: Cell<Option<Waker>>,
}

/// Where a flow's datagrams are sent.
pub(super) enum SendPath {
    Socket(SendBuffers),
    /// An interface, bypassing the socket.
    Interface(Frames),
}

impl SendPath {
    /// Returns the maximum of datagrams sent together.
    fn most(&self) -> u64 {
        match self {
            SendPath::Socket(sending) => sending.most(),
            SendPath::Interface(frames) => frames.most,
        }
    }
}

/// A core that never sleeps spends shorter waits polling, since its timers are less precise.
const SPIN: Duration = Duration::from_micros(50);

impl Flow {
    /// Creates the flow `id` over `socket`, which is connected to the target.
    pub(super) fn new(
        shared: &Rc<Shared>,
        socket: Datagram,
        id: header::Flow,
        schedule: Schedule,
        random: Random,
        flight_max: u64,
    ) -> Flow {
        let most = match shared.direction {
            Direction::OneWay => 1,
            Direction::RoundTrip => flight_max,
        };
        Flow {
            shared: Rc::clone(shared),
            socket,
            id,
            schedule,
            random,
            depth: flight_max,
            sent: Cell::new(0),
            next: Cell::new(0),
            flight: RefCell::new(OutstandingDatagrams::new(most)),
            sender_waker: Cell::new(None),
            echoes: RefCell::default(),
            report: Cell::new(None),
            report_waker: Cell::new(None),
        }
    }

    pub(super) async fn send(&self, outlet: &mut SendPath) {
        let core = &self.shared.core;
        loop {
            let most = self.room(outlet.most()).await;
            let now = core.now_exact();
            match self.schedule.next(now, most) {
                Next::Over => return,
                Next::At(moment) => self.wait_until(now, moment).await,
                Next::Send(due) => self.send_due(outlet, due, now).await,
            }
            if core.is_stopping() {
                return;
            }
        }
    }

    /// Waits until at least one datagram may be sent; returns how many, at most `most`.
    async fn room(&self, most: u64) -> u64 {
        if self.shared.direction == Direction::OneWay || self.schedule.is_paced() {
            return most;
        }
        poll_fn(|context| {
            let waiting = self.flight.borrow().waiting();
            if waiting < self.depth {
                return Poll::Ready(most.min(self.depth - waiting));
            }
            self.sender_waker.set(Some(context.waker().clone()));
            Poll::Pending
        })
        .await
    }

    async fn wait_until(&self, now: Instant, moment: Instant) {
        let core = &self.shared.core;
        if self.shared.spins == BusyWait::Yes && moment.since(now) < SPIN {
            core.yield_now().await;
        } else if moment > core.now_exact() {
            core.sleep_until(moment).await;
        }
    }

    async fn send_due(&self, outlet: &mut SendPath, due: Due, now: Instant) {
        match outlet {
            SendPath::Socket(sending) => self.send_messages(sending, due, now).await,
            SendPath::Interface(frames) => self.send_frames(frames, due, now).await,
        }
    }

    /// Sends due datagrams as frames, in as many calls as necessary.
    async fn send_frames(&self, frames: &Frames, due: Due, mut now: Instant) {
        let core = &self.shared.core;
        let mut left = due.count;
        while left > 0 {
            let departed = frames.send(left);
            self.note_lateness(due, now, departed.made);
            self.count_sent(departed.sent, departed.sent * frames.size);
            let reason = departed.reason.unwrap_or(Errno::CANCELED);
            let mut unsent = departed.refused;
            left -= departed.made.min(left);
            // After a signal the next call continues. Other errors do not go away.
            let is_over = departed.made == 0 && reason != Errno::INTR;
            if is_over || core.is_stopping() {
                unsent += std::mem::take(&mut left);
            }
            if unsent > 0 {
                self.shared.unsent.borrow_mut().add(reason, unsent);
            }
            core.yield_now().await;
            now = core.now_exact();
        }
    }

    fn note_lateness(&self, due: Due, now: Instant, count: u64) {
        if self.schedule.is_paced() {
            let late = now.nanoseconds_since(due.at);
            let times = &mut *self.shared.times.borrow_mut();
            times.lateness.record_many(late, count);
        }
    }

    /// Counts sent datagrams with their total payload bytes.
    fn count_sent(&self, count: u64, bytes: u64) {
        self.sent.set(self.sent.get() + count);
        let counts = &mut *self.shared.counts.borrow_mut();
        counts.sent += count;
        counts.sent_bytes += bytes;
    }

    /// Sends due datagrams over the socket, in as many calls as necessary.
    async fn send_messages(&self, sending: &mut SendBuffers, due: Due, mut now: Instant) {
        let mut left = due.count;
        while left > 0 {
            let first = self.next.get();
            let header = Header {
                kind: header::Kind::Data,
                flow: self.id,
                sequence: 0,
                sent: now.nanoseconds(),
            };
            let count = sending.load(header, first, left);
            self.next.set(first + count);
            if self.shared.direction == Direction::RoundTrip {
                let mut flight = self.flight.borrow_mut();
                (0..count).for_each(|_| flight.start(due.at.nanoseconds(), now.nanoseconds()));
            }
            self.note_lateness(due, now, count);
            self.hand_over(sending, first).await;
            left -= count;
            if left > 0 {
                now = self.shared.core.now_exact();
            }
        }
    }

    /// Sends all loaded messages; `at` is the number of the first datagram.
    async fn hand_over(&self, sending: &mut SendBuffers, mut at: u64) {
        while !sending.batch().is_empty() {
            let sent = self.socket.send(sending.batch()).await;
            match sent {
                Ok(count) => {
                    let count = count as u64;
                    at += count;
                    let bytes = sending.count_sent(count);
                    self.count_sent(count, bytes);
                }
                Err(error) => {
                    let refused = sending.refused();
                    self.count_refused(error, at..at + refused);
                    at += refused;
                }
            }
        }
    }

    /// Records that the kernel refused these datagrams.
    fn count_refused(&self, error: Error, numbers: Range<u64>) {
        let count = numbers.end - numbers.start;
        if self.shared.direction == Direction::RoundTrip {
            self.flight.borrow_mut().cancel(numbers);
        }
        let errno = match error.kind {
            Kind::Os(errno) => errno,
            // Sending has no deadline; this is a core that stops.
            _ => Errno::CANCELED,
        };
        if errno == Errno::CONNREFUSED {
            self.shared.counts.borrow_mut().refused += 1;
        }
        self.shared.unsent.borrow_mut().add(errno, count);
    }

    pub(super) async fn receive(&self) {
        loop {
            let patience = self.shared.timeout.min(Duration::from_millis(100));
            let now = self.shared.core.now_exact();
            self.socket.set_deadline(Some(now + patience));
            let received = poll_fn(|_| self.poll_receive()).await;
            let now = self.shared.core.now_exact();
            if let Err(error) = received {
                match error.kind {
                    Kind::TimedOut => {}
                    Kind::Os(Errno::CONNREFUSED) => self.shared.counts.borrow_mut().refused += 1,
                    _ => return,
                }
            }
            self.expire(now);
        }
    }

    /// Receives and handles datagrams. They are handled within the poll, so that all flows of the core can share one
    /// buffer.
    fn poll_receive(&self) -> Poll<Result<(), Error>> {
        let arrived = &mut *self.shared.arrived.borrow_mut();
        match self.socket.poll_recv(arrived) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(_)) => {
                let now = self.shared.core.now_exact();
                arrived
                    .iter()
                    .for_each(|datagram| self.take(&datagram, now));
                Poll::Ready(Ok(()))
            }
        }
    }

    fn take(&self, datagram: &Received<'_>, now: Instant) {
        if let Some(report) = Report::read(datagram.bytes).filter(|report| report.flow == self.id) {
            self.report.set(Some(report));
            if let Some(waker) = self.report_waker.take() {
                waker.wake();
            }
            return;
        }
        let header = Header::read(datagram.bytes).filter(|header| {
            header.flow == self.id
                && header.kind == header::Kind::Data
                && self.shared.direction == Direction::RoundTrip
        });
        match header {
            Some(header) => self.handle_echo(&header, datagram, now),
            None => self.shared.counts.borrow_mut().foreign += 1,
        }
    }

    fn handle_echo(&self, header: &Header, datagram: &Received<'_>, now: Instant) {
        let behind = (self.next.get() as u32).wrapping_sub(header.sequence);
        if behind == 0 || behind.cast_signed() < 0 || u64::from(behind) > self.next.get() {
            // A number that was never sent would become the highest and make all others too late.
            self.shared.counts.borrow_mut().foreign += 1;
            return;
        }
        let landed = self.flight.borrow_mut().complete(header.sequence);
        if landed.is_some() {
            self.make_room();
        }
        let echoes = &mut *self.echoes.borrow_mut();
        let before = echoes.tally().received;
        echoes.record(header, datagram.bytes.len(), now.nanoseconds());
        if echoes.tally().received == before {
            // A duplicate, or too late to tell; counted in the flow's tally.
            return;
        }
        let Some(landed) = landed else {
            // So late that its times are forgotten; counted in the tally.
            self.shared.counts.borrow_mut().late += 1;
            return;
        };
        let size = usize::from(self.shared.sizes.of(landed.number, &self.random));
        if datagram.is_truncated || datagram.bytes.len() != size {
            self.shared.counts.borrow_mut().wrong_length += 1;
        }
        let times = &mut *self.shared.times.borrow_mut();
        let now = now.nanoseconds();
        times.response.record(now.saturating_sub(landed.due));
        times.service.record(now.saturating_sub(landed.sent));
        if landed.in_time == InTime::No {
            self.shared.counts.borrow_mut().late += 1;
        }
    }

    /// Expires outstanding datagrams after the timeout.
    fn expire(&self, now: Instant) {
        if self.shared.direction == Direction::OneWay {
            return;
        }
        let moment = now.before(self.shared.timeout).nanoseconds();
        let flight = &mut *self.flight.borrow_mut();
        let before = flight.waiting();
        flight.expire(moment);
        if flight.waiting() < before {
            self.make_room();
        }
    }

    fn make_room(&self) {
        if let Some(waker) = self.sender_waker.take() {
            waker.wake();
        }
    }

    pub(super) fn waiting(&self) -> u64 {
        self.flight.borrow().waiting()
    }

    pub(super) fn echoes(&self) -> onrush_packet::tally::FlowCounters {
        self.echoes.borrow().tally()
    }
}
