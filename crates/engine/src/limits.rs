//! All limits of the engine, each with its reason.

use std::time::Duration;

/// Size of one buffer. A request head must fit into one (its own limit is lower); larger buffers would spoil the cache
/// for the small messages that dominate, smaller ones would double the system calls of bodies. The 512 bytes above 16
/// KiB hold the overhead of the largest TLS record (at most 5 + 256, RFC 8446 5.2), so that it is decrypted in place.
pub const BUFFER_BYTES: usize = 16 * 1024 + 512;

/// Size of a wide buffer, for receives of bulk data: a quarter of the calls for 1 MiB, and one call for a response of
/// 30 KB. Equals the largest segment of the loopback.
pub const WIDE_BUFFER_BYTES: usize = 64 * 1024;

/// Maximum number of wide buffers that one core may have in use at a time: 8 MiB. More than the flows that are active
/// at once on a core; beyond this number, for example with many stalled readers, bulk data is received into normal
/// buffers.
pub(crate) const WIDE_BUFFERS_MAX: usize = 128;

/// Maximum number of buffers that one core may have in use at a time: 1 GiB. Beyond this a connection is refused, so
/// that the machine keeps its memory. Idle and stalled connections hold no buffer, so only data in flight counts.
pub(crate) const BUFFERS_MAX: usize = 64 * 1024;

/// Maximum number of free buffers that a core keeps for reuse: 8 MiB. Buffers of larger bursts return to the allocator.
pub(crate) const BUFFERS_FREE_MAX: usize = 512;

/// Size of a block for the future of one request, which a forwarded request nearly fills. A larger one does not
/// compile.
pub(crate) const BLOCK_BYTES: usize = 1280;

/// Maximum number of free blocks that a core keeps for reuse: 1.25 MiB.
pub(crate) const BLOCKS_FREE_MAX: usize = 1024;

/// Number of buffers lent to the kernel at a time with io_uring. It must exceed the receive completions between two
/// polls of the kernel, or multishot receives end with ENOBUFS and have to be armed again. The kernel requires a power
/// of two.
pub(crate) const RING_BUFFERS: u16 = 256;

/// Maximum number of empty part queues that a thread keeps for reuse: enough for the sends between two polls of the
/// kernel.
pub(crate) const QUEUES_FREE_MAX: usize = 256;

/// Largest capacity of a part queue that is kept: the parts of a typical response and a few more.
pub(crate) const QUEUE_CAPACITY_KEPT: usize = 32;

/// Maximum number of free headers of vectored sends that a ring keeps for reuse: enough for the sends between two polls
/// of the kernel.
pub(crate) const MESSAGES_FREE_MAX: usize = 256;

/// Number of entries of the submission queue. A full queue is submitted early, so this only limits batching.
pub(crate) const SUBMISSION_ENTRIES: u32 = 1024;

/// Number of entries of the completion queue; the kernel keeps further completions (NODROP) at a higher cost.
pub(crate) const COMPLETION_ENTRIES: u32 = 8192;

/// Maximum number of events taken by one epoll_wait. With more, the first connections of a batch would wait for the
/// last.
pub(crate) const EVENTS_PER_WAIT: usize = 256;

/// Minimum number of sockets that one io_uring_enter(2) processes before it returns: `IO_LOCAL_TW_DEFAULT_MAX` of Linux
/// 6.14 and later; earlier versions have no minimum.
pub(crate) const DEFERRED_WORK_PER_ENTER: usize = 20;

/// Number of bytes after which a multishot receive ends: one full buffer, the start of bulk data, or 164 requests of
/// 100 bytes.
pub(crate) const MULTISHOT_BYTES: u32 = BUFFER_BYTES as u32;

/// Number of received buffers waiting in a socket at which its multishot receive is cancelled: back-pressure for a peer
/// that sends small pieces, since each piece uses a buffer.
pub(crate) const RECEIVED_MAX: usize = 4;

/// A receive of this size marks a socket as carrying bulk data: it leaves no room in a buffer.
pub(crate) const BULK_BYTES_MIN: usize = BUFFER_BYTES;

/// Number of consecutive short receives after which a socket is no longer bulk; a body that is read as it arrives has
/// some, too.
pub(crate) const BULK_ENDS_AFTER: u8 = 16;

