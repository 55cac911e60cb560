//! Bounds, each with its reason.

/// Numbers of a flow behind the highest one that are remembered, to tell a duplicate from a late datagram: at 17 million
/// datagrams a second, more than was measured on one flow, that is 3.8 ms, far beyond what queues of one path reorder; 8 KiB of
/// memory.
pub const WINDOW: u64 = 65_536;
