//! Requests that nobody answers.

use super::CoreRun;
use crate::connection::work::Work;
use crate::protocol::Protocol;

impl CoreRun {
    /// Whether the kernel's taking requests is all that becomes of them.
    pub(crate) fn is_one_way(&self) -> bool {
        matches!(self.plan.protocol, Protocol::Stream(_))
    }

    /// The kernel has taken what was queued, which nobody answers: these are the bytes that count.
    pub(crate) fn taken(&self, work: &Work) {
        if !self.is_over() {
            self.recorder.record.borrow_mut().tally.bytes += work.bytes();
        }
    }
}
