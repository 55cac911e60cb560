//! The listeners that share a TCP address (SO_REUSEPORT), one per core: how the kernel selects a listener for a
//! connection, and which connections the cores hand to each other.
//!
//! ```text
//!   SYN, on the CPU that processes it ──> program: index of that CPU's listener ──> its core accepts
//!                                              no such CPU: by hash                      │ clearly more than another
//!                                                                                        │ core, for a while
//!                                                                                        └──> the other core's queue
//! ```
//! The kernel numbers listeners in the order in which they began to listen, and when one closes it moves the last one
//! to its index. So listeners join under a lock, the program is attached when the last one has joined, and the first
//! listener to leave switches the selection to the kernel's hash: the program never has a wrong index.
//!
//! A client's thread may give all its connections to one core. A core with clearly more connections than another hands
//! a new one over before a byte is read (`Place::decide`). Each accept compares with one other core, in turn, by one
//! atomic load. A core that stops takes no more connections from others, and accepts those in its queue before it ends.

mod program;

use std::cell::Cell;
use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};

use rustix::io::Errno;

use crate::clock::Instant;
use crate::limits::{IMBALANCE_DIVISOR, IMBALANCE_MEMORY, IMBALANCE_MIN};
use crate::socket::filter::{Purpose, attach};
use crate::socket::tcp_info;
use crate::system::allowance::HandedConnection;

#[derive(Debug)]
pub(crate) struct Group {
    /// CPU of each core, by core number.
    cpus: Vec<usize>,
    forming: Mutex<Forming>,
    /// All members, once all have joined.
    complete: OnceLock<Vec<Arc<Member>>>,
}

#[derive(Debug, Default)]
struct Forming {
    /// In the kernel's order.
    joined: Vec<Arc<Member>>,
    /// The error with which the kernel refused the program.
    refused: Option<Errno>,
}

/// One listener, as the other cores use it.
#[derive(Debug)]
pub(crate) struct Member {
    cpu: usize,
    /// Open connections that its core has accepted, from any listener.
    live: Arc<AtomicUsize>,
    handoff_queue: Mutex<HandoffQueue>,
}

/// Queue of connections that other cores hand to a listener.
#[derive(Debug, Default)]
struct HandoffQueue {
    /// The listener's socket. Invariant: open while it is set; `None` when connections are no longer taken.
    listener: Option<RawFd>,
    /// Connections for this core. Bounded by the number of descriptors: together with those in the accept queue there
    /// are fewer than the core has that hands one over.
    handed: VecDeque<HandedConnection>,
    waker: Option<Waker>,
}

/// A listener's membership in its group. Dropped before the listener is closed.
pub(crate) struct Place {
    group: Arc<Group>,
    member: Arc<Member>,
    /// Index of the member to compare with next.
    next: Cell<usize>,
    /// Until this time connections are handed over without a wait, because the imbalance has lasted before.
    settled_until: Cell<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Kept,
    HandedOver,
    /// Decided after a wait: it is handed over if the imbalance lasts. Clients that open connections on several CPUs at
    /// the same time are not in step, and a connection on another CPU than its client's costs both.
    Undecided,
}

/// How many more connections than another core a core may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Tolerance {
    /// The imbalance that independent clients on all CPUs cause by chance.
    Some,
    /// One: the imbalance has lasted, so clients use this core's CPU only, and handing over makes the cores even.
    One,
}

enum Comparison<'group> {
    Even,
    /// This core has clearly more than the other.
    More(&'group Member),
}

impl Group {
    pub(crate) fn new(cpus: Vec<usize>) -> Arc<Self> {
        Arc::new(Self {
            cpus,
            forming: Mutex::default(),
            complete: OnceLock::new(),
        })
    }

    pub(crate) fn refused(&self) -> Option<Errno> {
        self.forming().refused
    }

    /// Opens the listener of core number `core`, which has `live` connections, by `open`.
    ///
    /// # Errors
    /// Errors of `open`. If the kernel refuses the program, this is not an error.
    pub(crate) fn join(
        self: &Arc<Self>,
        core: usize,
        live: Arc<AtomicUsize>,
        open: impl FnOnce() -> Result<OwnedFd, Errno>,
    ) -> Result<(OwnedFd, Place), Errno> {
        let mut forming = self.forming();
        let socket = open()?;
        let desk = HandoffQueue {
            listener: Some(socket.as_raw_fd()),
            ..HandoffQueue::default()
        };
        let member = Arc::new(Member {
            cpu: self.cpus[core],
            live,
            handoff_queue: Mutex::new(desk),
        });
        forming.joined.push(Arc::clone(&member));
        if forming.joined.len() == self.cpus.len() {
            let cpus: Vec<usize> = forming.joined.iter().map(|member| member.cpu).collect();
            forming.refused = attach(&socket, Purpose::Listener, &mut program::by_cpu(&cpus)).err();
            if forming.refused.is_none() {
                let _ = self.complete.set(forming.joined.clone());
            }
        }
        let place = Place {
            group: Arc::clone(self),
            member,
            next: Cell::new(core + 1),
            settled_until: Cell::new(Instant::default()),
        };
        Ok((socket, place))
    }

