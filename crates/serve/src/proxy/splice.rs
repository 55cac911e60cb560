//! Long bodies between two plain connections: passed through a kernel pipe (splice(2)), never copied to user space.
//!
//! A body that must be inspected (chunked, encoded, or with TLS on either side) goes through buffers instead, and so
//! does the rest of a body when the engine has no free pipe.
//!
//! A body uses a pipe if at least 64 KiB of it are left. The pipe is held only while it contains bytes.

use onrush_engine::Stream;

use crate::limits::SPLICED_MIN;

/// Source and destination of a spliced body.
pub(super) struct SpliceEnds<'a> {
    pub(super) from: &'a Stream,
    pub(super) to: &'a Stream,
}

impl<'a> SpliceEnds<'a> {
    /// Returns `None` if too few bytes are `left` to be worth it, or if the body is not the raw bytes on the wire.
    #[inline]
    pub(super) fn new(
        left: Option<u64>,
        from: impl FnOnce() -> Option<&'a Stream>,
        to: impl FnOnce() -> Option<&'a Stream>,
    ) -> Option<Self> {
        match left? {
            ..SPLICED_MIN => None,
            _ => Some(Self {
                from: from()?,
                to: to()?,
            }),
        }
    }
}
