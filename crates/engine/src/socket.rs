//! The core's table of sockets: what each is doing, who waits for it, and what the kernel still holds for it.

pub(crate) mod batch;
pub(crate) mod control;
pub(crate) mod expiry;
pub(crate) mod filter;
pub(crate) mod headers;
pub(crate) mod in_flight;
pub(crate) mod key;
pub(crate) mod message;
pub(crate) mod note;
pub(crate) mod option;
pub(crate) mod peer;
pub(crate) mod tcp_info;
pub(crate) mod unsent;

use std::net::SocketAddr;
use std::ops::{Index, IndexMut};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{getpeername, sockopt::tcp_congestion};

use crate::buffers::outgoing::{Part, Queue};
use crate::clock::Instant;
use crate::limits::{BULK_BYTES_MIN, BULK_ENDS_AFTER, FILE_JOINED_PACED_MAX, UNSENT_EXTRA_USUAL};
use crate::socket::in_flight::InFlight;
use crate::socket::peer::Peer;
use crate::system::allowance::Allowance;
use crate::task::id::TaskId;
use crate::timer::TimerId;

use expiry::Expiry;
use key::Key;
use note::{Coarse, Note};
use unsent::{Extra, Unsent};

/// How much of a connection is over, as far as the kernel has said so.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Ended {
    No,
    /// The peer sends no more; it may go on reading.
    PeerSide,
    /// Both directions: it was reset, it failed, or both ends have ended theirs (poll(2): POLLERR, POLLHUP).
    HungUp,
}

/// What the kernel says beside the bytes of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Beside {
    /// Who has sent it.
    #[default]
    Address,
    /// That, and control messages (cmsg(3)).
    Control,
}

/// What becomes of bytes whose flush has returned, where the core carries it out itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Deferred {
    /// Nothing does: there are none.
    #[default]
    AtRest,
    /// They leave at the end of the turn.
    Due,
    /// The socket has taken a part; the rest leaves when it is writable, whether somebody waits for that or not.
    Blocked,
}

pub(crate) struct Socket {
    /// `None` for simulated sockets and unused slots.
    pub(crate) descriptor: Option<OwnedFd>,
    /// Readiness as last reported: false means that the next call would say EAGAIN. With io_uring it is known only
    /// right after a call: a receive that filled its buffer has left the socket readable.
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// As last reported: once it has, a short receive does not mean that nothing follows.
    pub(crate) ended: Ended,
    /// Urgent bytes have come, as to hardly any socket: a receive ends before one although more has arrived, and a splice
    /// gets no further (tcp(7)).
    pub(crate) urgent: bool,
    /// The next receive was not called for by anything that was reported: the core busy-polls. One datagram is expected.
    pub(crate) is_asked: bool,
    /// What datagrams come with.
    pub(crate) beside: Beside,
    /// Short receives to come until the socket counts as one of small messages again.
    pub(crate) bulk: u8,
    /// The deadline passed and no operation has reported it yet.
    pub(crate) timed_out: bool,
    /// Whether the task in `recv_waiter` wants to be woken when the core stops.
    pub(crate) interruptible: bool,
    /// It has to end its interruptible waits, since others need its room.
    pub(crate) is_unwanted: bool,
    /// The handle is gone; the slot stays until the kernel has returned everything.
    pub(crate) closing: bool,
    /// The close is to be a reset, which waits for no last send.
    pub(crate) resets: bool,
    pub(crate) recv_waiter: TaskId,
    pub(crate) send_waiter: TaskId,
    pub(crate) hangup_waiter: TaskId,
    pub(crate) deadline: Option<Instant>,
    /// Milliseconds by which every progress of a send moves the deadline; 0 when the deadline stands.
    pub(crate) patience: u32,
    /// Invariant: at most one timer per socket; it may be earlier than the deadline, never later.
    pub(crate) timer: Option<(TimerId, Expiry)>,
    pub(crate) outgoing: Queue<Part>,
    pub(crate) deferred: Deferred,
    /// Whether the other end has connected to us.
    pub(crate) is_accepted: bool,
    /// Of an accepted one its number among those, of an unused slot the next unused one.
    pub(crate) number: u32,
    /// When it was accepted.
    pub(crate) accepted_at: Coarse,
    /// What its owner [notes](crate::Note); three fields, which leave no gap between the others.
    pub(crate) note_count: u32,
    pub(crate) note_kind: u16,
    pub(crate) note_state: u8,
    /// When the kernel was handed what was sent last; the clock's origin before the first send, while one is under way,
    /// and where nobody wants to know.
    pub(crate) written: Instant,
    /// Of a client that does not take bulk at once.
    pub(crate) unsent: Option<Box<Unsent>>,
    /// Whether the kernel can be told to drop what arrives: over TCP, and where we have connected.
    pub(crate) drops: bool,
    /// How a send failed that nobody waited for; the next call says so.
    pub(crate) send_failed: Option<Errno>,
    pub(crate) ring: InFlight,
    pub(crate) simulated: Option<Box<Peer>>,
}

