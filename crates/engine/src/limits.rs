//! Every bound of the engine, each with its reason.

use std::time::Duration;

/// Size of one buffer. A request head must fit into one (its own limit lies below this); larger buffers would spoil the
/// cache for the small messages that dominate, smaller ones would double the system calls of bodies. The 512 bytes above
/// 16 KiB hold what TLS adds to the largest record (at most 5 + 256, RFC 8446 5.2), which is so decrypted in place.
pub const BUFFER_BYTES: usize = 16 * 1024 + 512;

/// Size of a wide buffer, into which sockets are received from that carry bulk: of 1 MiB a quarter of the calls, and a response
/// of 30 KB in one. What a segment of the loopback holds, which is what large ones arrive in.
pub const WIDE_BUFFER_BYTES: usize = 64 * 1024;

/// Wide buffers one core may have in use at a time: 8 MiB. More than take turns on a core, and no more than this is
/// held of it by readers that have stalled; past that bulk is received into buffers as everything else is.
pub(crate) const WIDE_BUFFERS_MAX: usize = 128;

/// Buffers one core may have in use at a time: 1 GiB. Past that a connection is refused service instead of the machine
/// its memory. An idle or stalled connection holds none, so this is bounded by what is really in flight.
pub(crate) const BUFFERS_MAX: usize = 64 * 1024;

/// Free buffers a core keeps for reuse: 8 MiB. More than a burst of this size goes back to the allocator.
pub(crate) const BUFFERS_FREE_MAX: usize = 512;

/// Size of a block for the future of one request: a forwarded one needs most of it. A larger one does not compile.
pub(crate) const BLOCK_BYTES: usize = 1280;

/// Free blocks a core keeps for reuse: 1.25 MiB.
pub(crate) const BLOCKS_FREE_MAX: usize = 1024;

/// Buffers lent to the kernel at a time with io_uring. It must exceed the receive completions of one loop turn, or
/// multishot receives end with ENOBUFS and have to be armed again; a power of two, as the kernel demands.
pub(crate) const RING_BUFFERS: u16 = 256;

/// Empty queues for parts that a thread keeps for reuse: what the sends of one turn need, which leave with its end.
pub(crate) const QUEUES_FREE_MAX: usize = 256;

/// Parts for which such a queue has room at most: what a send of a response has, and a few. What had more is freed.
pub(crate) const QUEUE_CAPACITY_KEPT: usize = 32;

/// Free headers of sends of several parts that a ring keeps for reuse: as above.
pub(crate) const MESSAGES_FREE_MAX: usize = 256;

/// Entries of the submission queue. A full queue is submitted early, so this only sets how much is batched.
pub(crate) const SUBMISSION_ENTRIES: u32 = 1024;

/// Entries of the completion queue; completions past this are kept by the kernel (NODROP) at a higher cost.
pub(crate) const COMPLETION_ENTRIES: u32 = 8192;

/// Events taken by one epoll_wait. With more the first connections of a batch would wait for the last.
pub(crate) const EVENTS_PER_WAIT: usize = 256;

/// Sockets that io_uring_enter(2) looks after at least before it returns, where it has to: `IO_LOCAL_TW_DEFAULT_MAX` of Linux
/// 6.14 and later; before that there is no such bound.
pub(crate) const DEFERRED_WORK_PER_ENTER: usize = 20;

/// Bytes after which a multishot receive ends: with the first full buffer, which is what bulk begins with. Of requests
/// with 100 bytes it takes 164 until it is armed again.
pub(crate) const MULTISHOT_BYTES: u32 = BUFFER_BYTES as u32;

/// Received buffers that wait in a socket before its multishot receive is cancelled: back-pressure for a peer that sends
/// little by little, each time a buffer.
pub(crate) const RECEIVED_MAX: usize = 4;

/// A receive of so many bytes says that a socket carries bulk: they do not fit a buffer with anything else.
pub(crate) const BULK_BYTES_MIN: usize = BUFFER_BYTES;

/// Short receives in a row after which a socket that has received bulk counts as one of small messages again. A body that
/// arrives as fast as it is taken has short receives, too.
pub(crate) const BULK_ENDS_AFTER: u8 = 16;

