//! Long bodies on their way between two plain connections: through a pipe of the kernel, past our memory.
//!
//! What a body needs looked at (chunks, an encoding, TLS on either side) goes through buffers instead, and so does what is
//! left where the engine has no pipe for it.
//!
//! A body enters a pipe if 64 KiB or more of it are left. The pipe is held only while bytes are in it.

use onrush_engine::Stream;

use crate::limits::SPLICED_MIN;

/// The two connections between which a body may pass.
pub(super) struct Ends<'a> {
    pub(super) from: &'a Stream,
    pub(super) to: &'a Stream,
}

impl<'a> Ends<'a> {
    /// `None` where so few bytes are `left` that it would not pay, or what passes is not what is on the wire.
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
