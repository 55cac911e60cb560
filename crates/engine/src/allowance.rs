//! How many accepted connections the cores of a process may hold together: a bound on file descriptors that leaves enough
//! of them for what else connections need.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::clock::Instant;
use crate::core::Core;
use crate::limits::MULTISHOT_ACCEPTS;
use crate::socket::Key;

/// A bound on accepted connections, shared by cores.
///
/// Each core looks before it accepts and counts afterwards, so there may be one more for each listener.
#[derive(Debug)]
pub struct Allowance {
    max: usize,
    /// Connections whose descriptors are open.
    held: AtomicUsize,
}

impl Allowance {
    /// At most `max` connections.
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            held: AtomicUsize::new(0),
        })
    }

    /// How many connections are open.
    pub fn held(&self) -> usize {
        // Relaxed, here and below: the number guards nothing but itself.
        self.held.load(Ordering::Relaxed)
    }

    pub(crate) fn is_used_up(&self) -> bool {
        self.held() >= self.max
    }

    /// Whether so much is left that the kernel may accept until it is told to stop.
    pub(crate) fn is_wide(&self) -> bool {
        self.held().saturating_add(MULTISHOT_ACCEPTS) < self.max
    }

    pub(crate) fn take(&self) {
        self.held.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn give_back(&self) {
        self.held.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Core {
    /// Bounds the connections that this core accepts from now on, together with those of the others with the same
    /// allowance. At the bound [`Listener::accept`](crate::Listener::accept) ends with [`crate::Kind::Full`].
    pub fn bound_accepted(&self, allowance: Arc<Allowance>) {
        self.inner().state.borrow_mut().sockets.allowance = Some(allowance);
    }

    /// Ends waits in [`Stream::recv_unless_stopping`](crate::Stream::recv_unless_stopping) on `count` accepted connections,
    /// those whose deadlines come first: of equal timeouts the ones that have waited longest. Returns how many there were.
    pub fn end_idle(&self, count: usize) -> usize {
        let inner = self.inner();
        let state = &mut *inner.state.borrow_mut();
        let mut idle: Vec<(Option<Instant>, Key)> = state
            .sockets
            .iter_mut()
            .enumerate()
            .filter(|(_, socket)| socket.interruptible && socket.is_accepted && !socket.is_unwanted)
            .map(|(index, socket)| (socket.deadline, Key(index as u32)))
            .collect();
        if idle.len() > count {
            idle.select_nth_unstable_by_key(count, |&(deadline, _)| deadline);
            idle.truncate(count);
        }
        for &(_, key) in &idle {
            let socket = &mut state.sockets[key];
            socket.is_unwanted = true;
            inner.tasks.wake_once(&mut socket.recv_waiter);
        }
        idle.len()
    }
}
