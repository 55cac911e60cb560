//! The io_uring driver: multishot accept and receive, provided buffers, batched submission.
//!
//! A multishot receive is armed once for many messages, which saves 0.4 us of 4.4 per message, but has no bound of its
//! own: one run takes 33 buffers before the first completion is seen, and a hundred slow readers of a large body held
//! 85 MB. Since Linux 6.17 it can be given a number of bytes after which it ends, and sockets with small messages use
//! it; on older kernels they are received one buffer at a time. Bulk is received by system calls, into wide buffers, on
//! request and after a poll has reported it. When four received buffers wait in a socket, as with a peer that sends
//! byte by byte, its multishot receive is cancelled. Before Linux 6.17 io_uring costs more than epoll, so `auto` does
//! not choose it there.
//!
//! Everything the kernel may still read or write is owned here or in the socket's slot, and a slot is reused only when
//! no operation of it is in flight: memory outlives every use of it, even if a task drops its handle.
//!
//! A send returns while its bytes are in flight, and only the next send waits for it and reports a failure; that saves
//! a wake-up per response.

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

use super::event::{Event, PollOutcome};
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
use provided::ProvidedBuffers;

/// Performance of a ring on this kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RingSupport {
    Full,
    /// Without multishot receives.
    Reduced,
}

pub(crate) struct Ring {
    ring: IoUring,
    wake: OwnedFd,
    buffers: ProvidedBuffers,
    /// Whether the kernel can bound a multishot receive.
    multishot: bool,
    entered: Instant,
    has_worked: bool,
    /// Message headers that no send uses at the moment.
    #[allow(
        clippy::vec_box,
        reason = "they go to sockets and come back as they are, and the kernel knows where they stand"
    )]
    messages: Vec<Box<Message>>,
    /// Completions of one iteration of the event loop, between reaping and acting.
    reaped: Vec<(u64, i32, u32)>,
}

impl Ring {
    pub(crate) fn new() -> Result<Self, Error> {
        Self::open().map_err(|errno| Error::os(Op::Start, errno))
    }

    /// Whether this kernel supports a ring with everything required, and with every feature that makes it fast.
    pub(crate) fn probe() -> Result<RingSupport, Errno> {
        let ring = Self::open()?;
        Ok(if ring.multishot {
            RingSupport::Full
        } else {
            RingSupport::Reduced
        })
    }

    fn open() -> Result<Self, Errno> {
        // SINGLE_ISSUER and DEFER_TASKRUN came with 6.0 and 6.1; a kernel with these has every other feature used.
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            // Reports pending deferred work, so that a look without waiting runs it, too.
            .setup_taskrun_flag()
            .setup_submit_all()
            .setup_clamp()
            .setup_cqsize(COMPLETION_ENTRIES)
            .build(SUBMISSION_ENTRIES)
            .map_err(errno)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        // Last: nothing may fail after it, since its memory may be freed only after the ring is closed.
        let buffers = ProvidedBuffers::register(&ring)?;
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

    /// Tries a bounded multishot receive on an invalid descriptor. A kernel without bounds rejects these first.
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
            // SAFETY: descriptors and memory of entries made in this file and `submit.rs` stay valid until their
            // completion: descriptors are in slots with `operations > 0`, memory in `outgoing`, `Message` and
            // `ProvidedBuffers`.
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

    /// Lends all buffers of the ring to the kernel: touches 4 MiB for the first time, in a millisecond or more.
    pub(crate) fn prepare(&mut self, pool: &Rc<Pool>) {
        self.buffers.replenish(pool);
    }

    /// Submits the queued entries, waits for an event or until `timeout` has passed, and handles the completions. `now`
    /// is the time at which the queued sends are handed to the kernel.
    pub(crate) fn turn(
        &mut self,
        now: Instant,
        timeout: Option<Duration>,
        sockets: &mut Sockets,
        tasks: &Tasks,
        pool: &Rc<Pool>,
        events: &mut Vec<Event>,
    ) -> PollOutcome {
        self.buffers.replenish(pool);
        self.entered = now;
        self.has_worked = false;
        let look = self.enter(timeout);
        if look == PollOutcome::Interrupted {
            // Events up to now are collected without a wait.
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
                    // A multishot poll may report one wake-up twice: the second read then finds nothing.
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

    /// Whether the last look submitted work without waiting, or returned completions.
    pub(super) fn has_worked(&self) -> bool {
        self.has_worked
    }

    /// Whether there is nothing to submit and no pending work of the kernel, as the shared memory shows.
    fn has_no_work(&mut self) -> bool {
        let submission = self.ring.submission();
        let is_told = !submission.is_empty();
        self.has_worked |= is_told;
        !is_told && !submission.taskrun() && !submission.cq_overflow()
    }

    fn enter(&mut self, timeout: Option<Duration>) -> PollOutcome {
        if timeout == Some(Duration::ZERO) && self.has_no_work() {
            return PollOutcome::Complete;
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
                Errno::INTR => return PollOutcome::Interrupted,
                // The timeout passed, the kernel wants its completions reaped first, or it has no memory for more
                // requests: queued entries stay queued, in order.
                Errno::TIME | Errno::BUSY | Errno::AGAIN => {}
                // Includes EBADR: the completion queue was full and a completion could not be stored
                // (io_uring_enter(2)). The completed operation is then unknown, and its memory could never be freed.
                errno => panic!("io_uring_enter: {errno}"),
            },
        }
        let submission = self.ring.submission();
        match submission.taskrun() || submission.cq_overflow() {
            true => PollOutcome::LimitReached,
            false => PollOutcome::Complete,
        }
    }

    /// Cancels all operations and waits until the kernel has released all memory. The tasks are already gone.
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
        /// Whether it was [prepared](Self::prepare), and no buffer has been used since.
        pub(crate) fn is_prepared(&self) -> bool {
            self.buffers.is_whole()
        }
    }

    #[test]
    fn has_worked_reports_completions_and_submissions() {
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
        // The poll of the wake descriptor is submitted and completes nothing.
        assert_eq!(look(&mut ring), (true, 0));
        assert_eq!(look(&mut ring), (false, 0));
        rustix::io::write(&ring.wake, &1_u64.to_ne_bytes()).unwrap();
        assert_eq!(look(&mut ring), (true, 1));
        assert_eq!(look(&mut ring), (false, 0));
    }
}