/// A portion of this size makes a relayed flow bulk, which then goes through a pipe, past our memory. It costs less from
/// here on only: messages of 100 bytes 2.98 us by splice(2) and 2.80 by a buffer, of 8 KB 3.1 us either way, of 16 KiB
/// 3.3 and 3.5; what comes as fast as it can 5.1 and 7.5 us for each 16 KiB (epoll), 5.7 and 7.4 (io_uring).
pub(crate) const SPLICE_FROM: usize = 16 * 1024;

/// Bytes moved into a pipe at a time, and what it is asked to hold: of 1 MiB that is forwarded, 20 calls move it, where
/// pipes of the 64 KiB that they hold otherwise (pipe(7)) take 41.
pub(crate) const SPLICE_BYTES: usize = 256 * 1024;

/// Bytes moved into a pipe at a time while more than [`PIPES_WIDE`] are in use.
pub(crate) const SPLICE_BYTES_NARROW: usize = 64 * 1024;

/// Pipes one core may have in use at a time: 512 descriptors. Flows past that copy. Pipes are held only while bytes are in
/// them, so that is how many peers stall.
pub(crate) const PIPES_MAX: usize = 256;

/// Pipes in use that may hold [`SPLICE_BYTES`] each: more than take turns on one core. With it 40 MiB stand in the pipes of
/// a core when all peers stall.
pub(crate) const PIPES_WIDE: usize = 128;

/// Free pipes a core keeps for reuse: what flows take turns with on one core. Making one costs as much as it saves.
pub(crate) const PIPES_FREE_MAX: usize = 64;

/// Bytes that pass without a copy of ours and count like one operation of those a task may finish in a row: 128 KiB cost what
/// 16 KiB through a buffer do.
pub(crate) const BYTES_PER_OPERATION: usize = 128 * 1024;

/// Bytes of one part that the kernel is asked to send at a time with io_uring, whose lengths have 32 bits; Linux takes no
/// more than 2 GiB in one call anyway (send(2)).
pub(crate) const SEND_BYTES_MAX: usize = 1 << 30;

/// Parts of one vectored send. Linux takes 1,024 (UIO_MAXIOV); responses rarely have more than three.
pub(crate) const PARTS_PER_SEND: usize = 8;

/// Sends of up to this size leave together at the end of a turn (epoll). Larger ones leave at once: what was just
/// received is still in the CPU's cache then.
pub(crate) const DEFERRED_BYTES_MAX: usize = 4096;

/// Sends of this size and more leave at once with io_uring, too, by a call of their own (half of what a send of bulk has): what
/// the call costs is 1 % of what the kernel does in it.
pub(crate) const SENT_AT_ONCE_FROM: usize = 32 * 1024;

/// So many sends leave together at most: the first of them waits for the work of all the others, which is about a quarter
/// of a millisecond.
pub(crate) const DEFERRED_SENDS_MAX: usize = 64;

/// Bytes one sendfile call may move, so that one fast reader cannot hold a core for long: 0.2 ms.
pub(crate) const SENDFILE_BYTES: usize = 1024 * 1024;

/// Bytes of a file that count like one operation of those a task may finish in a row: after a whole call of sendfile the
/// others have their turn.
pub(crate) const FILE_BYTES_PER_OPERATION: u64 = 16 * 1024;

/// Bytes that one receive may drop, for the same reason.
pub(crate) const DROP_BYTES: u64 = 1024 * 1024;

/// Where the congestion control paces (BBR), up to this much of a file leaves in one packet with its head (MSG_MORE): what fits
/// the largest segment there is. It saves 1.0 to 1.5 us of 7 for 9 to 40 KB on loopback. The head of a longer file goes
/// ahead: it is paced like a packet of its size, but a joined burst of 128 KiB like one of an unknown rate, which cost 88
/// us instead of 42. Elsewhere every head is joined: 30 us instead of 36.
pub(crate) const FILE_JOINED_PACED_MAX: u64 = 64 * 1024;

/// Bytes that wait in the kernel until a client lets it send them (TCP_NOTSENT_LOWAT), give or take a segment, before it
/// has shown how fast it takes them. Left to itself the kernel takes what it believes a round trip might need, up to the
/// 4 MiB of tcp_wmem: 10,000 clients that asked for a large file and read it byte by byte filled all the memory that Linux
/// grants TCP, 2.2 GiB on a machine of 24, from where on it was luck who else was served. With this they hold 0.4 GiB. Less
/// would let a fast link run dry between two turns of the core; 16 KiB is also what HTTP/2 servers choose, whose streams
/// must not wait behind each other.
pub(crate) const UNSENT_MIN: u32 = 16 * 1024;

