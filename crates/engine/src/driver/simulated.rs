//! The simulated driver: a network inside the process with a virtual clock and faults decided by a seed.
//!
//! Receives are short, operations return EAGAIN without need, bytes are delayed so that connections overtake each
//! other, buffers fill up, and connections are reset. The same seed gives the same run.
//!
//! It panics with the seed when all tasks wait and no event is left, so a lost wake-up is a failing test.

mod datagrams;
mod operations;

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use rustix::io::Errno;

use super::event::{Event, PollOutcome, Readiness};
use super::simulation::Simulation;
use crate::address::Address;
use crate::clock::Instant;
use crate::limits::EVENTS_PER_WAIT;
use crate::socket::key::Key;
use crate::socket::{Ended, Socket, Sockets};
use crate::system::random::Random;

use crate::socket::peer::Peer;
use datagrams::{Datagrams, InTransit};

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum SimulatedEvent {
    Bytes(Vec<u8>),
    End,
    Reset,
    /// The other end has received bytes: there is room to send.
    Room,
    /// An operation that returned EAGAIN may proceed.
    Again,
    /// A datagram arrives at its destination; boxed, since the other variants are small.
    Datagram(Box<InTransit>),
    /// A datagram of the socket reached an address without a socket.
    Refused,
}

/// Time, order of scheduling, socket, connection ID, event: sorts by time and then by order.
type Entry = (u64, u64, u32, u64, SimulatedEvent);

pub(crate) struct Simulated {
    options: Simulation,
    random: Random,
    clock: Rc<Cell<u64>>,
    listeners: HashMap<String, Key>,
    backlog: HashMap<u32, VecDeque<Key>>,
    event_queue: BinaryHeap<Reverse<Entry>>,
    order: u64,
    connections: u64,
    /// How long the process is suspended at the next look.
    stop: Duration,
    datagrams: Datagrams,
}

impl Simulated {
    pub(crate) fn new(options: Simulation, clock: Rc<Cell<u64>>) -> Self {
        Self {
            random: Random::new(options.seed),
            options,
            clock,
            listeners: HashMap::new(),
            backlog: HashMap::new(),
            event_queue: BinaryHeap::new(),
            order: 0,
            connections: 0,
            stop: Duration::ZERO,
            datagrams: Datagrams::default(),
        }
    }

    /// Makes both ends at once; `accept` returns the listener's end, whose peer address is `source`.
    fn connect_ends(
        &mut self,
        source: Option<IpAddr>,
        address: &Address,
        sockets: &mut Sockets,
    ) -> Result<Key, Errno> {
        let listener = *self
            .listeners
            .get(&address.to_string())
            .ok_or(Errno::CONNREFUSED)?;
        self.connections += 1;
        let mut end = || {
            let mut socket = Socket::new(None);
            socket.simulated = Some(Box::new(Peer {
                id: self.connections,
                ..Peer::default()
            }));
            socket.writable = true;
            sockets.insert(socket)
        };
        let (near, far) = (end(), end());
        peer(sockets, near).other = Some(far);
        peer(sockets, far).other = Some(near);
        peer(sockets, far).peer_address = source;
        self.backlog
            .get_mut(&listener.0)
            .expect("made with the listener")
            .push_back(far);
        self.schedule(listener, 0, SimulatedEvent::Again);
        Ok(near)
    }

    pub(crate) fn unconnected_end(&mut self, sockets: &mut Sockets) -> Key {
        self.connections += 1;
        let mut socket = Socket::new(None);
        socket.simulated = Some(Box::new(Peer {
            id: self.connections,
            ..Peer::default()
        }));
        sockets.insert(socket)
    }

    /// Decides whether an event with this rate per thousand occurs now.
    fn occurs_randomly(&self, per_thousand: u32) -> bool {
        self.random.below(1000) < u64::from(per_thousand)
    }