/// A read of this size makes a relayed flow bulk, which then goes through a pipe. Below this a splice is not cheaper:
/// messages of 100 bytes take 2.98 us by splice(2) and 2.80 us by a buffer, messages of 8 KB 3.1 us either way,
/// messages of 16 KiB 3.3 and 3.5 us; a continuous flow 5.1 and 7.5 us for each 16 KiB (epoll), 5.7 and 7.4 us
/// (io_uring).
pub(crate) const SPLICE_FROM: usize = 16 * 1024;

/// Number of bytes moved into a pipe at a time, and the requested capacity of the pipe: 20 calls per MiB, 41 with 64
/// KiB.
pub(crate) const SPLICE_BYTES: usize = 256 * 1024;

/// Number of bytes moved into a pipe at a time while more than [`PIPES_WIDE`] are in use.
pub(crate) const SPLICE_BYTES_NARROW: usize = 64 * 1024;

/// Maximum number of pipes that one core may have in use at a time: 512 descriptors. Further flows are copied. A pipe
/// is in use only while it holds bytes, so this bounds the number of stalled peers that occupy one.
pub(crate) const PIPES_MAX: usize = 256;

/// Number of pipes in use that may hold [`SPLICE_BYTES`]: more than a core's active flows. All pipes of a core hold up
/// to 40 MiB.
pub(crate) const PIPES_WIDE: usize = 128;

/// Maximum number of free pipes that a core keeps for reuse, as many as active flows. Making a pipe costs as much as a
/// splice saves.
pub(crate) const PIPES_FREE_MAX: usize = 64;

/// Number of spliced bytes that count as one operation of a task: 128 KiB cost as much as 16 KiB through a buffer.
pub(crate) const BYTES_PER_OPERATION: usize = 128 * 1024;

/// Maximum number of bytes of one part in an io_uring send, whose lengths have 32 bits; Linux takes at most 2 GiB per
/// call (send(2)).
pub(crate) const SEND_BYTES_MAX: usize = 1 << 30;

/// Maximum number of parts in one vectored send. Linux takes 1,024 (UIO_MAXIOV); responses rarely have more than three.
pub(crate) const PARTS_PER_SEND: usize = 8;

/// Sends of up to this size are deferred until just before the next poll of the kernel (epoll). Larger ones leave at
/// once, still in the cache.
pub(crate) const DEFERRED_BYTES_MAX: usize = 4096;

/// Sends of at least this size are made at once with io_uring, too, by a system call (half the size of a typical bulk
/// send): the call itself costs 1 % of the kernel's work in it.
pub(crate) const DIRECT_SEND_BYTES_MIN: usize = 32 * 1024;

/// Maximum number of deferred sends that are made together: the first waits for all the others' tasks, about a quarter
/// of a millisecond.
pub(crate) const DEFERRED_SENDS_MAX: usize = 64;

/// Maximum number of bytes that one sendfile call may move, so that one fast reader cannot hold a core for long: 0.2
/// ms.
pub(crate) const SENDFILE_BYTES: usize = 1024 * 1024;

/// Number of bytes of a file that count as one operation of a task: after one full sendfile call other tasks run.
pub(crate) const FILE_BYTES_PER_OPERATION: u64 = 16 * 1024;

/// Maximum number of bytes that one receive may discard, for the same reason as [`SENDFILE_BYTES`].
pub(crate) const DROP_BYTES: u64 = 1024 * 1024;

/// With pacing congestion control (BBR), a file of up to this size is sent in one packet with its head (MSG_MORE): the
/// size of the largest segment. It saves 1.0 to 1.5 us of 7 us for 9 to 40 KB on loopback. The head of a longer file is
/// sent first: alone it is paced by its size, but a joined burst of 128 KiB is paced like one of an unknown rate, which
/// took 88 us instead of 42. Without pacing every head is joined: 30 us instead of 36.
pub(crate) const FILE_JOINED_PACED_MAX: u64 = 64 * 1024;

/// Number of unsent bytes that the kernel may hold for a client (TCP_NOTSENT_LOWAT), give or take a segment, before the
/// client's speed is known. By default the kernel takes as much as it expects a round trip to need, up to the 4 MiB of
/// tcp_wmem: 10,000 clients that requested a large file and read it byte by byte filled all the memory that Linux
/// grants TCP, 2.2 GiB on a machine with 24 GiB. With this limit they hold 0.4 GiB. Less would let a fast link run dry
/// between two turns of the core; HTTP/2 servers also use 16 KiB, so that streams do not wait for each other.
pub(crate) const UNSENT_MIN: u32 = 16 * 1024;

