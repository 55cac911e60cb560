//! Idle connections to one server, kept by one core.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use onrush_engine::Instant;
use onrush_tls::Transport;

use crate::worker::idle_limit::IdleLimit;

/// Idle connections, used last in, first out: in times of low load the surplus is not used and expires.
pub(crate) struct Pool {
    idle_max: Cell<usize>,
    idle: RefCell<VecDeque<(Transport, Instant)>>,
    /// Set when the core stops or the server is removed: connections are not kept any more.
    closed: Cell<bool>,
    /// Limit of all pools of the core together, if set.
    kept: OnceCell<Rc<IdleLimit>>,
}

impl Pool {
    pub(crate) fn new(idle_max: usize) -> Self {
        Self {
            idle_max: Cell::new(idle_max),
            idle: RefCell::new(VecDeque::new()),
            closed: Cell::new(false),
            kept: OnceCell::new(),
        }
    }

    /// Counts the connections towards the limit `kept`, which all pools of the core share.
    pub(crate) fn set_core_limit(&self, kept: &Rc<IdleLimit>) {
        // Called before there is any traffic, and again for each configuration.
        let known = self.kept.get_or_init(|| {
            debug_assert!(self.idle.borrow().is_empty());
            Rc::clone(kept)
        });
        debug_assert!(Rc::ptr_eq(known, kept), "a core has one");
    }

    /// Sets the limit on idle connections and closes the surplus.
    pub(crate) fn keep_at_most(&self, idle_max: usize) {
        self.idle_max.set(idle_max);
        let mut idle = self.idle.borrow_mut();
        let surplus = idle.len().saturating_sub(idle_max);
        let closed: Vec<_> = idle.drain(..surplus).collect();
        drop(idle);
        self.have_left(closed.len());
    }

    /// Takes a connection that the server has not closed, as far as is known.
    pub(crate) fn take(&self) -> Option<Transport> {
        loop {
            let (stream, _) = self.idle.borrow_mut().pop_back()?;
            self.have_left(1);
            if !stream.is_spent() {
                return Some(stream);
            }
        }
    }

    /// Keeps a connection after a complete response.
    pub(crate) fn put(&self, stream: Transport, now: Instant) {
        if self.closed.get() {
            return;
        }
        stream.watch_arrivals();
        if stream.is_spent() {
            return;
        }
        let mut idle = self.idle.borrow_mut();
        idle.push_back((stream, now));
        let kept = self.kept.get();
        if let Some(kept) = kept {
            kept.add(1);
        }
        let is_surplus =
            idle.len() > self.idle_max.get() || kept.is_some_and(|kept| kept.is_exceeded());
        let surplus = is_surplus.then(|| idle.pop_front()).flatten();
        drop(idle);
        if surplus.is_some() {
            self.have_left(1);
        }
    }

    fn have_left(&self, count: usize) {
        if let Some(kept) = self.kept.get() {
            kept.subtract(count);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.idle.borrow().len()
    }

    /// Closes connections that have been idle for `idle_max` or that the server has closed.
    pub(crate) fn expire(&self, now: Instant, idle_max: Duration) {
        let mut idle = self.idle.borrow_mut();
        let before = idle.len();
        idle.retain(|(stream, since)| now.since(*since) < idle_max && !stream.is_spent());
        self.have_left(before - idle.len());
    }

    /// Closes all idle connections.
    pub(crate) fn drain(&self) {
        self.have_left(self.idle.take().len());
    }

    /// Closes all idle connections and keeps none from now on.
    pub(crate) fn clear(&self) {
        drop(self.close());
    }

    /// As `clear`, but returns the idle connections; the caller closes them.
    pub(crate) fn close(&self) -> impl Iterator<Item = Transport> + use<> {
        self.closed.set(true);
        let idle = self.idle.take();
        self.have_left(idle.len());
        idle.into_iter().map(|(transport, _)| transport)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.drain();
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("idle", &self.idle.borrow().len())
            .finish_non_exhaustive()
    }
}
