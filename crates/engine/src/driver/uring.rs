//! The io_uring driver: multishot accept and receive, provided buffers, batched submission.
//!
//! A multishot receive is armed once for many messages, and it has no bound of its own: one run of it takes 33 buffers
//! from a socket that has bytes for them, before the first completion is seen. Since Linux 6.17 it can be given a number
//! of bytes after which it ends, and is what sockets with small messages get. Bulk, and everything on older kernels, is
//! received one buffer at a time, when somebody asks for it.
//!
//! Everything the kernel may still read or write is owned here or in the socket's slot, and a slot is reused only when
//! no operation of it is in flight: memory outlives every use of it, whatever tasks do with their handles.

mod provided;

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use super::{Event, Look};
use crate::buffer::{Buffer, Pool};
use crate::clock::{self, Instant};
use crate::error::{Error, Kind, Op};
use crate::limits::{
    BUFFER_BYTES, BULK_ENDS_AFTER, COMPLETION_ENTRIES, MULTISHOT_BYTES, PARTS_PER_SEND,
    RECEIVED_MAX, SEND_BYTES_MAX, SUBMISSION_ENTRIES,
};
use crate::outgoing::{Part, Queue};
use crate::socket::{Key, Socket, Sockets};
use crate::task::Tasks;

use provided::Provided;

/// What one socket has in flight, and what came back for it.
#[derive(Default)]
pub(crate) struct InFlight {
    /// Operations whose last completion has not been seen. The slot may be reused only at zero.
    pub(crate) operations: u8,
    /// A receive or accept is armed.
    pub(crate) armed: bool,
    /// The accept that is armed stays so.
    pub(crate) accepts_many: bool,
    /// Short receives to come until the socket counts as one of small messages again.
    bulk: u8,
    /// The armed receive has been asked to end.
    pub(crate) cancelling: bool,
    /// A send is in flight; the parts at the front of `outgoing` belong to the kernel.
    pub(crate) sending: bool,
    /// A wait for writability is in flight.
    pub(crate) polling: bool,
    /// A wait for readability is in flight.
    pub(crate) polling_readable: bool,
    /// A multishot wait for the end of both directions is in flight.
    pub(crate) polling_hangup: bool,
    pub(crate) received: Queue<Buffer>,
    /// The peer has ended its side, or the receive failed.
    pub(crate) end: Option<Result<(), Errno>>,
    /// Message header and vector of a send of several parts. Stays where it is while one is in flight.
    message: Option<Box<Message>>,
    /// Accepted by a listener, not taken yet.
    pub(crate) accepted: Queue<Result<OwnedFd, Errno>>,
}

impl InFlight {
    /// Learns from a receive what the socket is used for.
    pub(crate) fn note_length(&mut self, is_full: bool) {
        self.bulk = if is_full {
            BULK_ENDS_AFTER
        } else {
            self.bulk.saturating_sub(1)
        };
    }

    /// Whether an operation is in flight that a reset completes.
    pub(crate) fn hears_of_end(&self) -> bool {
        self.polling_hangup || (self.armed && !self.cancelling)
    }

    /// Whether the connection has ended, failed, or received something unasked.
    pub(crate) fn is_spent(&self) -> bool {
        self.end.is_some() || !self.received.is_empty()
    }
}

/// How many connections an accept takes until it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Accepts {
    One,
    Many,
}

/// What sendmsg(2) reads; pinned in its box while the operation is in flight.
struct Message {
    header: libc::msghdr,
    vector: [libc::iovec; PARTS_PER_SEND],
}

/// Which operation of a socket a completion belongs to: the upper half of its user data.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum Operation {
    Accept = 1,
    Recv = 2,
    Send = 3,
    PollWritable = 4,
    Cancel = 5,
    Wake = 6,
    PollReadable = 7,
    PollHangup = 8,
}

fn user_data(operation: Operation, key: Key) -> u64 {
    (operation as u64) << 32 | u64::from(key.0)
}