/// Bytes that wait there for a client that takes them quickly: as much as one call of sendfile moves, so that a file of
/// 1 MiB is one call and no wake-up. Measured with 100 connections, CPU time for each of them: 116 us, with half of this
/// 155, with 64 KiB 255.
pub(crate) const UNSENT_MAX: u32 = 1024 * 1024;

/// What a client takes in this time may wait for it: a refill every second is no work.
pub(crate) const UNSENT_TIME: Duration = Duration::from_secs(1);

/// How long a client is measured at least: bytes leave in bursts, and the next ones wait for a turn.
pub(crate) const UNSENT_MEASURED_MIN: Duration = Duration::from_millis(25);

/// What may wait beyond [`UNSENT_MIN`] for all clients of a process, which is what those hold at most that were quick and
/// then stalled: this part of the memory that the kernel lets TCP have before it begins to save, 0.3 GiB of 24. Most
/// of what waits there are pages of files, which have their memory anyway, but the kernel counts them.
pub(crate) const UNSENT_SHARE: u64 = 4;

/// The same for one core where the kernel does not say what TCP may have: 65 clients.
pub(crate) const UNSENT_EXTRA_USUAL: u64 = 64 * 1024 * 1024;

/// Accept queue asked of the kernel, which lowers it to net.core.somaxconn.
pub(crate) const LISTEN_BACKLOG: i32 = 65_535;

/// Connections that a core may have more than another one before it hands new ones over, where the kernel chooses by CPU:
/// clients that open theirs at the same time are not served in step, and a connection that is handed over costs what
/// choosing by CPU saves.
pub(crate) const UNEVEN_FROM: usize = 4;

/// The part of another core's connections that a core may have more beside [`UNEVEN_FROM`]: one half. Independent clients
/// hardly ever reach it: of 100 connections on two cores by chance, one time in 20 by one or two.
pub(crate) const UNEVEN_SHARE: usize = 2;

/// How long a core has to have clearly more connections before it hands one over: two slices of Linux's scheduler. Two
/// threads that begin at the same time were out of step by up to 20 connections without it.
pub(crate) const UNEVEN_FOR: Duration = Duration::from_millis(5);

/// For how long connections are handed over at once after such a wait, which holds up accepting, half a percent of the time
/// at most; and until no core has two more than another: with 6 of 8 on the CPU of their client the rate was 0.77 of that
/// by hash.
pub(crate) const UNEVEN_SETTLED: Duration = Duration::from_secs(1);

/// Connections that one listener may take from its queue before anybody looks at the bound on them. An accept that stays
/// armed takes all that wait, which is a burst of this size at most where nobody means harm; with less left they are
/// accepted one by one.
pub(crate) const MULTISHOT_ACCEPTS: usize = 1024;

/// Of the tasks that have yielded, those that go on between two looks at the kernel. Each does up to 0.3 ms of work before
/// it yields again (32 KiB compressed, a MiB sent from a file), and everybody else waits for all of them.
pub(crate) const YIELDED_PER_TURN: usize = 4;

/// Tasks run between two looks at the kernel, so that a task that is always ready cannot starve the sockets.
pub(crate) const TASKS_PER_TURN: usize = 1024;

/// How often a core that busy-polls lets the task go on that waits for the expected bytes, between two looks at the driver, unless
/// something has come. What is reported of others waits for all of them: 5 us with the calls of each.
pub(crate) const ASKS_PER_LOOK: usize = 4;

/// How often its receive asks the kernel each time. A call that finds nothing takes 0.2 us, and a step of a task with a look at the
/// clock half of that; timers are late by so many calls at most, 1.5 us.
pub(crate) const TRIES_PER_ASK: usize = 8;

/// So many receives in a row from one socket, and none from another, make it the one that is asked: with two that take turns,
/// asking one of them would keep the other waiting.
pub(crate) const ALONE_MIN: u32 = 8;

/// Looks at the driver, 5 us each, for which it reports nothing of the socket that is asked, unless something comes. For what only the
/// driver says, that the connection has ended in both directions say, a millisecond is soon enough.
pub(crate) const LOOKS_APART_MAX: u32 = 200;

/// The longest wait a driver is asked for. Whoever waits longer waits again. The kernel's own bounds are farther away, but
/// not by so much that no time that a user may write reaches them: epoll_wait(2) counts milliseconds in 31 bits.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(24 * 3600);

