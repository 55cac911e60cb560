//! The listeners that share a TCP address (SO_REUSEPORT), each with a core: which of them the kernel gives a connection to,
//! and which connections they hand each other.
//!
//! ```text
//!   SYN, on the CPU that takes it ──> program: index of that CPU's listener ──> its core accepts
//!                                              no such CPU: by hash                 │ clearly more than another core,
//!                                                                                   │ for a while
//!                                                                                   └────> the other one's desk
//! ```
//! The kernel knows listeners by the order in which they began to listen, and when one closes it moves the last one to its
//! place. So listeners join under a lock, the program is attached when the last one has, and the first one that leaves
//! leaves the choice to the kernel: the program is never wrong about an index.
//!
//! A client's thread may give all its connections to one core. A core with clearly more connections than another one
//! hands a new one over, from queue to queue, before a byte is read (`Place::decide`). Each accept compares with one
//! other core, the next in turn, by one atomic load. A core that stops accepts no connections from others, and
//! accepts those it has been given before it ends.

mod program;

use std::cell::Cell;
use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};

use rustix::io::Errno;

use crate::clock::Instant;
use crate::limits::{UNEVEN_FROM, UNEVEN_SETTLED, UNEVEN_SHARE};
use crate::socket::filter::{Purpose, attach};
use crate::socket::tcp_info;
use crate::system::allowance::Handed;

/// The listeners of one address, one for each core.
#[derive(Debug)]
pub(crate) struct Group {
    /// Of each core, by its number.
    cpus: Vec<usize>,
    forming: Mutex<Forming>,
    /// All of them, once all have joined.
    complete: OnceLock<Vec<Arc<Member>>>,
}

#[derive(Debug, Default)]
struct Forming {
    /// In the order of the kernel.
    joined: Vec<Arc<Member>>,
    /// Why the kernel does not take the program.
    refused: Option<Errno>,
}

/// One listener, as the others see it.
#[derive(Debug)]
pub(crate) struct Member {
    cpu: usize,
    /// Connections that its core has accepted and not closed, by whatever listener.
    live: Arc<AtomicUsize>,
    desk: Mutex<Desk>,
}

/// What others leave for a listener.
#[derive(Debug, Default)]
struct Desk {
    /// The listener's socket. Invariant: it is open as long as it stands here; `None` when nothing is taken any more.
    listener: Option<RawFd>,
    /// Connections that its core is to serve. No more than there are descriptors, and with those in the queue fewer than
    /// the core has that hands one over.
    handed: VecDeque<Handed>,
    /// Its task, when it waits.
    waker: Option<Waker>,
}

/// A listener's place among those of its address. Dropped before the listener is closed.
pub(crate) struct Place {
    group: Arc<Group>,
    member: Arc<Member>,
    /// Whom to compare with next.
    next: Cell<usize>,
    /// Until when connections are handed over at once, since some were after a wait.
    settled_until: Cell<Instant>,
}

/// What becomes of a connection that a core has accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// It stays.
    Kept,
    /// Another core has it.
    HandedOver,
    /// It may be handed over when the core still has clearly more after a while: clients that open connections at the same
    /// time on several CPUs are not in step, and each loses by a connection that is not on its own.
    Undecided,
}

/// How many more connections than another core a core may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Tolerance {
    /// What clients who come to each core's CPU bring about by chance.
    Some,
    /// One: a core has had clearly more for a while, so clients come by its CPU only, and it is the handing over that
    /// makes them even.
    One,
}

/// The connections of another core, beside those of this one.
enum Weighed<'group> {
    Even,
    /// The other one has clearly fewer.
    More(&'group Member),
}

impl Group {
    /// For as many cores as there are `cpus`, each on its own.
    pub(crate) fn new(cpus: Vec<usize>) -> Arc<Self> {
        Arc::new(Self {
            cpus,
            forming: Mutex::default(),
            complete: OnceLock::new(),
        })
    }

    /// Why the kernel does not take the program, if it does not.
    pub(crate) fn refused(&self) -> Option<Errno> {
        self.forming().refused
    }

