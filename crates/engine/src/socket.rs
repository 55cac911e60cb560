//! The core's table of sockets: the state of each, its waiting tasks, and its operations in the kernel.

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
use crate::limits::{
    BULK_BYTES_MIN, BULK_ENDS_AFTER, FILE_JOINED_PACED_MAX, UNSENT_BUDGET_DEFAULT,
};
use crate::socket::in_flight::InFlight;
use crate::socket::peer::Peer;
use crate::system::allowance::Allowance;
use crate::task::id::TaskId;
use crate::timer::TimerId;

use expiry::Expiry;
use key::Key;
use note::{CoarseInstant, Note};
use unsent::{Extra, UnsentBound};

/// How much of a connection has ended, as far as the kernel has reported it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Ended {
    No,
    /// The peer sends no more; it may still read.
    PeerSide,
    /// Both directions: it was reset, it failed, or both ends have shut down (poll(2): POLLERR, POLLHUP).
    HungUp,
}

/// Data that the kernel returns with a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum ReceiveExtras {
    /// The sender's address.
    #[default]
    Address,
    /// The sender's address and control messages (cmsg(3)).
    Control,
}

/// State of bytes whose flush has returned, if the core performs sends itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Deferred {
    /// There are none.
    #[default]
    Idle,
    /// The bytes are sent just before the next poll of the kernel.
    Due,
    /// The socket has taken a part; the rest is sent when it is writable, whether a task waits for that or not.
    Blocked,
}

pub(crate) struct Socket {
    /// `None` for simulated sockets and unused slots.
    pub(crate) descriptor: Option<OwnedFd>,
    /// Readiness as last reported: false means that the next call would return EAGAIN. With io_uring it is known only
    /// right after a call: a receive that filled its buffer has left the socket readable.
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// As last reported. After an end, a short receive does not mean that the socket is empty.
    pub(crate) ended: Ended,
    /// Urgent bytes have arrived: a receive stops before one although more follow, and a splice cannot pass it
    /// (tcp(7)).
    pub(crate) urgent: bool,
    /// The core busy-polls: the next receive was not triggered by a report. Of datagrams only one is expected.
    pub(crate) is_direct_receive: bool,
    pub(crate) receive_extras: ReceiveExtras,
    /// Short receives until the socket no longer counts as bulk.
    pub(crate) bulk: u8,
    /// The deadline passed and no operation has reported it yet.
    pub(crate) timed_out: bool,
    /// Whether the task in `recv_waiter` is woken when the core stops.
    pub(crate) interruptible: bool,
    /// Its interruptible waits must end: of a connection to make room, of a listener because it ends.
    pub(crate) is_unwanted: bool,
    /// The handle was dropped; the slot stays until the kernel has returned everything.
    pub(crate) closing: bool,
    /// The close will be a reset, which waits for no last send.
    pub(crate) resets_on_close: bool,
    pub(crate) recv_waiter: TaskId,
    pub(crate) send_waiter: TaskId,
    pub(crate) hangup_waiter: TaskId,
    pub(crate) deadline: Option<Instant>,
    /// Milliseconds by which each progress of a send moves the deadline; 0 if it does not move.
    pub(crate) patience: u32,
    /// Invariant: at most one timer per socket; it may be earlier than the deadline, never later.
    pub(crate) timer: Option<(TimerId, Expiry)>,
    pub(crate) outgoing: Queue<Part>,
    pub(crate) deferred: Deferred,
    /// Whether the peer opened the connection.
    pub(crate) is_accepted: bool,
    /// Sequence number of an accepted connection; in an unused slot, the next unused slot.
    pub(crate) number: u32,
    pub(crate) accepted_at: CoarseInstant,
    /// The owner's [`Note`], as three fields, which leaves no padding.
    pub(crate) note_count: u32,
    pub(crate) note_kind: u16,
    pub(crate) note_state: u8,
    /// When the kernel was given the bytes sent last; the clock's origin if unknown, in progress or not recorded.
    pub(crate) written: Instant,
    /// State of the unsent bound, for a client that does not take bulk data at once.
    pub(crate) unsent: Option<Box<UnsentBound>>,
    /// Whether the kernel can discard received bytes: TCP connections that this side opened.
    pub(crate) can_discard: bool,
    /// Error of a send that no task waited for; the next call reports it.
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
            is_direct_receive: false,
            receive_extras: ReceiveExtras::Address,
            bulk: 0,
            timed_out: false,
            interruptible: false,
            is_unwanted: false,
            closing: false,
            resets_on_close: false,
            recv_waiter: TaskId::NONE,
            send_waiter: TaskId::NONE,
            hangup_waiter: TaskId::NONE,
            deadline: None,
            patience: 0,
            timer: None,
            outgoing: Queue::default(),
            deferred: Deferred::Idle,
            is_accepted: false,
            number: NONE,
            accepted_at: CoarseInstant::default(),
            note_count: 0,
            note_kind: 0,
            note_state: 0,
            written: Instant::default(),
            unsent: None,
            can_discard: false,
            send_failed: None,
            ring: InFlight::default(),
            simulated: None,
        }
    }

    /// Whether bytes whose flush has returned are not sent yet.
    pub(crate) fn is_sending(&self) -> bool {
        self.ring.sending || self.deferred != Deferred::Idle
    }

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

    /// Whether a task or bytes wait for writability.
    pub(crate) fn is_blocked(&self) -> bool {
        self.send_waiter != TaskId::NONE || self.deferred == Deferred::Blocked
    }

    /// The peer's TCP address; see [`Stream::peer`](crate::Stream::peer).
    pub(crate) fn peer(&self, key: Key) -> Option<SocketAddr> {
        if let Some(end) = &self.simulated {
            let address = end.peer_address().unwrap_or([127, 0, 0, 1].into());
            return Some((address, 1024_u16.wrapping_add(key.0 as u16)).into());
        }
        let descriptor = self.descriptor.as_ref()?;
        SocketAddr::try_from(getpeername(descriptor).ok()??).ok()
    }

    #[inline]
    pub(crate) fn note_length(&mut self, count: usize) {
        self.bulk = match count {
            BULK_BYTES_MIN.. => BULK_ENDS_AFTER,
            _ => self.bulk.saturating_sub(1),
        };
    }

    /// Records that the peer has taken `count` bytes, and moves the deadline.
    #[inline]
    pub(crate) fn note_taken(&mut self, count: u64, now: Instant) {
        self.count_taken(count);
        self.renew_deadline(now);
    }

    /// [`Socket::note_taken`] without moving the deadline, if no task waits for the next bytes to be taken.
    #[inline]
    pub(crate) fn count_taken(&mut self, count: u64) {
        if let Some(unsent) = &mut self.unsent {
            unsent.note_taken(count);
        }
    }

    fn renew_deadline(&mut self, now: Instant) {
        if self.patience > 0 {
            self.deadline = Some(now + Duration::from_millis(self.patience.into()));
        }
    }

    /// # Panics
    /// For simulated sockets, which have no descriptor.
    pub(crate) fn descriptor(&self) -> &OwnedFd {
        self.descriptor
            .as_ref()
            .expect("only kernel drivers ask, and their sockets have one")
    }
}

