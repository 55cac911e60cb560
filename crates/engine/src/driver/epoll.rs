//! The epoll driver: every socket is registered once, edge-triggered for both directions, and never touched again.
//!
//! A receive that does not fill its buffer has emptied the socket, so the call that would return EAGAIN is omitted.
//! It is made after the end of the stream or urgent data was reported: the edge for these may be the same as the one
//! for the bytes.

mod operations;

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use super::event::{Event, Look, Readiness};
use crate::error::{Error, Op};
use crate::limits::EVENTS_PER_WAIT;
use crate::socket::Ended;
use crate::socket::key::Key;

pub(crate) struct Epoll {
    epoll: OwnedFd,
    /// Written by other threads to end a wait.
    wake: OwnedFd,
}

/// The name of `wake` among the events; sockets are numbered from zero.
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
        // PRI costs nothing and tells of urgent bytes, before which a receive ends early.
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
        // Edge-triggered here too: out of descriptors, the connections that wait must not be reported over and over.
        // Exclusive: of the cores that share a Unix listener one wakes up, not all.
        let flags = EventFlags::IN | EventFlags::ET | EventFlags::EXCLUSIVE;
        epoll::add(
            &self.epoll,
            descriptor,
            EventData::new_u64(u64::from(key.0)),
            flags,
        )
    }

    /// Waits until something happens or `timeout` has passed (`None`: for ever). When a signal ends the wait, what has
    /// happened until then is there, too.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>, events: &mut Vec<Event>) -> Look {
        let (timeout, waited) = match timeout {
            Some(timeout) => self.wait_below_millisecond(timeout),
            None => (None, Look::Whole),
        };
        let look = self.look(timeout, events);
        if look == Look::Interrupted {
            // Without a wait, no signal ends it.
            self.look(Some(Duration::ZERO), events);
        }
        match waited {
            Look::Interrupted => Look::Interrupted,
            Look::Whole | Look::Filled => look,
        }
    }

    fn look(&self, timeout: Option<Duration>, events: &mut Vec<Event>) -> Look {
        let timeout = timeout.map(timespec);
        let mut list = [MaybeUninit::<epoll::Event>::uninit(); EVENTS_PER_WAIT];
        let ready = match epoll::wait(&self.epoll, &mut list[..], timeout.as_ref()) {
            Ok((ready, _)) => ready,
            Err(Errno::INTR) => return Look::Interrupted,
            // The descriptor is ours and the list is valid; nothing else is documented in epoll_wait(2).
            Err(errno) => panic!("epoll_wait: {errno}"),
        };
        let look = match ready.len() {
            EVENTS_PER_WAIT => Look::Filled,
            _ => Look::Whole,
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

    /// Waits until something happens when `timeout` is shorter than epoll_wait(2) can wait, which is whole milliseconds,
    /// rounded up; epoll_pwait2(2) is finer but needs Linux 5.11. What is left to wait is of whole milliseconds, and
    /// the core looks again when they have passed: a timer is late by what its wake-up takes, not by a millisecond.
    fn wait_below_millisecond(&self, timeout: Duration) -> (Option<Duration>, Look) {
        let milliseconds = Duration::from_millis(timeout.as_millis() as u64);
        let mut look = Look::Whole;
        if milliseconds.is_zero() && !timeout.is_zero() {
            let mut descriptors = [PollFd::new(&self.epoll, PollFlags::IN)];
            // Woken, timed out or interrupted: the events are looked at in each case.
            if poll(&mut descriptors, Some(&timespec(timeout))) == Err(Errno::INTR) {
                look = Look::Interrupted;
            }
        }
        (Some(milliseconds), look)
    }
}

/// HUP and ERR are reported without having been asked for (epoll_ctl(2)): for TCP both come with a reset.
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