impl Socket {
    pub(crate) fn new(descriptor: Option<OwnedFd>) -> Self {
        Self {
            descriptor,
            readable: false,
            writable: false,
            ended: Ended::No,
            urgent: false,
            is_asked: false,
            beside: Beside::Address,
            bulk: 0,
            timed_out: false,
            interruptible: false,
            is_unwanted: false,
            closing: false,
            resets: false,
            recv_waiter: TaskId::NONE,
            send_waiter: TaskId::NONE,
            hangup_waiter: TaskId::NONE,
            deadline: None,
            patience: 0,
            timer: None,
            outgoing: Queue::default(),
            deferred: Deferred::AtRest,
            is_accepted: false,
            number: NONE,
            accepted_at: Coarse::default(),
            note_count: 0,
            note_kind: 0,
            note_state: 0,
            written: Instant::default(),
            unsent: None,
            drops: false,
            send_failed: None,
            ring: InFlight::default(),
            simulated: None,
        }
    }

    /// Whether bytes whose flush has returned are still here.
    pub(crate) fn is_sending(&self) -> bool {
        self.ring.sending || self.deferred != Deferred::AtRest
    }

    /// What its owner has noted.
    pub(crate) fn note(&self) -> Note {
        Note {
            count: self.note_count,
            kind: self.note_kind,
            state: self.note_state,
        }
    }

    pub(crate) fn set_note(&mut self, note: Note) {
        self.note_count = note.count;
        self.note_kind = note.kind;
        self.note_state = note.state;
    }

    /// Whether a task or bytes wait until more can be sent.
    pub(crate) fn is_blocked(&self) -> bool {
        self.send_waiter != TaskId::NONE || self.deferred == Deferred::Blocked
    }

    /// The TCP address at the other end: see [`Stream::peer`](crate::Stream::peer).
    pub(crate) fn peer(&self, key: Key) -> Option<SocketAddr> {
        if let Some(end) = &self.simulated {
            let address = end.peer_address().unwrap_or([127, 0, 0, 1].into());
            return Some((address, 1024_u16.wrapping_add(key.0 as u16)).into());
        }
        let descriptor = self.descriptor.as_ref()?;
        SocketAddr::try_from(getpeername(descriptor).ok()??).ok()
    }

    /// Learns from a receive of `count` bytes what the socket is used for.
    #[inline]
    pub(crate) fn note_length(&mut self, count: usize) {
        self.bulk = match count {
            BULK_BYTES_MIN.. => BULK_ENDS_AFTER,
            _ => self.bulk.saturating_sub(1),
        };
    }

    /// The peer has taken `count` bytes.
    #[inline]
    pub(crate) fn note_taken(&mut self, count: u64, now: Instant) {
        self.count_taken(count);
        self.renew_deadline(now);
    }

    /// [`Socket::note_taken`] where nobody waits for the next bytes to be taken.
    #[inline]
    pub(crate) fn count_taken(&mut self, count: u64) {
        if let Some(unsent) = &mut self.unsent {
            unsent.note_taken(count);
        }
    }

    /// Some bytes were sent.
    fn renew_deadline(&mut self, now: Instant) {
        if self.patience > 0 {
            self.deadline = Some(now + Duration::from_millis(self.patience.into()));
        }
    }

    /// The kernel's name of the socket.
    ///
    /// # Panics
    /// For simulated sockets, which the kernel does not know.
    pub(crate) fn descriptor(&self) -> &OwnedFd {
        self.descriptor
            .as_ref()
            .expect("only kernel drivers ask, and their sockets have one")
    }
}

/// What calls on a descriptor do with what they cannot do at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Calls {
    Wait,
    Fail,
}

/// Says what calls on a descriptor do with what they cannot do at once.
pub(crate) fn set_calls(descriptor: &OwnedFd, calls: Calls) -> Result<(), Errno> {
    ioctl_fionbio(descriptor, calls == Calls::Fail)
}

