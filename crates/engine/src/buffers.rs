//! Memory of a core: buffers, blocks, and received and outgoing bytes.
//!
//! A buffer has 16.5 KiB, room for the largest TLS record. It belongs to the pool of its core, which reuses the last
//! returned one first. A connection holds a buffer only while bytes are in flight: `Input` returns its buffer before
//! every wait and copies a rest, such as half a head, to memory of exactly its size. So an idle connection costs its
//! task and its slot, and a stalled one the bytes that it has sent. The limit on a core's buffers is an error, not a
//! panic.

pub(crate) mod block;
pub(crate) mod buffer;
pub(crate) mod input;
pub(crate) mod memory;
pub(crate) mod outgoing;
pub(crate) mod poison;
