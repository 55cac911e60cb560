//! Limits of gRPC.

/// Bytes of a descriptor set. The set of all public interfaces of Google has less than half of that. It is held in
/// memory, where it takes several times its size.
pub const DESCRIPTORS_BYTES_MAX: u64 = 64 << 20;
