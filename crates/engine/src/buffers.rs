//! Memory of a core: buffers, blocks, and bytes on their way in and out.

pub(crate) mod block;
pub(crate) mod buffer;
pub(crate) mod input;
pub(crate) mod memory;
pub(crate) mod outgoing;
pub(crate) mod poison;
