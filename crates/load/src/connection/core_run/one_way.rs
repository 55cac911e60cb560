//! Requests without a response.

use super::CoreRun;
use crate::connection::work::Work;
use crate::protocol::Protocol;

impl CoreRun {
    /// Whether a request is complete when the kernel has accepted it.
    pub(crate) fn is_one_way(&self) -> bool {
        matches!(self.plan.protocol, Protocol::Stream(_))
    }

    /// Counts the bytes of requests that the kernel has accepted.
    pub(crate) fn accepted(&self, work: &Work) {
        if !self.is_over() {
            self.recorder.record.borrow_mut().tally.bytes += work.bytes();
        }
    }
}
