//! Limits of echoes and sinks for datagrams.

/// Maximum number of messages received in one call. Each needs a buffer of 64 KiB, since a message may be several
/// coalesced datagrams, so a socket takes 1 MiB. Half of [`REPLIES_PER_CALL`], since replies may need more messages
/// than were received.
pub(super) const MESSAGES_PER_CALL: usize = 16;

/// Maximum number of messages sent in one call: the engine's limit.
pub(super) const REPLIES_PER_CALL: usize = 32;

/// Maximum number of datagrams sent as one message: the limit of the engine and of all kernels with UDP GSO.
pub(super) const SEGMENTS_MAX: usize = 64;

/// Most recent flows that a core keeps per listener: each takes 8 KiB, all of them 32 MiB. A load run has one flow per
/// socket, and a core receives a share of them.
pub(super) const FLOWS_MAX: usize = 4096;