/// A turn that sees what has happened later than this is a stall: a turn with hundreds of messages takes 1 ms, and a
/// scheduler's slice is a few.
pub const STALL_MIN: Duration = Duration::from_millis(20);

/// How often a core that busy-polls looks at the CPU time of its thread, which costs a system call of 0.2 us: seldom enough to cost
/// nothing, and often enough that what a thread loses of a span, a scheduler's slice of some milliseconds, is told from the rest.
pub(crate) const WORK_SPAN: Duration = Duration::from_millis(4);

/// Stalls that a core remembers. Who asks has waited for seconds, and more stalls than this in that time add up to what no
/// bound depends on.
pub(crate) const STALLS_KEPT: usize = 8;

/// How long a stopping core lets its tasks finish unless the caller says otherwise.
pub const DRAIN_DEFAULT: Duration = Duration::from_secs(10);

/// Receives and sends a task may finish in a row without waiting: 64 buffers. A peer that is always faster than we are
/// could otherwise hold the core for as long as it likes.
pub(crate) const OPERATIONS_PER_POLL: u32 = 64;

/// Kinds of work that a core tells apart: what it does itself, and tasks of some ten kinds. Their counters are 800 bytes of
/// each core.
pub(crate) const WORKS_MAX: usize = 20;

/// Counters of one network driver: a hundred for each of some hundred queues are the most that is known.
pub(crate) const DRIVER_COUNTERS_MAX: usize = 64 * 1024;

/// Room for counters that a driver gains between our question how many there are and the next: twice as many queues of
/// those that are known. 2.5 MB for a moment.
pub(crate) const DRIVER_COUNTERS_SPARE: usize = 64 * 1024;

/// Mail that one core may have and has not run yet. Mail is rare (a check that is done, a new configuration, a question of an
/// administrator); a core that is this far behind hangs.
pub(crate) const MAIL_MAX: usize = 1024;

/// Tasks that other threads have woken and the core has not yet. With more it wakes all it has, which is never wrong.
pub(crate) const WAKES_MAX: usize = 1024;

/// Cores of one process that other threads can speak to: what the 12 bits of a waker tell apart. Linux knows 8,192 CPUs at
/// most, and a program with more cores than this would have no memory left for connections.
pub(crate) const CORES_MAX: usize = 1 << 12;

/// Messages of one call for datagrams. Linux takes 1,024 (sendmmsg(2)); with 32 the call itself is a thirtieth of what it
/// would cost each, and the largest take 2 MiB, which are copied in a quarter of a millisecond.
pub(crate) const DATAGRAMS_PER_CALL: usize = 32;

/// Bytes of a datagram's payload: 65,535 less the headers of IPv4 and UDP.
pub(crate) const DATAGRAM_BYTES_MAX: usize = 65_507;

/// Bytes of a message that is received, whether it is one datagram or several of a flow (UDP_GRO): lengths have 16 bits.
pub(crate) const MESSAGE_BYTES_MAX: usize = 65_535;

/// Datagrams that the kernel makes of one message: `UDP_MAX_SEGMENTS` of Linux, which has grown to 128 since; the second half
/// would save next to nothing.
pub(crate) const SEGMENTS_MAX: usize = 64;

/// Datagrams that wait in a socket of a simulated network; those that find no room are lost, as in a kernel.
pub(crate) const SIMULATED_DATAGRAMS_MAX: usize = 256;

/// How long a thread that has been joined may take to be gone: the kernel does a few steps more, on a machine that has no CPU
/// for it.
pub(crate) const THREAD_END: Duration = Duration::from_secs(2);

/// Bytes of what the kernel's verifier says of a program that it refuses. Ours are short, and the reason stands at the end.
pub(crate) const VERIFIER_LOG_BYTES: usize = 64 << 10;

/// How often what a pending signal interrupts is tried: libbpf tries as often to load a program.
pub(crate) const INTERRUPTED_TRIES: u32 = 5;

/// Bytes of a frame that leaves by XDP: a page of 4 KiB less what the kernel keeps before and behind a frame in it.
pub const FRAME_BYTES_MAX: usize = 3300;

/// Frames that the kernel makes between two looks at whether somebody wants something else: what it takes when nothing is said.
pub(crate) const FRAMES_PER_BATCH: u32 = 64;

/// Frames of one call, about five milliseconds of them: its fixed price is a thousandth then, and the thread comes back soon
/// enough to see that it is over.
pub const FRAMES_PER_CALL: u32 = 16_384;
