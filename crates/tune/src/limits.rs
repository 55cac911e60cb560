//! All limits of reading and changing a machine, with reasons.

/// Maximum bytes of a file in /proc or /sys. The largest is /proc/interrupts: 6 MB with 256 CPUs and 2,000 interrupts.
pub const FILE_BYTES_MAX: u64 = 32 << 20;
/// Maximum number of attempts to open a file after EAGAIN. The kernel returns it when something is mounted or renamed
/// while it resolves links below a root (openat2(2)). An attempt takes a microsecond.
pub const OPEN_TRIES: usize = 1_000;
/// Maximum bytes of a snapshot: a few thousand small files and one large one.
pub const SNAPSHOT_BYTES_MAX: u64 = 256 << 20;
/// Maximum number of interfaces read; a container host has a few thousand virtual ones.
pub const INTERFACES_MAX: usize = 4_096;
/// Maximum number of queues of an interface: hardware has up to a few hundred, a virtual device may report 4,096.
pub const QUEUES_MAX: usize = 4_096;
/// Maximum number of processes whose names are read to find daemons.
pub const PROCESSES_MAX: usize = 16_384;
/// Maximum bytes of a netlink response: the kernel sends 32 KiB of a list at once, and a single ethtool reply has 16
/// KiB when the indirection table has 4,096 entries.
pub const NETLINK_BYTES_MAX: usize = 64 << 10;
/// Maximum number of messages in a netlink list; a node of a large cluster has a few hundred thousand packet filter
/// rules.
pub const NETLINK_ANSWERS_MAX: usize = 1 << 20;
/// Maximum number of attempts to read a netlink list that changes while it is read. After the last attempt the list
/// counts as unknown.
pub const NETLINK_TRIES: usize = 20;
/// Maximum number of control groups from a process up to the root: systemd and Kubernetes nest six to ten.
pub const GROUPS_MAX: usize = 64;
/// Maximum number of threads read of a process; servers have a few per CPU.
pub const THREADS_MAX: usize = 16_384;
/// Maximum number of descriptors read of a process to find its listening sockets, which it opens before connections.
pub const DESCRIPTORS_MAX: usize = 65_536;
/// Maximum number of disks and partitions read; a storage server has several hundred.
pub const DISKS_MAX: usize = 4_096;
/// Maximum number of destinations kept per sample of local ports; a finding names only the one with the fewest free
/// ports.
pub const PORT_USES_MAX: usize = 4;
