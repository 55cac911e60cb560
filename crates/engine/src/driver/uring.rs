//! The io_uring driver: multishot accept and receive, provided buffers, batched submission.
//!
//! A multishot receive is armed once for many messages, and it has no bound of its own: one run of it takes 33 buffers
//! from a socket that has bytes for them, before the first completion is seen. Since Linux 6.17 it can be given a number
//! of bytes after which it ends, and is what sockets with small messages get; on older kernels they are received one
//! buffer at a time. Bulk is received by calls, into wide buffers, when somebody asks for it and a poll has said that it is
//! there.
//!
//! Everything the kernel may still read or write is owned here or in the socket's slot, and a slot is reused only when
//! no operation of it is in flight: memory outlives every use of it, whatever tasks do with their handles.
//!
//! A send returns while its bytes are in flight, and only the next send waits for it; that saves a wake-up per
//! response. The next call reports a failure.
//!
//! Arming a multishot receive once saves 0.4 us of 4.4 per message. Without the bound on its bytes, a hundred slow
//! readers of a large body held 85 MB. A socket that received bulk counts as one of small messages again after 16
//! short receives. When four received buffers wait in a socket, as with a peer that sends byte by byte, its multishot
//! receive is cancelled. Before Linux 6.17 io_uring costs more than epoll, so `auto` does not choose it there.

mod accept;
mod complete;
mod operation;
mod operations;
mod outcome;
mod provided;
pub(crate) mod submit;

use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use super::event::{Event, Look};
use crate::buffers::buffer::Pool;
use crate::clock::{self, Instant};
use crate::error::{Error, Op};
use crate::limits::{COMPLETION_ENTRIES, SUBMISSION_ENTRIES};
use crate::socket::Sockets;
use crate::socket::key::Key;
use crate::task::Tasks;

use crate::socket::message::Message;
use operation::{Operation, split, user_data};
use outcome::{errno, outcome};
use provided::Provided;

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
    /// See [`Ring::has_worked`].
    has_worked: bool,
    /// What no send is described by at the moment.
    #[allow(
        clippy::vec_box,
        reason = "they go to sockets and come back as they are, and the kernel knows where they stand"
    )]
    messages: Vec<Box<Message>>,
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
            has_worked: false,
            messages: Vec::new(),
            reaped: Vec::with_capacity(COMPLETION_ENTRIES as usize),
        };
        ring.multishot = ring.bounds_multishot()?;
        ring.arm_wake();
        Ok(ring)
    }

    /// Tries a bounded multishot receive on no socket. Where bounds are unknown, they are what is refused first.
    fn bounds_multishot(&mut self) -> Result<bool, Errno> {
        self.push(submit::recv_multishot(Fd(-1)));
        while let Err(errno) = self.ring.submit_and_wait(1).map_err(errno) {
            if errno != Errno::INTR {
                return Err(errno);
            }
        }
        let completion = self.ring.completion().next();
        let refused = completion.map(|entry| outcome(entry.result()));
        Ok(refused == Some(Err(Errno::BADF)))
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
            // SAFETY: the descriptors and memory that entries of `submit.rs` and this file name stay valid until their completion:
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

    /// Lends the kernel all buffers of the ring: 4 MiB that are touched for the first time, which takes a millisecond and more.
    pub(crate) fn prepare(&mut self, pool: &Rc<Pool>) {
        self.buffers.replenish(pool);
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
        self.has_worked = false;
        let look = self.enter(timeout);
        if look == Look::Interrupted {
            // What has happened until then is asked for without a wait.
            self.enter(Some(Duration::ZERO));
        }
        let mut reaped = std::mem::take(&mut self.reaped);
        let completions = self.ring.completion();
        reaped.extend(completions.map(|entry| (entry.user_data(), entry.result(), entry.flags())));
        self.has_worked |= !reaped.is_empty();
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

    /// Whether the last look had something for the kernel to do, where it did not wait, or something had been done.
    pub(super) fn has_worked(&self) -> bool {
        self.has_worked
    }

    /// Whether the kernel has nothing to be told and nothing to say, as the memory shows that it shares with us.
    fn is_quiet(&mut self) -> bool {
        let submission = self.ring.submission();
        let is_told = !submission.is_empty();
        self.has_worked |= is_told;
        !is_told && !submission.taskrun() && !submission.cq_overflow()
    }

    fn enter(&mut self, timeout: Option<Duration>) -> Look {
        if timeout == Some(Duration::ZERO) && self.is_quiet() {
            return Look::Whole;
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    impl Ring {
        /// Whether it was [prepared](Self::prepare), and nothing has come since.
        pub(crate) fn is_prepared(&self) -> bool {
            self.buffers.is_whole()
        }
    }

    #[test]
    fn a_look_in_vain_is_told_from_one_in_which_something_was_done() {
        let Ok(mut ring) = Ring::new() else {
            return eprintln!("skipped: there is no io_uring here");
        };
        let (pool, tasks) = (Pool::new(), Tasks::new(0, Clock::Real));
        let mut sockets = Sockets::new();
        let mut look = |ring: &mut Ring| {
            let (now, mut events) = (clock::now(), Vec::new());
            let timeout = Some(Duration::ZERO);
            ring.turn(now, timeout, &mut sockets, &tasks, &pool, &mut events);
            (ring.has_worked(), events.len())
        };
        // The poll that wakes it is submitted, and ends nothing.
        assert_eq!(look(&mut ring), (true, 0));
        assert_eq!(look(&mut ring), (false, 0));
        rustix::io::write(&ring.wake, &1_u64.to_ne_bytes()).unwrap();
        assert_eq!(look(&mut ring), (true, 1));
        assert_eq!(look(&mut ring), (false, 0));
    }
}
