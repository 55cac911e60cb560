//! Bounds of requests over UDP, each with its reason.

use std::time::Duration;

/// Ids that requests over UDP have: 16 bits (doc/protocol.txt). Each takes two bytes.
pub(crate) const IDS_MAX: usize = 1 << 16;

/// Ids of all sockets of a run together: 8 MiB. With fewer of a socket, an answer that is late is taken for one of a later request
/// the sooner.
pub(crate) const IDS_ALL_MAX: u64 = 1 << 22;

/// Ids of a socket at least, however many there are.
pub(crate) const IDS_MIN: usize = 16;

/// Ids for each request that may be on its way: most are not to be given again soon, so that late answers are told from others.
pub(crate) const IDS_PER_REQUEST: u64 = 4;

/// Bytes of datagrams of a core that wait for those before them: 64 answers of the largest values. A network that holds one
/// datagram back lets a few others pass, of a few answers.
pub(crate) const HELD_BYTES_MAX: usize = 64 << 20;

/// How long somebody who may listen is asked over UDP before a run, and how often, before nobody does: three seconds hold any
/// queue on the way, and three datagrams are not lost by chance.
pub(crate) const ASKED_FOR: Duration = Duration::from_secs(1);

/// See [`ASKED_FOR`].
pub(crate) const ASKED_TIMES: u32 = 3;

/// Requests on their way at once over UDP while keys are stored before a run, and their bytes: what a server's socket has room for
/// when nothing is said (212,992 bytes, of which a short datagram takes 768).
pub(crate) const FILL_DATAGRAMS: u64 = 64;

/// See [`FILL_DATAGRAMS`].
pub(crate) const FILL_DATAGRAM_BYTES: u64 = 64 * 1024;