fn split(user_data: u64) -> (Operation, Key) {
    let operation = match (user_data >> 32) as u32 {
        1 => Operation::Accept,
        2 => Operation::Recv,
        3 => Operation::Send,
        4 => Operation::PollWritable,
        5 => Operation::Cancel,
        6 => Operation::Wake,
        7 => Operation::PollReadable,
        8 => Operation::PollHangup,
        other => unreachable!("no operation has the number {other}"),
    };
    (operation, Key(user_data as u32))
}

/// What a ring of this kernel is worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Speed {
    Full,
    /// Without multishot receives.
    Reduced,
}

pub(crate) struct Ring {
    ring: IoUring,
    wake: OwnedFd,
    buffers: Provided,
    /// Whether a multishot receive can be bounded.
    multishot: bool,
    /// When the ring was last entered.
    entered: Instant,
    /// Completions of one turn, between reaping and acting.
    reaped: Vec<(u64, i32, u32)>,
}

impl Ring {
    pub(crate) fn new() -> Result<Self, Error> {
        Self::open().map_err(|errno| Error::os(Op::Start, errno))
    }

    /// Whether a ring with all that we need can be had here, and if so, whether it has all that makes it fast.
    pub(crate) fn probe() -> Result<Speed, Errno> {
        let ring = Self::open()?;
        Ok(if ring.multishot {
            Speed::Full
        } else {
            Speed::Reduced
        })
    }

    fn open() -> Result<Self, Errno> {
        // SINGLE_ISSUER and DEFER_TASKRUN came with 6.0 and 6.1; multishot receive and buffer rings are older, so a
        // kernel that takes these flags has everything.
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            // Says when deferred work waits, so that a look without waiting runs it too.
            .setup_taskrun_flag()
            .setup_submit_all()
            .setup_clamp()
            .setup_cqsize(COMPLETION_ENTRIES)
            .build(SUBMISSION_ENTRIES)
            .map_err(errno)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        // Last: nothing may fail behind it, since its memory is freed after the ring is closed and not before.
        let buffers = Provided::register(&ring)?;
        let mut ring = Self {
            ring,
            wake,
            buffers,
            multishot: false,
            entered: Instant::default(),
            reaped: Vec::with_capacity(COMPLETION_ENTRIES as usize),
        };
        ring.multishot = ring.bounds_multishot()?;
        ring.arm_wake();
        Ok(ring)
    }

    /// Tries a bounded multishot receive on no socket. Where bounds are unknown, they are what is refused first.
    fn bounds_multishot(&mut self) -> Result<bool, Errno> {
        self.push(recv_multishot(Fd(-1)));
        while let Err(errno) = self.ring.submit_and_wait(1).map_err(errno) {
            if errno != Errno::INTR {
                return Err(errno);
            }
        }
        let completion = self.ring.completion().next();
        let refused = completion.map(|entry| outcome(entry.result()));
        Ok(refused == Some(Err(Errno::BADF)))
    }

    pub(crate) fn wake_descriptor(&self) -> &OwnedFd {
        &self.wake
    }

    fn arm_wake(&mut self) {
        let entry = opcode::PollAdd::new(Fd(self.wake.as_raw_fd()), libc::POLLIN as u32)
            .multi(true)
            .build();
        self.push(entry.user_data(user_data(Operation::Wake, Key(0))));
    }

    /// Queues an entry; a full queue is submitted first.
    fn push(&mut self, entry: squeue::Entry) {
        loop {
            // SAFETY: the descriptors and memory that entries of this module name stay valid until their completion:
            // descriptors live in slots with `operations > 0`, memory in `outgoing`, `Message` and `Provided`.
            if unsafe { self.ring.submission().push(&entry) }.is_ok() {
                return;
            }
            match self.ring.submit() {
                Ok(_) => {}
                Err(error) => match errno(error) {
                    Errno::INTR | Errno::AGAIN | Errno::BUSY => {}
                    errno => panic!("io_uring_enter: {errno}"),
                },
            }
        }
    }

