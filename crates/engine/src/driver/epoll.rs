//! The epoll driver: every socket is registered once, edge-triggered for both directions, and not modified again.
//!
//! A receive that does not fill its buffer has emptied the socket, so the call that would return EAGAIN is omitted. It
//! is made after the end of the stream or urgent data was reported, because their edge may be that of the bytes.

mod operations;

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use super::event::{Event, PollOutcome, Readiness};
use crate::error::{Error, Op};
use crate::limits::EVENTS_PER_WAIT;
use crate::socket::Ended;
use crate::socket::key::Key;

pub(crate) struct Epoll {
    epoll: OwnedFd,
    /// Written by other threads to end a wait.
    wake: OwnedFd,
}

/// Event data of `wake`; sockets are numbered from zero.
const WAKE: u64 = u64::MAX;

impl Epoll {
    pub(crate) fn new() -> Result<Self, Error> {
        Self::open().map_err(|errno| Error::os(Op::Start, errno))
    }

    fn open() -> Result<Self, Errno> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(
            &epoll,
            &wake,
            EventData::new_u64(WAKE),
            EventFlags::IN | EventFlags::ET,
        )?;
        Ok(Self { epoll, wake })
    }

    fn register(&self, descriptor: impl AsFd, key: Key) -> Result<(), Errno> {
        // PRI costs nothing and reports urgent bytes, before which a receive ends early.
        let flags =
            EventFlags::IN | EventFlags::PRI | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(
            &self.epoll,
            descriptor,
            EventData::new_u64(u64::from(key.0)),
            flags,
        )
    }

    fn register_listener(&self, descriptor: impl AsFd, key: Key) -> Result<(), Errno> {
        // Edge-triggered as well: without free descriptors the queued connections must not be reported over and over.
        // Exclusive: one of the cores that share a Unix listener wakes up, not all.
        let flags = EventFlags::IN | EventFlags::ET | EventFlags::EXCLUSIVE;
        epoll::add(
            &self.epoll,
            descriptor,
            EventData::new_u64(u64::from(key.0)),
            flags,
        )
    }

    /// Waits for an event or until `timeout` has passed. Also collects the events up to a signal that ends the wait.
    pub(crate) fn wait(
        &mut self,
        timeout: Option<Duration>,
        events: &mut Vec<Event>,
    ) -> PollOutcome {
        let (timeout, waited) = match timeout {
            Some(timeout) => self.wait_below_millisecond(timeout),
            None => (None, PollOutcome::Complete),
        };
        let look = self.look(timeout, events);
        if look == PollOutcome::Interrupted {
            // A look without a wait cannot be interrupted.
            self.look(Some(Duration::ZERO), events);
        }
        match waited {
            PollOutcome::Interrupted => PollOutcome::Interrupted,
            PollOutcome::Complete | PollOutcome::LimitReached => look,
        }
    }

    fn look(&self, timeout: Option<Duration>, events: &mut Vec<Event>) -> PollOutcome {
        let timeout = timeout.map(timespec);
        let mut list = [MaybeUninit::<epoll::Event>::uninit(); EVENTS_PER_WAIT];
        let ready = match epoll::wait(&self.epoll, &mut list[..], timeout.as_ref()) {
            Ok((ready, _)) => ready,
            Err(Errno::INTR) => return PollOutcome::Interrupted,
            // The descriptor and the list are valid; epoll_wait(2) documents no other error.
            Err(errno) => panic!("epoll_wait: {errno}"),
        };
        let look = match ready.len() {
            EVENTS_PER_WAIT => PollOutcome::LimitReached,
            _ => PollOutcome::Complete,
        };
        for event in ready {
            let flags = event.flags;
            let data = event.data.u64();
            if data == WAKE {
                events.push(Event::Wake);
                continue;
            }
            let ended = how_ended(flags);
            let is_ready = |direction| ended != Ended::No || flags.contains(direction);
            events.push(Event::Ready(Readiness {
                key: Key(data as u32),
                readable: is_ready(EventFlags::IN),
                writable: is_ready(EventFlags::OUT),
                ended,
                urgent: flags.contains(EventFlags::PRI),
            }));
        }
        look
    }

    /// Waits for an event if `timeout` is below a millisecond, because epoll_wait(2) rounds up to whole milliseconds
    /// and epoll_pwait2(2) needs Linux 5.11. Returns the remaining timeout in whole milliseconds, after which the core
    /// waits again for the rest: so a timer is late by the time of a wake-up, not by a millisecond.
    fn wait_below_millisecond(&self, timeout: Duration) -> (Option<Duration>, PollOutcome) {
        let milliseconds = Duration::from_millis(timeout.as_millis() as u64);
        let mut look = PollOutcome::Complete;
        if milliseconds.is_zero() && !timeout.is_zero() {
            let mut descriptors = [PollFd::new(&self.epoll, PollFlags::IN)];
            // The events are collected in any case: woken, timed out or interrupted.
            if poll(&mut descriptors, Some(&timespec(timeout))) == Err(Errno::INTR) {
                look = PollOutcome::Interrupted;
            }
        }
        (Some(milliseconds), look)
    }
}

/// HUP and ERR are always reported (epoll_ctl(2)): for TCP both come with a reset.
fn how_ended(flags: EventFlags) -> Ended {
    if flags.intersects(EventFlags::HUP | EventFlags::ERR) {
        Ended::HungUp
    } else if flags.contains(EventFlags::RDHUP) {
        Ended::PeerSide
    } else {
        Ended::No
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: duration.as_secs() as i64,
        tv_nsec: duration.subsec_nanos().into(),
    }
}
