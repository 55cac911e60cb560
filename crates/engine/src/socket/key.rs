//! What a socket is called on its core.

/// Names a socket of this core. A stale key is a bug of the engine: handles own their slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Key(pub(crate) u32);
