//! Idle connections to one server, kept by one core.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use onrush_engine::Instant;
use onrush_tls::Transport;

/// Connections that wait for their next request. The one used last is used next, so that a quiet hour lets the
/// surplus expire.
pub(crate) struct Pool {
    idle_max: usize,
    idle: RefCell<VecDeque<(Transport, Instant)>>,
    /// Set when the core stops: from then on nothing is kept.
    closed: Cell<bool>,
}

impl Pool {
    /// At most `idle_max` connections are kept.
    pub(crate) fn new(idle_max: usize) -> Self {
        Self {
            idle_max,
            idle: RefCell::new(VecDeque::new()),
            closed: Cell::new(false),
        }
    }

    /// A connection that, as far as one can know, is still good.
    pub(crate) fn take(&self) -> Option<Transport> {
        loop {
            let (stream, _) = self.idle.borrow_mut().pop_back()?;
            if !stream.is_spent() {
                return Some(stream);
            }
        }
    }

    /// Keeps a connection whose last answer was complete.
    pub(crate) fn put(&self, stream: Transport, now: Instant) {
        if self.closed.get() || stream.is_spent() {
            return;
        }
        let mut idle = self.idle.borrow_mut();
        idle.push_back((stream, now));
        let surplus = if idle.len() > self.idle_max {
            idle.pop_front()
        } else {
            None
        };
        drop(idle);
        drop(surplus);
    }

    /// How many connections wait.
    pub(crate) fn len(&self) -> usize {
        self.idle.borrow().len()
    }

    /// Closes what has been idle for longer than `idle_max`, and what the server has closed.
    pub(crate) fn expire(&self, now: Instant, idle_max: Duration) {
        self.idle
            .borrow_mut()
            .retain(|(stream, since)| now.since(*since) < idle_max && !stream.is_spent());
    }

    /// Closes everything.
    pub(crate) fn drain(&self) {
        self.idle.take();
    }

    /// Closes everything, now and later.
    pub(crate) fn clear(&self) {
        self.closed.set(true);
        self.idle.take();
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("idle", &self.idle.borrow().len())
            .finish_non_exhaustive()
    }
}