    fn forming(&self) -> MutexGuard<'_, Forming> {
        // No code under the lock can panic and leave a partial change.
        self.forming.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Returns a connection that another core has handed over; wakes `waker` when there is one.
    pub(crate) fn poll_handed(&self, waker: &Waker) -> Poll<HandedConnection> {
        let mut desk = self.member.handoff_queue();
        match desk.handed.pop_front() {
            Some(connection) => Poll::Ready(connection),
            None => {
                desk.waker = Some(waker.clone());
                Poll::Pending
            }
        }
    }

    /// Takes no more connections from other cores; those in the queue remain.
    pub(crate) fn close_handoff_queue(&self) {
        self.member.handoff_queue().listener = None;
    }

    /// Leaves the group before `socket` is closed: the kernel selects by hash among the remaining listeners.
    pub(crate) fn leave(self, socket: &OwnedFd) {
        // Fails only where the kernel had refused the first program, too.
        let _ = attach(socket, Purpose::Listener, &mut program::by_hash());
    }

    /// Decides about the connection that this core has just accepted: it goes to another core that has clearly fewer,
    /// after `hand_out` has released it. To bound the cost of an accept, only one other core is compared, in turn.
    pub(crate) fn decide(
        &self,
        now: Instant,
        hand_out: impl FnOnce() -> HandedConnection,
    ) -> Outcome {
        let own = self.member.live.load(Ordering::Relaxed);
        let tolerance = match now < self.settled_until.get() {
            true => Tolerance::One,
            false => Tolerance::Some,
        };
        match self.compare_with_next(own, tolerance) {
            Comparison::Even => Outcome::Kept,
            Comparison::More(other) if tolerance == Tolerance::One => {
                match other.take(own, hand_out) {
                    true => Outcome::HandedOver,
                    false => Outcome::Kept,
                }
            }
            Comparison::More(other) if other.has_clearly_fewer(own) => Outcome::Undecided,
            Comparison::More(_) => Outcome::Kept,
        }
    }

    /// Called after the wait with an [undecided](Outcome::Undecided) connection: the next ones are decided at once.
    pub(crate) fn note_lasting_imbalance(&self, now: Instant) {
        self.next.set(self.next.get().wrapping_sub(1));
        self.settled_until.set(now + IMBALANCE_MEMORY);
    }

    fn compare_with_next(&self, own: usize, tolerance: Tolerance) -> Comparison<'_> {
        let Some(members) = self.group.complete.get() else {
            return Comparison::Even;
        };
        if !tolerance.is_exceeded(own, 0) {
            return Comparison::Even;
        }
        let mut other = self.next_member(members);
        if Arc::ptr_eq(other, &self.member) {
            other = self.next_member(members);
        }
        // Compared without a lock, which suffices in nearly all cases.
        let is_uneven = tolerance.is_exceeded(own, other.live.load(Ordering::Relaxed));
        match is_uneven && !Arc::ptr_eq(other, &self.member) {
            true => Comparison::More(other),
            false => Comparison::Even,
        }
    }

    fn next_member<'group>(&self, members: &'group [Arc<Member>]) -> &'group Arc<Member> {
        let next = self.next.get();
        self.next.set(next.wrapping_add(1));
        &members[next % members.len()]
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut desk = self.member.handoff_queue();
        desk.listener = None;
        // Closed, like connections in the accept queue of a listener that closes. The queue is empty if it was closed
        // first and then emptied, as a core that stops does.
        let left = std::mem::take(&mut desk.handed);
        drop(desk);
        drop(left);
    }
}

impl Member {
    fn handoff_queue(&self) -> MutexGuard<'_, HandoffQueue> {
        self.handoff_queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a connection of a core that has `own`, if this core has fewer by more than one.
    fn take(&self, own: usize, hand_out: impl FnOnce() -> HandedConnection) -> bool {
        let mut desk = self.handoff_queue();
        if !desk.accepts_from(own, self.live.load(Ordering::Relaxed), Tolerance::One) {
            return false;
        }
        desk.handed.push_back(hand_out());
        let waker = desk.waker.take();
        drop(desk);
        waker.into_iter().for_each(Waker::wake);
        true
    }

    fn has_clearly_fewer(&self, own: usize) -> bool {
        self.handoff_queue()
            .accepts_from(own, self.live.load(Ordering::Relaxed), Tolerance::Some)
    }
}

impl HandoffQueue {
    /// Whether a core with `live` connections takes one of a core with `own`. Connections that it has not accepted yet
    /// count as well: it may have had no CPU since they arrived.
    fn accepts_from(&self, own: usize, live: usize, tolerance: Tolerance) -> bool {
        let here = |listener| live + self.handed.len() + tcp_info::waiting(listener);
        self.listener
            .is_some_and(|listener| tolerance.is_exceeded(own, here(listener)))
    }
}

impl Tolerance {
    fn is_exceeded(self, own: usize, other: usize) -> bool {
        match self {
            Tolerance::Some => own > IMBALANCE_MIN + other + other / IMBALANCE_DIVISOR,
            Tolerance::One => own > other + 1,
        }
    }
}
