//! Several requests at once on a connection or socket, each with a lane of its own.

use super::CoreRun;
use crate::protocol::flight::ids_of;

/// The requests that each socket may have on their way at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lanes {
    pub(crate) count: usize,
    /// The ids that they are told apart by.
    pub(crate) ids: usize,
}

impl CoreRun {
    /// How many requests of each socket may be on their way at once.
    pub(crate) fn lanes(&self) -> Lanes {
        Lanes {
            count: self.plan.lanes(),
            ids: ids_of(self.plan.options.connections as u64),
        }
    }

    /// How many requests of each connection may be on their way at once.
    pub(crate) fn lanes_of_connection(&self) -> usize {
        self.plan.lanes()
    }

    /// The kind of request `number` of the run.
    pub(crate) fn kind_of(&self, number: u64) -> usize {
        self.plan.protocol.kind_of(number)
    }
}
