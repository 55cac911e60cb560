//! Limits of datagrams sent over named interfaces. Other limits are in the crate's `limits.rs`.

use std::time::Duration;

/// Bytes of an interface's name: IFNAMSIZ minus the terminating zero.
pub(super) const INTERFACE_NAME_MAX: usize = 15;

/// Interfaces of a run. Larger machines can run several generators.
pub(super) const INTERFACES_MAX: usize = 64;

/// Bytes of an rtnetlink response, the same as in iproute2. The longest is that of an interface with many virtual
/// functions.
pub(super) const NETLINK_BYTES_MAX: usize = 64 << 10;

/// Time for the kernel to resolve a neighbour's address: it sends three requests, one second apart.
pub(super) const NEIGHBOUR_TIMEOUT: Duration = Duration::from_secs(3);

/// Interval between checks for the result.
pub(super) const NEIGHBOUR_LOOK: Duration = Duration::from_millis(10);

/// Sockets whose datagrams are sent as frames. Each has its own numbers and headers, and no link has as many queues.
pub(super) const FRAME_FLOWS_MAX: usize = 256;