    /// Receives into provided buffers.
    ///
    /// # Errors
    /// When all buffers of the core are with its tasks: the receive would fail, and be armed again, over and over.
    pub(crate) fn arm_recv(
        &mut self,
        key: Key,
        socket: &mut Socket,
        pool: &Pool,
    ) -> Result<(), Error> {
        if !self.buffers.can_take(pool) {
            return Err(Error::new(Op::Buffer, Kind::NoBuffers));
        }
        let descriptor = Fd(socket.descriptor().as_raw_fd());
        let entry = if self.multishot && socket.ring.bulk == 0 {
            recv_multishot(descriptor)
        } else {
            recv_once(descriptor)
        };
        self.push(entry.user_data(user_data(Operation::Recv, key)));
        socket.ring.armed = true;
        socket.ring.operations += 1;
        Ok(())
    }

    pub(crate) fn arm_accept(&mut self, key: Key, socket: &mut Socket, accepts: Accepts) {
        let descriptor = Fd(socket.descriptor().as_raw_fd());
        let entry = match accepts {
            Accepts::Many => opcode::AcceptMulti::new(descriptor)
                .flags(libc::SOCK_CLOEXEC)
                .build(),
            Accepts::One => {
                opcode::Accept::new(descriptor, std::ptr::null_mut(), std::ptr::null_mut())
                    .flags(libc::SOCK_CLOEXEC)
                    .build()
            }
        };
        socket.ring.accepts_many = accepts == Accepts::Many;
        self.push(entry.user_data(user_data(Operation::Accept, key)));
        socket.ring.armed = true;
        socket.ring.operations += 1;
    }

    pub(crate) fn poll_writable(&mut self, key: Key, socket: &mut Socket) {
        let entry =
            opcode::PollAdd::new(Fd(socket.descriptor().as_raw_fd()), libc::POLLOUT as u32).build();
        self.push(entry.user_data(user_data(Operation::PollWritable, key)));
        socket.ring.polling = true;
        socket.ring.operations += 1;
    }

    pub(crate) fn poll_readable(&mut self, key: Key, socket: &mut Socket) {
        let events = libc::POLLIN | libc::POLLPRI;
        let entry =
            opcode::PollAdd::new(Fd(socket.descriptor().as_raw_fd()), events as u32).build();
        self.push(entry.user_data(user_data(Operation::PollReadable, key)));
        socket.ring.polling_readable = true;
        socket.ring.operations += 1;
    }

    /// Waits for the end of both directions, as often as the kernel has something to say about it: a half-close, too,
    /// which it reports whether asked or not.
    pub(crate) fn poll_hangup(&mut self, key: Key, socket: &mut Socket) {
        let entry = opcode::PollAdd::new(Fd(socket.descriptor().as_raw_fd()), 0)
            .multi(true)
            .build();
        self.push(entry.user_data(user_data(Operation::PollHangup, key)));
        socket.ring.polling_hangup = true;
        socket.ring.operations += 1;
    }

    /// Sends what stands in `outgoing`, which must not be empty nor be in flight already.
    pub(crate) fn send(&mut self, key: Key, socket: &mut Socket) {
        debug_assert!(!socket.ring.sending && !socket.outgoing.is_empty());
        let descriptor = Fd(socket.descriptor().as_raw_fd());
        let entry = if socket.outgoing.len() == 1 {
            let bytes = socket.outgoing.first_mut().expect("not empty").bytes();
            let length = bytes.len().min(SEND_BYTES_MAX);
            // What is left goes with the next send, as behind every short one.
            opcode::Send::new(descriptor, bytes.as_ptr(), length as u32)
                .flags(libc::MSG_NOSIGNAL)
                .build()
        } else {
            // Filled in where it stays: moving a box ends the right to use addresses within it.
            let message = socket.ring.message.get_or_insert_with(Message::empty);
            opcode::SendMsg::new(descriptor, message.fill(&socket.outgoing))
                .flags(libc::MSG_NOSIGNAL as u32)
                .build()
        };
        self.push(entry.user_data(user_data(Operation::Send, key)));
        socket.ring.sending = true;
        socket.written = Instant::default();
        socket.ring.operations += 1;
    }