/// Number of unsent bytes that the kernel may hold for a fast client: one sendfile call, so that 1 MiB needs one call
/// and no wake-up. CPU time of each of 100 connections: 116 us; with half of this 155 us, with 64 KiB 255 us.
pub(crate) const UNSENT_MAX: u32 = 1024 * 1024;

/// The unsent bytes of a client may cover this time: one refill per second costs nothing.
pub(crate) const UNSENT_TIME: Duration = Duration::from_secs(1);

/// Minimum time over which a client's speed is measured: bytes leave in bursts, and the next burst waits for the next
/// poll of the kernel.
pub(crate) const UNSENT_MEASURED_MIN: Duration = Duration::from_millis(25);

/// Divisor for the unsent bytes beyond [`UNSENT_MIN`] of all clients of a process, which bounds the memory of clients
/// that were fast and then stalled: this part of the memory that the kernel lets TCP use without pressure, 0.3 GiB of
/// 24. Most of it is pages of files, which are in memory anyway, but the kernel counts them.
pub(crate) const UNSENT_BUDGET_DIVISOR: u64 = 4;

/// Limit on the unsent bytes beyond [`UNSENT_MIN`] on one core, if the kernel's memory limit for TCP is unknown: enough
/// for 65 clients.
pub(crate) const UNSENT_BUDGET_DEFAULT: u64 = 64 * 1024 * 1024;

/// Accept queue requested from the kernel, which limits it to net.core.somaxconn.
pub(crate) const LISTEN_BACKLOG: i32 = 65_535;

/// Number of connections by which a core may exceed another before it hands new ones over, if the kernel selects by
/// CPU: clients that connect together are not in step, and a connection that is handed over loses the benefit of that
/// selection.
pub(crate) const IMBALANCE_MIN: usize = 4;

/// Divisor of another core's number of connections: a core may have more than that number by the quotient, here one
/// half, and [`IMBALANCE_MIN`]. Independent clients rarely reach it: of 100 connections on two cores, one time in 20 by
/// one or two.
pub(crate) const IMBALANCE_DIVISOR: usize = 2;

/// How long a core must have clearly more connections before it hands one over: two slices of Linux's scheduler.
/// Without it two threads that started at the same time differed by up to 20 connections.
pub(crate) const IMBALANCE_DURATION: Duration = Duration::from_millis(5);

/// For how long connections are handed over without a wait, after one wait: so waits delay accepting for at most 0.5 %
/// of the time. Meanwhile they are handed over until no core has two more than another: with 6 of 8 connections on
/// their client's CPU the rate was 0.77 of that by hash.
pub(crate) const IMBALANCE_MEMORY: Duration = Duration::from_secs(1);

/// Maximum number of connections that a listener may accept before the limit on connections is checked. An armed accept
/// takes all queued connections, and ordinary bursts are smaller than this; near the limit, connections are accepted
/// one by one.
pub(crate) const MULTISHOT_ACCEPTS: usize = 1024;

/// Maximum number of yielded tasks that run between two polls of the kernel. Each does up to 0.3 ms of work before it
/// yields again (compressing 32 KiB, sending 1 MiB of a file), and all other tasks wait for them.
pub(crate) const YIELDED_PER_TURN: usize = 4;

/// Maximum number of tasks run between two polls of the kernel, so that a task that is always ready cannot starve the
/// sockets.
pub(crate) const TASKS_PER_TURN: usize = 1024;

/// Number of times that a busy-polling core polls the task that waits for the expected bytes, between two polls of the
/// driver, unless bytes arrive. Events of other sockets wait for all of these polls: 5 us.
pub(crate) const DIRECT_POLLS_PER_LOOK: usize = 4;

/// Number of recv(2) calls in each direct poll. One without data takes 0.2 us, polling the task and reading the clock
/// half of that. Timers are late by at most this many calls: 1.5 us.
pub(crate) const RECEIVES_PER_DIRECT_POLL: usize = 8;

/// Number of consecutive receives from one socket that make it the expected socket; of two alternating sockets one
/// would be delayed.
pub(crate) const CONSECUTIVE_RECEIVES_MIN: u32 = 8;

/// Maximum number of polls of the driver, 5 us each, that do not report the expected socket, unless bytes arrive.
/// Events that only the driver reports, such as the end of the connection in both directions, may be a millisecond
/// late.
pub(crate) const LOOKS_WITHOUT_REPORTS_MAX: u32 = 200;

/// The longest wait requested from a driver; a longer wait is repeated. The kernel's own limits are larger, but a
/// configured time may exceed them: epoll_wait(2) takes milliseconds in 31 bits.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(24 * 3600);

