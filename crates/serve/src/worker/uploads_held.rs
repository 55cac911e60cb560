//! How much of requests' bodies the streams of a core hold that nobody has read yet.

use std::cell::Cell;

use crate::limits::http2::HTTP2_UPLOADS_HELD_MAX;

/// Bytes that streams hold and that the windows of their connections do not count, so that streams whose requests wait for
/// capacity of a server leave those windows to others. A bound for all connections of a core: beyond it, what a stream holds counts
/// against its connection's window until it is read.
#[derive(Debug, Default)]
pub(crate) struct UploadsHeld(Cell<u64>);

impl UploadsHeld {
    /// So many bytes more are held; whether there is room for them here.
    pub(crate) fn take(&self, bytes: u32) -> bool {
        let held = self.0.get() + u64::from(bytes);
        let has_room = held <= HTTP2_UPLOADS_HELD_MAX;
        if has_room {
            self.0.set(held);
        }
        has_room
    }

    /// So many of them are read, or thrown away.
    pub(crate) fn give(&self, bytes: u32) {
        debug_assert!(self.0.get() >= u64::from(bytes));
        self.0.set(self.0.get().saturating_sub(bytes.into()));
    }
}