    fn cancel(&mut self, operation: Operation, key: Key) {
        let entry =
            opcode::AsyncCancel2::new(CancelBuilder::user_data(user_data(operation, key))).build();
        // Its own completion says nothing that the cancelled operation's does not say.
        self.push(entry.user_data(user_data(Operation::Cancel, key)));
    }

    pub(crate) fn cancel_recv(&mut self, key: Key, socket: &mut Socket) {
        if socket.ring.armed && !socket.ring.cancelling {
            socket.ring.cancelling = true;
            self.cancel(Operation::Recv, key);
        }
    }

    /// Ends the accept that is armed; what it has taken from the queue still arrives.
    pub(crate) fn cancel_accept(&mut self, key: Key, socket: &mut Socket) {
        if socket.ring.armed && !socket.ring.cancelling {
            socket.ring.cancelling = true;
            self.cancel(Operation::Accept, key);
        }
    }

    /// Cancels whatever the socket waits for but the send of what stands in `outgoing`; the completions still arrive. As
    /// long as one of them is to come the slot stays, and with it the connection.
    pub(crate) fn cancel_waits(&mut self, key: Key, socket: &mut Socket) {
        self.cancel_recv(key, socket);
        let ring = &socket.ring;
        for (in_flight, operation) in [
            (ring.armed, Operation::Accept),
            (ring.polling, Operation::PollWritable),
            (ring.polling_readable, Operation::PollReadable),
            (ring.polling_hangup, Operation::PollHangup),
        ] {
            if in_flight {
                self.cancel(operation, key);
            }
        }
    }

    /// Cancels everything the socket has in flight; its completions still arrive.
    pub(crate) fn cancel_all(&mut self, key: Key, socket: &mut Socket) {
        self.cancel_waits(key, socket);
        if socket.ring.sending {
            self.cancel(Operation::Send, key);
        }
    }

    /// Submits what is queued, waits until something happens or `timeout` has passed, and acts on what completed.
    /// `now` is when that begins: the moment at which the kernel is handed what is queued.
    pub(crate) fn turn(
        &mut self,
        now: Instant,
        timeout: Option<Duration>,
        sockets: &mut Sockets,
        tasks: &Tasks,
        pool: &Rc<Pool>,
        events: &mut Vec<Event>,
    ) -> Look {
        self.buffers.replenish(pool);
        self.entered = now;
        let look = self.enter(timeout);
        if look == Look::Interrupted {
            // What has happened until then is asked for without a wait.
            self.enter(Some(Duration::ZERO));
        }
        let mut reaped = std::mem::take(&mut self.reaped);
        let completions = self.ring.completion();
        reaped.extend(completions.map(|entry| (entry.user_data(), entry.result(), entry.flags())));
        for &(user_data, result, flags) in &reaped {
            let (operation, key) = split(user_data);
            match operation {
                Operation::Cancel => {}
                Operation::Wake => {
                    let mut count = [0; 8];
                    // A multishot poll may report one wish twice: the second read then finds nothing.
                    let _ = rustix::io::read(&self.wake, &mut count);
                    if !cqueue::more(flags) {
                        self.arm_wake();
                    }
                    events.push(Event::Wake);
                }
                _ => self.complete(operation, key, result, flags, sockets, tasks, pool),
            }
        }
        reaped.clear();
        self.reaped = reaped;
        look
    }

