//! Budget of one core for unread request bodies of HTTP/2 streams.

use std::cell::Cell;

use crate::limits::http2::HTTP2_UPLOADS_HELD_MAX;

/// Unread bytes of streams that do not count against the window of their connection, so that streams whose requests
/// wait for capacity of a server leave the window to other streams. When the budget of the core is used up, further
/// bytes count against the window until they are read.
#[derive(Debug, Default)]
pub(crate) struct UploadBudget(Cell<u64>);

impl UploadBudget {
    /// Takes bytes from the budget. Returns whether there was room.
    pub(crate) fn take(&self, bytes: u32) -> bool {
        let held = self.0.get() + u64::from(bytes);
        let has_room = held <= HTTP2_UPLOADS_HELD_MAX;
        if has_room {
            self.0.set(held);
        }
        has_room
    }

    /// Returns bytes that were read or discarded.
    pub(crate) fn give(&self, bytes: u32) {
        debug_assert!(self.0.get() >= u64::from(bytes));
        self.0.set(self.0.get().saturating_sub(bytes.into()));
    }
}