/// Behaviour of a blocking call on a descriptor: wait or fail with EAGAIN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BlockingMode {
    Wait,
    Fail,
}

pub(crate) fn set_blocking_mode(descriptor: &OwnedFd, calls: BlockingMode) -> Result<(), Errno> {
    ioctl_fionbio(descriptor, calls == BlockingMode::Fail)
}

/// Sets the unsent bytes that the kernel may hold for the peer. Unix sockets have no such option; the error is ignored.
fn set_unsent(descriptor: &OwnedFd, bytes: u32) {
    let (level, option) = (libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT);
    let _ = option::set_option(descriptor, level, option, bytes.cast_signed());
}

const NONE: u32 = u32::MAX;

pub(crate) struct Sockets {
    slots: Vec<Socket>,
    unused: u32,
    /// Number of connections accepted so far, modulo 2^32.
    pub(crate) accepted: u32,
    pub(crate) allowance: Option<Arc<Allowance>>,
    /// Number of open accepted connections, if other cores need it; includes those accepted by the ring.
    pub(crate) live: Option<Arc<AtomicUsize>>,
    /// Budget of unsent bytes.
    pub(crate) extra: Extra,
    /// Largest file that is sent in one packet with its head.
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
            extra: Extra::new(UNSENT_BUDGET_DEFAULT),
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

    pub(crate) fn remove(&mut self, key: Key) {
        if self[key].is_accepted {
            if let Some(allowance) = &self.allowance {
                allowance.give_back();
            }
            self.uncount_live();
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

    /// A shared counter of open accepted connections, kept up to date from now on.
    pub(crate) fn live_counter(&mut self) -> Arc<AtomicUsize> {
        let accepted = self.slots.iter().filter(|socket| socket.is_accepted);
        let count = || Arc::new(AtomicUsize::new(accepted.count()));
        Arc::clone(self.live.get_or_insert_with(count))
    }

    pub(crate) fn count_live(&self) {
        if let Some(live) = &self.live {
            // Relaxed: only this core changes the counter, and it guards no other memory.
            live.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn uncount_live(&self) {
        if let Some(live) = &self.live {
            // Relaxed, as in `count_live`.
            live.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// A send to a client has to wait: adjusts the bound on its unsent bytes in the kernel.
    pub(crate) fn note_wait(&mut self, key: Key, now: Instant) {
        let socket = &mut self.slots[key.0 as usize];
        match &mut socket.unsent {
            Some(unsent) => {
                if let Some(bound) = unsent.bound_due(now, &mut self.extra) {
                    set_unsent(socket.descriptor(), bound);
                }
            }
            None if socket.is_accepted && socket.simulated.is_none() => {
                socket.unsent = Some(Box::new(UnsentBound::new(now)));
            }
            None => {}
        }
    }

    /// Adapts to the congestion control that connections inherit (tcp(7)): with BBR only short files are joined.
    pub(crate) fn note_listener(&mut self, listener: Key) {
        let descriptor = self[listener].descriptor.as_ref();
        let congestion = descriptor.and_then(|descriptor| tcp_congestion(descriptor).ok());
        if congestion.is_some_and(|name| name.starts_with("bbr")) {
            self.joined_max = FILE_JOINED_PACED_MAX;
        }
    }

    /// Number of slots, including unused ones: an upper bound on the number of sockets.
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