    fn enter(&mut self, timeout: Option<Duration>) -> Look {
        let (want, timeout) = match timeout {
            Some(Duration::ZERO) => (0, Some(Duration::ZERO)),
            timeout => (1, timeout),
        };
        let submitter = self.ring.submitter();
        let outcome = match timeout {
            Some(timeout) => {
                let timeout = Timespec::new()
                    .sec(timeout.as_secs())
                    .nsec(timeout.subsec_nanos());
                submitter.submit_with_args(want, &SubmitArgs::new().timespec(&timeout))
            }
            None => submitter.submit_and_wait(want),
        };
        match outcome {
            Ok(_) => {}
            Err(error) => match errno(error) {
                Errno::INTR => return Look::Interrupted,
                // Nothing came in time, the kernel wants its completions reaped first, or it has no memory for more
                // requests: what is queued stays so, in its order.
                Errno::TIME | Errno::BUSY | Errno::AGAIN => {}
                // EBADR among them: the queue of completions was full and there was no memory to keep one
                // (io_uring_enter(2)). Which operation has ended is not known then, and its memory would never be.
                errno => panic!("io_uring_enter: {errno}"),
            },
        }
        let submission = self.ring.submission();
        match submission.taskrun() || submission.cq_overflow() {
            true => Look::Filled,
            false => Look::Whole,
        }
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "a completion (4) and where it goes (3); a struct would only rename them"
    )]
    fn complete(
        &mut self,
        operation: Operation,
        key: Key,
        result: i32,
        flags: u32,
        sockets: &mut Sockets,
        tasks: &Tasks,
        pool: &Rc<Pool>,
    ) {
        let socket = &mut sockets[key];
        if !cqueue::more(flags) {
            socket.ring.operations -= 1;
        }
        match operation {
            Operation::Recv => self.complete_recv(key, result, flags, socket, tasks, pool),
            Operation::Accept => {
                socket.ring.armed &= cqueue::more(flags);
                socket.ring.cancelling &= socket.ring.armed;
                // SAFETY: a non-negative result of accept is a new descriptor that nobody else owns.
                socket
                    .ring
                    .accepted
                    .push(outcome(result).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
                tasks.wake_once(&mut socket.recv_waiter);
            }
            Operation::Send => {
                socket.ring.sending = false;
                socket.written = self.entered;
                match outcome(result) {
                    Ok(count) => {
                        socket.outgoing.consume(count as usize);
                        if !socket.outgoing.is_empty() {
                            socket.renew_deadline(clock::now());
                        }
                    }
                    Err(Errno::INTR | Errno::AGAIN) => {}
                    Err(errno) => {
                        socket.send_failed = Some(errno);
                        socket.outgoing.clear();
                    }
                }
                if socket.closing && socket.timed_out {
                    // Part of it was sent just before it was cancelled; the rest has no time left.
                    socket.outgoing.clear();
                }
                if !socket.outgoing.is_empty() {
                    self.send(key, socket);
                } else {
                    tasks.wake_once(&mut socket.send_waiter);
                }
            }
            Operation::PollWritable => {
                socket.ring.polling = false;
                socket.writable = true;
                tasks.wake_once(&mut socket.send_waiter);
            }
            Operation::PollReadable => {
                socket.ring.polling_readable = false;
                socket.readable = true;
                let urgent = i32::from(libc::POLLPRI);
                socket.urgent |= outcome(result).is_ok_and(|events| events & urgent != 0);
                tasks.wake_once(&mut socket.recv_waiter);
            }
            Operation::PollHangup => {
                socket.ring.polling_hangup = cqueue::more(flags);
                socket.hear_of_end(outcome(result), tasks);
            }
            Operation::Cancel | Operation::Wake => unreachable!("not of a socket"),
        }
        if sockets[key].closing && sockets[key].ring.operations == 0 {
            sockets.remove(key);
        }
    }

    fn complete_recv(
        &mut self,
        key: Key,
        result: i32,
        flags: u32,
        socket: &mut Socket,
        tasks: &Tasks,
        pool: &Rc<Pool>,
    ) {
        if !cqueue::more(flags) {
            socket.ring.armed = false;
            socket.ring.cancelling = false;
        }
        // A buffer comes back whenever the kernel has taken one, even with an error.
        let buffer = cqueue::buffer_select(flags).map(|id| self.buffers.take(id, pool));
        match (outcome(result), buffer) {
            (Ok(0), _) => socket.ring.end = Some(Ok(())),
            (Ok(count), Some(mut buffer)) => {
                buffer.fill(count as usize);
                socket.readable = buffer.room() == 0;
                socket.ring.note_length(socket.readable);
                socket.ring.received.push(buffer);
                if socket.ring.received.len() >= RECEIVED_MAX {
                    self.cancel_recv(key, socket);
                }
            }
            (Ok(_), None) => unreachable!("bytes were received into no buffer"),
            // Out of provided buffers, or cancelled for back-pressure: the next wait arms it again.
            (Err(Errno::NOBUFS | Errno::CANCELED | Errno::INTR | Errno::AGAIN), _) => {}
            (Err(errno), _) => socket.ring.end = Some(Err(errno)),
        }
        tasks.wake_once(&mut socket.recv_waiter);
        if !socket.ring.armed {
            // It has failed, or hears of nothing any more.
            tasks.wake_once(&mut socket.hangup_waiter);
        }
    }

    /// Ends all operations and waits until the kernel has let go of all memory. The tasks are gone already.
    pub(crate) fn shut_down(&mut self, sockets: &mut Sockets, tasks: &Tasks, pool: &Rc<Pool>) {
        let in_flight: Vec<u32> = sockets
            .iter_mut()
            .enumerate()
            .filter(|(_, socket)| socket.ring.operations > 0)
            .map(|(index, _)| index as u32)
            .collect();
        for index in in_flight {
            let socket = &mut sockets[Key(index)];
            socket.closing = true;
            socket.timed_out = true;
            self.cancel_all(Key(index), socket);
        }
        let mut events = Vec::new();
        while sockets.iter_mut().any(|socket| socket.ring.operations > 0) {
            self.turn(
                clock::now(),
                Some(Duration::from_millis(10)),
                sockets,
                tasks,
                pool,
                &mut events,
            );
        }
    }
}

