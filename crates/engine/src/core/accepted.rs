//! The bounds on accepted connections and pipes, and closing idle connections to make room.

use std::sync::Arc;

use super::Core;
use crate::clock::Instant;
use crate::socket::key::Key;
use crate::system::allowance::Allowance;

impl Core {
    /// Bounds the connections that this core accepts from now on, together with the other cores that share `allowance`.
    /// At the bound [`Listener::accept`](crate::Listener::accept) fails with [`crate::Kind::Full`].
    pub fn bound_accepted(&self, allowance: Arc<Allowance>) {
        self.inner().state.borrow_mut().sockets.allowance = Some(allowance);
    }

    /// Bounds the pipes of this core, which move bytes between streams without a copy to user space. Each uses two
    /// descriptors. Without a free pipe the bytes are copied. Pipes in use stay open.
    pub fn bound_pipes(&self, max: usize) {
        self.inner().pipes.bound(max);
    }

    /// Ends waits in [`Stream::recv_unless_stopping`](crate::Stream::recv_unless_stopping) on up to `count` accepted
    /// connections with the earliest deadlines; with equal timeouts these have waited longest. Returns their number.
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