    /// Whether the operation returns EAGAIN for no reason; it is woken again later.
    fn injects_again(&mut self, key: Key, id: u64) -> bool {
        let hesitates = self.occurs_randomly(self.options.spurious_again);
        if hesitates {
            self.schedule(key, id, SimulatedEvent::Again);
        }
        hesitates
    }

    /// Receives into `bytes`: zero at the end, `EAGAIN` if no bytes have arrived.
    fn recv_bytes(
        &mut self,
        key: Key,
        sockets: &mut Sockets,
        bytes: &mut [u8],
    ) -> Result<usize, Errno> {
        let end = peer(sockets, key);
        let (id, other) = (end.id, end.other);
        if end.reset {
            return Err(Errno::CONNRESET);
        }
        if end.inbox.is_empty() {
            return if end.ended { Ok(0) } else { Err(Errno::AGAIN) };
        }
        if self.injects_again(key, id) {
            return Err(Errno::AGAIN);
        }
        let available = peer(sockets, key).inbox.len().min(bytes.len());
        let count = self.shorten(available);
        let end = peer(sockets, key);
        for (slot, byte) in bytes.iter_mut().zip(end.inbox.drain(..count)) {
            *slot = byte;
        }
        end.arriving -= count;
        if let Some(other) = other {
            self.schedule(other, id, SimulatedEvent::Room);
        }
        Ok(count)
    }

    /// Number of bytes taken from `bytes`, or `EAGAIN` when the direction is full.
    fn send_bytes(
        &mut self,
        key: Key,
        sockets: &mut Sockets,
        bytes: &[u8],
    ) -> Result<usize, Errno> {
        let end = peer(sockets, key);
        let (id, reset, other) = (end.id, end.reset, end.other);
        if reset {
            return Err(Errno::CONNRESET);
        }
        let Some(other) = other else {
            return Err(Errno::PIPE);
        };
        if self.injects_again(key, id) {
            return Err(Errno::AGAIN);
        }
        if self.occurs_randomly(self.options.reset) {
            peer(sockets, key).reset = true;
            self.schedule(other, id, SimulatedEvent::Reset);
            return Err(Errno::CONNRESET);
        }
        let room = self
            .options
            .capacity
            .saturating_sub(peer(sockets, other).arriving);
        let count = bytes.len().min(room);
        if count == 0 {
            return Err(Errno::AGAIN);
        }
        let count = self.shorten(count);
        peer(sockets, other).arriving += count;
        self.deliver(
            other,
            sockets,
            SimulatedEvent::Bytes(bytes[..count].to_vec()),
        );
        Ok(count)
    }

    fn close(&mut self, key: Key, sockets: &mut Sockets) {
        if let Some(waiting) = self.backlog.remove(&key.0) {
            self.listeners.retain(|_, listener| *listener != key);
            sockets.remove(key);
            // The kernel resets connections that were not accepted, too.
            for end in waiting {
                peer(sockets, end).resets = true;
                self.close(end, sockets);
            }
            return;
        }
        let end = peer(sockets, key);
        // tcp(7): closing with unread bytes resets the connection, too.
        let resets = end.resets || !end.inbox.is_empty();
        if let Some(other) = end.other.take() {
            self.deliver(
                other,
                sockets,
                if resets {
                    SimulatedEvent::Reset
                } else {
                    SimulatedEvent::End
                },
            );
            peer(sockets, other).other = None;
        }
        sockets.remove(key);
    }

    fn shorten(&mut self, count: usize) -> usize {
        if count > 1 && self.occurs_randomly(self.options.short) {
            1 + self.random.below(count as u64) as usize
        } else {
            count
        }
    }

    pub(crate) fn delay(&self) -> Duration {
        let delay_max = self.options.delay_max.as_nanos() as u64;
        Duration::from_nanos(self.random.below(delay_max + 1))
    }

