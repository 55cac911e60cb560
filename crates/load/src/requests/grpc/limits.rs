//! Bounds of calls, each with its reason.

/// Bytes of a file with descriptors. Those of all of Google's public interfaces together have less than half of it; it is held in
/// memory, in several times its size.
pub const DESCRIPTORS_BYTES_MAX: u64 = 64 << 20;
