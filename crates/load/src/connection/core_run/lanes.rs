//! Concurrent requests of a connection or socket. Each has a lane: a task that makes one request at a time.

use super::CoreRun;
use crate::protocol::flight::ids_of;

/// Concurrent requests of each socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lanes {
    pub(crate) count: usize,
    /// Number of request ids.
    pub(crate) ids: usize,
}

impl CoreRun {
    /// Returns the concurrent requests of each socket.
    pub(crate) fn lanes(&self) -> Lanes {
        Lanes {
            count: self.plan.concurrency(),
            ids: ids_of(self.plan.options.connections as u64),
        }
    }

    /// Returns the number of concurrent requests of each connection.
    pub(crate) fn lanes_of_connection(&self) -> usize {
        self.plan.concurrency()
    }

    pub(crate) fn kind_of(&self, number: u64) -> usize {
        self.plan.protocol.kind_of(number)
    }
}