    /// Schedules an event after everything that is already in transit to this end.
    fn deliver(&mut self, to: Key, sockets: &mut Sockets, what: SimulatedEvent) {
        let delay = self.delay().as_nanos() as u64;
        let end = peer(sockets, to);
        end.last_arrival = end.last_arrival.max(self.clock.get() + delay);
        let (time, id) = (end.last_arrival, end.id);
        self.order += 1;
        self.event_queue
            .push(Reverse((time, self.order, to.0, id, what)));
    }

    fn schedule(&mut self, key: Key, id: u64, what: SimulatedEvent) {
        let time = self.clock.get() + self.delay().as_nanos() as u64;
        self.order += 1;
        self.event_queue
            .push(Reverse((time, self.order, key.0, id, what)));
    }

    /// Suspends the process at the next look, as SIGSTOP and SIGCONT do: bytes arrive, and the look is interrupted.
    pub(crate) fn stop_process(&mut self, duration: Duration) {
        self.stop = duration;
    }

    /// Advances the clock to the next event, at most to `until`, and handles all events up to then.
    ///
    /// # Panics
    /// When no event is left and there is no `until`: the tasks wait for each other.
    pub(crate) fn wait(
        &mut self,
        until: Option<Instant>,
        sockets: &mut Sockets,
        events: &mut Vec<Event>,
    ) -> PollOutcome {
        if !self.stop.is_zero() {
            let stop = std::mem::take(&mut self.stop);
            self.clock.set(self.clock.get() + stop.as_nanos() as u64);
            return PollOutcome::Interrupted;
        }
        let next = self.event_queue.peek().map(|Reverse((time, ..))| *time);
        let now = match (next, until.map(Instant::nanoseconds)) {
            (Some(next), Some(until)) => next.min(until),
            (Some(time), None) | (None, Some(time)) => time,
            (None, None) => panic!(
                "simulation: deadlock: all tasks wait and no event is pending (seed {})",
                self.options.seed
            ),
        };
        self.clock.set(self.clock.get().max(now));
        for _ in 0..EVENTS_PER_WAIT {
            match self.event_queue.peek() {
                Some(Reverse((time, ..))) if *time <= self.clock.get() => {}
                _ => return PollOutcome::Complete,
            }
            let Reverse((_, _, index, id, what)) = self.event_queue.pop().expect("peeked");
            self.handle_event(Key(index), id, what, sockets, events);
        }
        PollOutcome::LimitReached
    }

    fn handle_event(
        &mut self,
        key: Key,
        id: u64,
        what: SimulatedEvent,
        sockets: &mut Sockets,
        events: &mut Vec<Event>,
    ) {
        let what = match what {
            SimulatedEvent::Datagram(flight) => return self.arrive(*flight, events),
            what => what,
        };
        let both = Event::Ready(Readiness {
            key,
            readable: true,
            writable: true,
            ended: match what {
                SimulatedEvent::Reset => Ended::HungUp,
                _ => Ended::No,
            },
            urgent: false,
        });
        let Some(end) = sockets[key]
            .simulated
            .as_deref_mut()
            .filter(|end| end.id == id)
        else {
            if self.backlog.contains_key(&key.0) || self.datagrams.happen(key, id, &what) {
                events.push(both);
            }
            return;
        };
        match what {
            SimulatedEvent::Bytes(bytes) => end.inbox.extend(bytes),
            SimulatedEvent::End => end.ended = true,
            SimulatedEvent::Reset => {
                end.reset = true;
                end.inbox.clear();
            }
            SimulatedEvent::Room | SimulatedEvent::Again => {}
            SimulatedEvent::Datagram(_) | SimulatedEvent::Refused => {
                unreachable!("not of a connection")
            }
        }
        events.push(both);
    }
}

fn peer(sockets: &mut Sockets, key: Key) -> &mut Peer {
    sockets[key]
        .simulated
        .as_deref_mut()
        .expect("sockets of a simulated core are simulated")
}