    /// Lets core number `core`, which has `live` connections, listen by `open`.
    ///
    /// # Errors
    /// Those of `open`. That the kernel refuses the program is none.
    pub(crate) fn join(
        self: &Arc<Self>,
        core: usize,
        live: Arc<AtomicUsize>,
        open: impl FnOnce() -> Result<OwnedFd, Errno>,
    ) -> Result<(OwnedFd, Place), Errno> {
        let mut forming = self.forming();
        let socket = open()?;
        let desk = Desk {
            listener: Some(socket.as_raw_fd()),
            ..Desk::default()
        };
        let member = Arc::new(Member {
            cpu: self.cpus[core],
            live,
            desk: Mutex::new(desk),
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
        // Nothing that runs under the lock can panic and leave half of a change.
        self.forming.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// A connection that another core has handed over; wakes `waker` when there is one.
    pub(crate) fn poll_handed(&self, waker: &Waker) -> Poll<Handed> {
        let mut desk = self.member.desk();
        match desk.handed.pop_front() {
            Some(connection) => Poll::Ready(connection),
            None => {
                desk.waker = Some(waker.clone());
                Poll::Pending
            }
        }
    }

    /// Takes no more of others: what stands on the desk is all that will.
    pub(crate) fn close_desk(&self) {
        self.member.desk().listener = None;
    }

    /// The listener with this `socket` is going to be closed: from now on the kernel chooses by hash for all that are left.
    pub(crate) fn leave(self, socket: &OwnedFd) {
        // Refused, there is none to replace.
        let _ = attach(socket, Purpose::Listener, &mut program::by_hash());
    }

    /// Decides about the connection that this core has just accepted: it goes to another core that has clearly fewer, where
    /// `hand_out` gives it up here. One other is looked at, the next of them each time, so that the price of accepting does
    /// not grow with the number of cores.
    pub(crate) fn decide(&self, now: Instant, hand_out: impl FnOnce() -> Handed) -> Outcome {
        let own = self.member.live.load(Ordering::Relaxed);
        let tolerance = match now < self.settled_until.get() {
            true => Tolerance::One,
            false => Tolerance::Some,
        };
        match self.weigh(own, tolerance) {
            Weighed::Even => Outcome::Kept,
            Weighed::More(other) if tolerance == Tolerance::One => {
                match other.take(own, hand_out) {
                    true => Outcome::HandedOver,
                    false => Outcome::Kept,
                }
            }
            Weighed::More(other) if other.is_far_behind(own) => Outcome::Undecided,
            Weighed::More(_) => Outcome::Kept,
        }
    }

    /// The core has waited with a connection that was [undecided](Outcome::Undecided): the next ones are decided at once.
    pub(crate) fn settle(&self, now: Instant) {
        self.next.set(self.next.get().wrapping_sub(1));
        self.settled_until.set(now + UNEVEN_SETTLED);
    }

    fn weigh(&self, own: usize, tolerance: Tolerance) -> Weighed<'_> {
        let Some(members) = self.group.complete.get() else {
            return Weighed::Even;
        };
        if !tolerance.is_exceeded(own, 0) {
            return Weighed::Even;
        }
        let mut other = self.turn_to_next(members);
        if Arc::ptr_eq(other, &self.member) {
            other = self.turn_to_next(members);
        }
        // Looked at without its lock: nearly always that is all.
        let is_uneven = tolerance.is_exceeded(own, other.live.load(Ordering::Relaxed));
        match is_uneven && !Arc::ptr_eq(other, &self.member) {
            true => Weighed::More(other),
            false => Weighed::Even,
        }
    }

    fn turn_to_next<'group>(&self, members: &'group [Arc<Member>]) -> &'group Arc<Member> {
        let next = self.next.get();
        self.next.set(next.wrapping_add(1));
        &members[next % members.len()]
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut desk = self.member.desk();
        desk.listener = None;
        // Closed as what waits in the queue of a listener that closes. There are none where the desk was closed first and
        // then emptied, which a core that stops does.
        let left = std::mem::take(&mut desk.handed);
        drop(desk);
        drop(left);
    }
}

impl Member {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        // As above.
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a connection of a core that has `own`, if it has fewer itself by more than one.
    fn take(&self, own: usize, hand_out: impl FnOnce() -> Handed) -> bool {
        let mut desk = self.desk();
        if !desk.takes(own, self.live.load(Ordering::Relaxed), Tolerance::One) {
            return false;
        }
        desk.handed.push_back(hand_out());
        let waker = desk.waker.take();
        drop(desk);
        waker.into_iter().for_each(Waker::wake);
        true
    }

    /// Whether it has clearly fewer than `own`.
    fn is_far_behind(&self, own: usize) -> bool {
        self.desk()
            .takes(own, self.live.load(Ordering::Relaxed), Tolerance::Some)
    }
}

impl Desk {
    /// Whether a core with `live` connections takes one of a core with `own`, of which it may have fewer. Those that it has not come to yet count: it may
    /// have had no CPU since they came.
    fn takes(&self, own: usize, live: usize, tolerance: Tolerance) -> bool {
        let here = |listener| live + self.handed.len() + tcp_info::waiting(listener);
        self.listener
            .is_some_and(|listener| tolerance.is_exceeded(own, here(listener)))
    }
}

impl Tolerance {
    /// Whether a core with `own` connections has more than one with `other` may have fewer.
    fn is_exceeded(self, own: usize, other: usize) -> bool {
        match self {
            Tolerance::Some => own > UNEVEN_FROM + other + other / UNEVEN_SHARE,
            Tolerance::One => own > other + 1,
        }
    }
}
