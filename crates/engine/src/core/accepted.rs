//! The bound on accepted connections, and room for more of them.

use std::sync::Arc;

use super::Core;
use crate::clock::Instant;
use crate::socket::key::Key;
use crate::system::allowance::Allowance;

impl Core {
    /// Bounds the connections that this core accepts from now on, together with those of the others with the same
    /// allowance. At the bound [`Listener::accept`](crate::Listener::accept) ends with [`crate::Kind::Full`].
    pub fn bound_accepted(&self, allowance: Arc<Allowance>) {
        self.inner().state.borrow_mut().sockets.allowance = Some(allowance);
    }

    /// Bounds the pipes of this core, of two descriptors each, by which bytes pass from one stream to another without entering
    /// our memory. Where there is none, they are copied. Those in use stay.
    pub fn bound_pipes(&self, max: usize) {
        self.inner().pipes.bound(max);
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