fn recv_once(descriptor: Fd) -> squeue::Entry {
    opcode::Recv::new(descriptor, std::ptr::null_mut(), BUFFER_BYTES as u32)
        .buf_group(Provided::GROUP)
        .build()
        .flags(squeue::Flags::BUFFER_SELECT)
}

/// A multishot receive that ends by itself after [`MULTISHOT_BYTES`], with the receive that completes them.
fn recv_multishot(descriptor: Fd) -> squeue::Entry {
    /// Where `struct io_uring_sqe` has the field `optlen`, which the io-uring crate has no name for.
    const OPTLEN: usize = 44;
    const { assert!(size_of::<squeue::Entry>() == 64 && align_of::<squeue::Entry>() == 8) };
    let mut entry = opcode::RecvMulti::new(descriptor, Provided::GROUP).build();
    let optlen = (&raw mut entry)
        .cast::<u8>()
        .wrapping_add(OPTLEN)
        .cast::<u32>();
    // SAFETY: four aligned bytes within the entry, which is that C structure, initialised, and nothing but integers.
    unsafe { optlen.write(MULTISHOT_BYTES) };
    entry
}

impl Message {
    fn empty() -> Box<Message> {
        // SAFETY: msghdr and iovec are C structures of integers and pointers, for which all zeros is a value.
        Box::new(unsafe { std::mem::zeroed::<Message>() })
    }

    /// Makes it speak of the first parts of `outgoing`, which it does not own, and returns the header, which is valid
    /// as long as the message stays in its box and is not touched.
    fn fill(&mut self, outgoing: &Queue<Part>) -> *const libc::msghdr {
        let mut count = 0;
        for (slot, part) in self.vector.iter_mut().zip(outgoing.iter()) {
            let bytes = part.bytes();
            slot.iov_base = bytes.as_ptr().cast_mut().cast();
            slot.iov_len = bytes.len();
            count += 1;
        }
        self.header.msg_iov = self.vector.as_mut_ptr();
        self.header.msg_iovlen = count;
        &raw const self.header
    }
}

fn errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

/// A completion's result: a count or descriptor, or a negated error number.
fn outcome(result: i32) -> Result<i32, Errno> {
    if result < 0 {
        Err(Errno::from_raw_os_error(-result))
    } else {
        Ok(result)
    }
}