/// Says how much may wait in the kernel until the peer lets it send. For Unix sockets there is no such bound.
fn set_unsent(descriptor: &OwnedFd, bytes: u32) {
    let (level, option) = (libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT);
    let _ = option::set_option(descriptor, level, option, bytes.cast_signed());
}

const NONE: u32 = u32::MAX;

/// All sockets of a core.
pub(crate) struct Sockets {
    slots: Vec<Socket>,
    unused: u32,
    /// How many have been accepted.
    pub(crate) accepted: u32,
    /// Bounds those that were accepted.
    pub(crate) allowance: Option<Arc<Allowance>>,
    /// How many of those there are, where other cores want to know; with those that the kernel has accepted by itself and
    /// nobody has taken.
    pub(crate) live: Option<Arc<AtomicUsize>>,
    /// What may wait for them.
    pub(crate) extra: Extra,
    /// How long a file may be that leaves with its head.
    pub(crate) joined_max: u64,
}

impl Sockets {
    pub(crate) fn new() -> Self {
        Self {
            slots: Vec::new(),
            unused: NONE,
            accepted: 0,
            allowance: None,
            live: None,
            extra: Extra::new(UNSENT_EXTRA_USUAL),
            joined_max: u64::MAX,
        }
    }

    pub(crate) fn insert(&mut self, socket: Socket) -> Key {
        if self.unused == NONE {
            self.slots.push(socket);
            return Key((self.slots.len() - 1) as u32);
        }
        let index = self.unused;
        self.unused = self.slots[index as usize].number;
        self.slots[index as usize] = socket;
        Key(index)
    }

    /// Frees the slot and closes the descriptor.
    pub(crate) fn remove(&mut self, key: Key) {
        if self[key].is_accepted {
            if let Some(allowance) = &self.allowance {
                allowance.give_back();
            }
            self.live_ends();
        }
        let unused = self.unused;
        let slot = &mut self.slots[key.0 as usize];
        if let Some(unsent) = &slot.unsent {
            unsent.give_back(&mut self.extra);
        }
        *slot = Socket::new(None);
        slot.number = unused;
        self.unused = key.0;
    }

    /// The number of accepted connections, which follows them from now on.
    pub(crate) fn counted_live(&mut self) -> Arc<AtomicUsize> {
        let accepted = self.slots.iter().filter(|socket| socket.is_accepted);
        let count = || Arc::new(AtomicUsize::new(accepted.count()));
        Arc::clone(self.live.get_or_insert_with(count))
    }

    /// A connection was accepted.
    pub(crate) fn live_begins(&self) {
        if let Some(live) = &self.live {
            // Only this core changes it, and it guards nothing.
            live.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// One that was is not there any more.
    pub(crate) fn live_ends(&self) {
        if let Some(live) = &self.live {
            // As above.
            live.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// A send to a client has to wait: the bound on what waits for it in the kernel follows.
    pub(crate) fn note_wait(&mut self, key: Key, now: Instant) {
        let socket = &mut self.slots[key.0 as usize];
        match &mut socket.unsent {
            Some(unsent) => {
                if let Some(bound) = unsent.bound_due(now, &mut self.extra) {
                    set_unsent(socket.descriptor(), bound);
                }
            }
            None if socket.is_accepted && socket.simulated.is_none() => {
                socket.unsent = Some(Box::new(Unsent::new(now)));
            }
            None => {}
        }
    }

    /// What connections inherit from this listener (tcp(7)): a congestion control that paces what it has not measured joins
    /// less.
    pub(crate) fn note_listener(&mut self, listener: Key) {
        let descriptor = self[listener].descriptor.as_ref();
        let congestion = descriptor.and_then(|descriptor| tcp_congestion(descriptor).ok());
        if congestion.is_some_and(|name| name.starts_with("bbr")) {
            self.joined_max = FILE_JOINED_PACED_MAX;
        }
    }

    /// Slots, unused ones among them: there are no more sockets than that.
    pub(crate) fn slots(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Socket> {
        self.slots.iter_mut()
    }
}

impl Index<Key> for Sockets {
    type Output = Socket;

    fn index(&self, key: Key) -> &Socket {
        &self.slots[key.0 as usize]
    }
}

impl IndexMut<Key> for Sockets {
    fn index_mut(&mut self, key: Key) -> &mut Socket {
        &mut self.slots[key.0 as usize]
    }
}
