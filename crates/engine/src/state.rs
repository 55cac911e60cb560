//! The part of a core that operations change.

pub(crate) mod expected;

use std::rc::Rc;

use crate::buffers::buffer::Pool;
use crate::clock::Instant;
use crate::driver::Driver;
use crate::driver::event::Event;
use crate::socket::Sockets;
use crate::socket::key::Key;
use crate::task::id::TaskId;
use crate::timer::Wheel;

use expected::Expected;

pub(crate) struct State {
    pub(crate) driver: Driver,
    pub(crate) sockets: Sockets,
    pub(crate) timers: Wheel<Timer>,
    pub(crate) pool: Rc<Pool>,
    pub(crate) now: Instant,
    /// Sockets with deferred sends; some may have been flushed since.
    pub(crate) due: Vec<Key>,
    /// Whether the time of each send is recorded.
    pub(crate) notes_writes: bool,
    /// The core was asked to stop; interruptible waits end.
    pub(crate) stopping: bool,
    pub(crate) stop_waiters: Vec<TaskId>,
    pub(crate) sleeps: Vec<SleepState>,
    pub(crate) sleeps_unused: Vec<u32>,
    pub(crate) events: Vec<Event>,
    pub(crate) expired: Vec<Timer>,
    pub(crate) expected: Expected,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Timer {
    Socket(Key),
    Sleep(u32),
}

#[derive(Clone, Copy)]
pub(crate) enum SleepState {
    Unused,
    Waiting(TaskId),
    Over,
}

impl State {
    pub(crate) fn new(driver: Driver, pool: Rc<Pool>, now: Instant) -> Self {
        Self {
            driver,
            sockets: Sockets::new(),
            timers: Wheel::new(now),
            pool,
            now,
            due: Vec::new(),
            notes_writes: false,
            stopping: false,
            stop_waiters: Vec::new(),
            sleeps: Vec::new(),
            sleeps_unused: Vec::new(),
            events: Vec::new(),
            expired: Vec::new(),
            expected: Expected::default(),
        }
    }
}
