//! The bounds of echoes and sinks for datagrams, each with its reason.

/// Messages that are received in one call: each has room for 64 KiB, since one may be as many datagrams as that holds, so that a
/// socket takes 1 MiB. Half of what leaves in one call: what comes back in more messages than it came in has room, too.
pub(super) const MESSAGES_PER_CALL: usize = 16;

/// Messages that are sent in one call: the engine's number.
pub(super) const REPLIES_PER_CALL: usize = 32;

/// Datagrams that leave as one message: the engine's number, and what the kernel has taken since it can.
pub(super) const SEGMENTS_MAX: usize = 64;

/// Flows that a core remembers for a listener, those that began last: each takes 8 KiB, so 32 MiB where there are as many. A run of
/// load has one for each of its sockets, of which a core has its share.
pub(super) const FLOWS_MAX: usize = 4096;
