//! Bounds of datagrams that leave by interfaces that were named. Those of all others stand in the crate's `limits.rs`.

use std::time::Duration;

/// Bytes of an interface's name: IFNAMSIZ less the zero behind it.
pub(super) const INTERFACE_NAME_MAX: usize = 15;

/// Interfaces of a run: machines that send by more are several generators.
pub(super) const INTERFACES_MAX: usize = 64;

/// Bytes of an answer of rtnetlink: what iproute2 has room for. That of an interface with many virtual functions is the longest.
pub(super) const NETLINK_BYTES_MAX: usize = 64 << 10;

/// How long the kernel may take to learn a neighbour's address: it asks three times, a second apart.
pub(super) const NEIGHBOUR_TIMEOUT: Duration = Duration::from_secs(3);

/// Between two looks at whether it has.
pub(super) const NEIGHBOUR_LOOK: Duration = Duration::from_millis(10);

/// Sockets whose datagrams leave as frames: their numbers and headers are kept for each, and no link has as many queues.
pub(super) const FRAME_FLOWS_MAX: usize = 256;
