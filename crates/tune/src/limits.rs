//! Every bound of reading and changing a machine, with its reason.

/// One file of /proc or /sys. The largest is /proc/interrupts: 256 CPUs and 2,000 interrupts make 6 MB of it.
pub const FILE_BYTES_MAX: u64 = 32 << 20;
/// How often a file is opened again that says "try again": the kernel does when somebody mounts or renames something
/// while it follows links below a root (openat2(2), EAGAIN), which takes a microsecond each time.
pub const OPEN_TRIES: usize = 1_000;
/// A snapshot: some thousand small files and one large one.
pub const SNAPSHOT_BYTES_MAX: u64 = 256 << 20;
/// Interfaces that are read; a host of containers has some thousand virtual ones.
pub const INTERFACES_MAX: usize = 4_096;
/// Queues of one interface: hardware has up to some hundred, a virtual device may claim 4,096.
pub const QUEUES_MAX: usize = 4_096;
/// Processes whose names are read in search of daemons.
pub const PROCESSES_MAX: usize = 16_384;
/// What the kernel says at once by netlink: 32 KiB of a list, and the one reply to a question of ethtool's has 16 KiB when
/// an indirection table has 4,096 entries.
pub const NETLINK_BYTES_MAX: usize = 64 << 10;
/// Messages of one list by netlink; the rules of a node of a large cluster are some hundred thousand.
pub const NETLINK_ANSWERS_MAX: usize = 1 << 20;
/// How often such a list is asked for again that changed while it was told: what changes more often than that is not known.
pub const NETLINK_TRIES: usize = 20;
/// Control groups from a process up to the root: systemd and Kubernetes nest six to ten.
pub const GROUPS_MAX: usize = 64;
/// Threads of one process that are looked at; servers have some for each CPU.
pub const THREADS_MAX: usize = 16_384;
/// Descriptors of one process that are looked at for its listening sockets, which it opens before connections.
pub const DESCRIPTORS_MAX: usize = 65_536;
/// Disks and partitions read; a storage server has several hundred.
pub const DISKS_MAX: usize = 4_096;
/// Destinations kept per sample of local ports; a finding names only the fullest.
pub const PORT_USES_MAX: usize = 4;