/// A core that sees events later than this has stalled: hundreds of messages take 1 ms, a scheduler's slice a few ms.
pub const STALL_MIN: Duration = Duration::from_millis(20);

/// How often a core that busy-polls reads the CPU time of its thread, which takes 0.2 us: rarely enough to cost
/// nothing, and often enough to recognize the loss of a scheduler's slice of some milliseconds.
pub(crate) const WORK_SPAN: Duration = Duration::from_millis(4);

/// Maximum number of stalls that a core remembers. They are queried for waits of seconds, in which more stalls change
/// no decision.
pub(crate) const STALLS_KEPT: usize = 8;

/// How long a stopping core lets its tasks finish by default.
pub const DRAIN_DEFAULT: Duration = Duration::from_secs(10);

/// Maximum number of receives and sends that a task may finish in a row without waiting: 64 buffers. A peer that is
/// always faster than this server could otherwise hold the core indefinitely.
pub(crate) const OPERATIONS_PER_POLL: u32 = 64;

/// Maximum number of kinds of work in a core's profile: the core's own kinds, and some ten kinds of tasks. Their
/// counters take 800 bytes per core.
pub(crate) const WORKS_MAX: usize = 20;

/// Maximum number of counters of one network driver: known drivers have at most about a hundred for each of some
/// hundred queues.
pub(crate) const DRIVER_COUNTERS_MAX: usize = 64 * 1024;

/// Room for counters that a driver adds between two system calls: twice the queues of known drivers. 2.5 MB,
/// temporarily.
pub(crate) const DRIVER_COUNTERS_SPARE: usize = 64 * 1024;

/// Maximum number of messages from other threads that wait for one core. They are rare (a finished check, a new
/// configuration): a core with this many hangs.
pub(crate) const MAIL_MAX: usize = 1024;

/// Maximum number of pending wake-ups from other threads. With more it wakes all its tasks, which is always correct.
pub(crate) const WAKES_MAX: usize = 1024;

/// Maximum number of cores of one process that can be woken by other threads: the 12 bits of a waker. Linux supports at
/// most 8,192 CPUs, and a program with more cores than this would have no memory left for connections.
pub(crate) const CORES_MAX: usize = 1 << 12;

/// Maximum number of messages in one datagram call. Linux takes 1,024 (sendmmsg(2)); with 32 the cost of the call per
/// message is a thirtieth, and the largest batch has 2 MiB, which are copied in a quarter of a millisecond.
pub(crate) const DATAGRAMS_PER_CALL: usize = 32;

/// Maximum size of a datagram's payload in bytes: 65,535 less the headers of IPv4 and UDP.
pub(crate) const DATAGRAM_BYTES_MAX: usize = 65_507;

/// Maximum size in bytes of a received message, which is one datagram or several of a flow (UDP_GRO): lengths have 16
/// bits.
pub(crate) const MESSAGE_BYTES_MAX: usize = 65_535;

/// Maximum number of datagrams that the kernel makes of one message: `UDP_MAX_SEGMENTS` before it became 128, which
/// saves little more.
pub(crate) const SEGMENTS_MAX: usize = 64;

/// Maximum number of datagrams that wait in a socket of a simulated network; further ones are lost, as in a kernel.
pub(crate) const SIMULATED_DATAGRAMS_MAX: usize = 256;

/// How long a joined thread may take to disappear: the kernel does a few more steps, perhaps without a free CPU.
pub(crate) const THREAD_END: Duration = Duration::from_secs(2);

/// Size in bytes of the buffer for the kernel verifier's log of a refused program. Our programs are short, and the
/// reason is at the end.
pub(crate) const VERIFIER_LOG_BYTES: usize = 64 << 10;

/// Maximum number of attempts at a call that a pending signal interrupts: libbpf's number of attempts to load a
/// program.
pub(crate) const INTERRUPTED_TRIES: u32 = 5;

/// Maximum size in bytes of a frame sent by XDP: a page of 4 KiB less the kernel's headroom and tailroom.
pub const FRAME_BYTES_MAX: usize = 3300;

/// Number of frames that the kernel makes before it checks for other work: its default.
pub(crate) const FRAMES_PER_BATCH: u32 = 64;

/// Number of frames in one call, which takes about five milliseconds: the fixed cost is a thousandth, and the thread
/// can still stop in time.
pub const FRAMES_PER_CALL: u32 = 16_384;
