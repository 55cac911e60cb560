//! All limits of the server, with their reasons.

pub(crate) mod http2;
mod names;

use std::time::Duration;

use onrush_config::limits::CACHE_CONTROL_BYTES_MAX;

pub(crate) use names::*;

/// Response buffers queued before they are sent while more pipelined requests wait: 64 KiB in one call. This also
/// limits the memory for a client that pipelines without reading.
pub(crate) const OUTPUT_BUFFERS_MAX: usize = 4;

/// Maximum number of connections that a core lists before other tasks run: a few tenths of a millisecond, with two
/// system calls each if sorted.
pub(crate) const CONNECTIONS_PER_TURN: usize = 128;

/// Default number of connections in a listing: a few screens.
pub(crate) const CONNECTIONS_LISTED: usize = 100;

/// Maximum number of connections in a listing: half a megabyte, and two milliseconds of a core.
pub(crate) const CONNECTIONS_LISTED_MAX: usize = 1000;

/// Smallest remainder of a body that is spliced: this many bytes take two system calls with a pipe and eight with
/// buffers.
pub(crate) const SPLICED_MIN: u64 = 64 * 1024;

/// Time for which a connection that is closed early is still read, so that a reset does not destroy the response (RFC
/// 9112 9.6). One round trip is needed; nginx's `lingering_timeout` is 5 s.
pub(crate) const LINGER: Duration = Duration::from_secs(2);

/// Maximum number of bytes discarded while lingering; a client that sends more within [`LINGER`] is reset. Browsers
/// show the response to a refused body only after sending all of it (Firefox, HTTP/1), so usually the time is the
/// effective limit.
pub(crate) const LINGER_BYTES: usize = 64 * 1024 * 1024;

/// Largest remainder of a request body that is read and discarded after the response, to keep the client's connection:
/// 0.2 s at 10 Mbit/s, like a new connection with TLS. A faster client has already sent most of it.
pub(crate) const UNREAD_REST_MAX: u32 = 256 * 1024;

/// As [`LINGER`], for a connection that was idle when it was closed, so that only a request may have crossed the close,
/// or while other connections wait for descriptors: one round trip around the world.
pub(crate) const LINGER_LAST: Duration = Duration::from_millis(500);

/// Idle time after which a stopping server closes a connection. If a client's requests are a Poisson process, the
/// probability that one crosses the close is at most the round-trip time over (e times this), at any rate: 1 in 27,000
/// for 0.1 ms. Twice the time would halve that and delay the stop.
pub(crate) const STOP_IDLE: Duration = Duration::from_secs(1);

/// Time for which a stopping server waits for TCP handshakes in progress: one round trip for nearly all clients. Later
/// ones find themselves connected and are reset.
pub(crate) const STOP_HANDSHAKES: Duration = Duration::from_millis(200);

/// Interval of checks whether TCP handshakes in progress have ended at a stop, and the whole wait if all clients are on
/// this machine.
pub(crate) const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// One in this many descriptors is reserved for resources kept while unused: connections to servers and open files.
/// They save a connect or an open, but are dispensable.
pub(crate) const IDLE_DESCRIPTORS_SHARE: u64 = 5;

/// One in this many descriptors is reserved for pipes, which save copies of long bodies but are dispensable.
pub(crate) const PIPES_SHARE: u64 = 20;

/// Maximum number of pipes per core for long bodies and tunnels. Few machines have more of them stalled at a time.
pub(crate) const PIPES_PER_CORE_MAX: u64 = 256;

/// Interval at which a listener without free descriptors checks again, because other cores may have released some.
pub(crate) const SHORTAGE_CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// Time without a waiting connection after which the shortage of descriptors is over; shorter would fill the log.
pub(crate) const SHORTAGE_END: Duration = Duration::from_secs(1);

/// Number of idle connections closed per check, longest idle first: nginx's number. It makes room for 6,400 clients per
/// second.
pub(crate) const IDLE_CLOSED_PER_CHECK: usize = 32;

/// Idle time after which a connection may be closed for another: its next request may arrive within a round trip.
pub(crate) const SHORTAGE_IDLE_MIN: Duration = Duration::from_millis(200);

/// Pause after a failed accept, so that the accept loop does not spin.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Maximum number of connections accepted in a row before other tasks run.
pub(crate) const ACCEPTS_PER_TURN: usize = 64;

/// Number of Onrush instances in Via above which a request is considered to be in a loop; real chains have up to three.
pub(crate) const HOPS_MAX: usize = 8;

/// Maximum number of interim responses (1xx) to one request. Applications send one or two; a server that sends them
/// without end would reset the read timeout each time, and its client would never get a response.
pub(crate) const INTERIM_RESPONSES_MAX: usize = 16;

/// Maximum number of finished streams that a multiplexed connection keeps for reuse: about as many as are in progress
/// at a time, since most requests take only a moment. At most 4 KiB each.
pub(crate) const MULTIPLEXED_SPARE_MAX: usize = 128;

/// Maximum number of objects for parked requests that a core keeps for reuse, 300 bytes each.
pub(crate) const PARKED_SPARE_MAX: usize = 512;

/// Receive window of a stream to a server. A stalled stream holds this much data and 5 KB of state: less than 64 KiB.
pub(crate) const MULTIPLEXED_WINDOW: u32 = 56 * 1024;

/// Number of bytes of unsent frames on a multiplexed connection at which no more body data is written: the size of one
/// send.
pub(crate) const MULTIPLEXED_UNSENT_MAX: usize = 64 * 1024;

/// Largest lag of `Date`; the field has a resolution of one second.
pub(crate) const DATE_LAG: Duration = Duration::from_millis(100);

/// Maximum number of log lines per second on each core about failed requests, so that a server that is down cannot fill
/// the disk.
pub(crate) const LOG_LINES_PER_SECOND: u32 = 10;

/// Interval between warnings about lost access log lines or spans.
pub(crate) const LOSS_WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// Interval at which pools check for expired connections.
pub(crate) const POOL_SWEEP: Duration = Duration::from_secs(1);

/// Largest file kept in memory, to be sent in one call with its head: the file and any head of a file (300 bytes) fit
/// one buffer. For larger files sendfile(2) is cheaper.
pub(crate) const FILE_IN_MEMORY_MAX: usize = 16 * 1024;

/// Maximum number of files that a core caches per route: more than the frequently used part of most sites, and at most
/// 64 MiB of content with the previous limit. Heads and names take 1 KiB each; up to three compressed forms of each may
/// be added.
pub(crate) const FILES_MAX: usize = 4096;

/// Maximum number of cached files above [`FILE_IN_MEMORY_MAX`], each with an open descriptor; fewer if the descriptor
/// limit is low.
pub(crate) const FILES_OPEN_MAX: usize = 256;

/// Largest error page in bytes, kept in memory by each core; ten times a typical page with style and an image.
pub(crate) const ERROR_PAGE_BYTES_MAX: u64 = 1 << 20;

/// Maximum number of directory entries listed. Each takes a system call of some 1.5 us, during which the core does
/// nothing else.
pub(crate) const LISTING_ENTRIES_MAX: usize = 4096;

/// Time after which a cached file is checked for changes.
pub(crate) const FILE_CHECK: Duration = Duration::from_secs(1);

/// Time, or up to twice that, after which an unused file is removed from the cache, so that deleted files are freed.
pub(crate) const FILE_IDLE: Duration = Duration::from_secs(30);

/// A file modified within this many seconds may change again with the same timestamps: clocks of older kernels tick
/// every 10 ms, and FAT's every 2 s.
pub(crate) const FILE_SETTLED_SECONDS: u64 = 3;

/// Maximum number of attempts to read a small file that changes while it is read. After that, the last content is
/// served but not cached.
pub(crate) const FILE_READS_MAX: usize = 3;

/// Maximum number of ranges in one request. Apache's limit is 200; document viewers send some dozens. Overlapping
/// ranges are merged, so this limits the heads of parts, not repeated bytes.
pub(crate) const RANGES_MAX: usize = 100;

/// Ranges with a gap of at most this many bytes are merged, because the head of a part is longer.
pub(crate) const RANGE_GAP: u64 = 80;

/// Largest synthetic body: 1 EiB. Six times as much, for chunked framing, still fits 64 bits.
pub(crate) const SYNTHETIC_BYTES_MAX: u64 = 1 << 60;

/// Longest delay of a synthetic response: an hour exceeds all timeouts that might be tested.
pub(crate) const SYNTHETIC_TIME_MAX: Duration = Duration::from_secs(60 * 60);

/// Maximum number of bytes of a synthetic body written before other tasks run, as with sendfile.
pub(crate) const SYNTHETIC_BYTES_PER_TURN: usize = 512 * 1024;

/// Number of descriptors that each core opens at start: its driver's, its wake-up twice, and one spare.
pub(crate) const DESCRIPTORS_PER_CORE: u64 = 4;

/// Number of descriptors of an admin interface: its driver's, its wake-up twice, its listener twice, and one
/// connection.
pub(crate) const DESCRIPTORS_OF_ADMIN: u64 = 6;

/// One in this many of the descriptors left after the fixed needs is for further admin connections.
pub(crate) const ADMIN_SHARE: u64 = 16;

/// Maximum number of concurrent connections to an admin interface: a scraper, a probe, a few users.
pub(crate) const ADMIN_CONNECTIONS_MAX: usize = 16;

/// Number of descriptors of the process: standard streams, signals, a library being loaded, two access logs during a
/// reload.
pub(crate) const DESCRIPTORS_OF_PROGRAM: u64 = 14;

/// Number of descriptors for name resolution: its thread's, and the sockets for querying one name server.
pub(crate) const DESCRIPTORS_OF_RESOLVER: u64 = 4 + 2 * RESOLVING_MAX as u64;

/// Maximum number of attempts to bind an address in use: for two seconds (nginx: two and a half). After a server with
/// io_uring was killed, a kernel worker closes its listeners: 12 ms later on a quiet machine (Linux 6.18), over 150 ms
/// on a busy one.
pub(crate) const CLAIM_ATTEMPTS: u32 = 41;

/// Pause between two attempts to bind an address in use.
pub(crate) const CLAIM_PAUSE: Duration = Duration::from_millis(50);

/// Number of steps of effective weight per unit of configured weight; slow start needs some dozens. With the largest
/// weight (1,000) and group (4,096) the sum of all weights is below 2^31.
pub(crate) const WEIGHT_SCALE: u32 = 256;

/// Maximum number of random draws of servers, or of pairs, before all servers are examined. If half of the servers are
/// full, all draws fail once in 16 times.
pub(crate) const DRAWS_MAX: usize = 4;

/// Maximum number of points on a hash ring: 1 MiB, and half of that again for the index, per core and group.
pub(crate) const RING_POINTS_MAX: usize = 1 << 17;

/// Target number of points per server in a group of up to 256; at least half as many are used. The deviation of key
/// shares from the weights is about 5 %: one over the square root of the number of points. Larger groups have fewer
/// points per server.
pub(crate) const RING_POINTS_PER_MEMBER: usize = 512;

/// Maximum number of points on a hash ring that are tried to find a server. If half of the servers are full, all fail
/// once in 2^64 times.
pub(crate) const HASH_WALK_MAX: usize = 64;

/// Maximum number of requests in flight that a client may have in a group of limited capacity, per request that the
/// group can still accept (a dynamic threshold: Choudhury and Hahne, 1998). A single client gets 8/9 of the capacity
/// (all of 8 or fewer), two get 8/17 each, and the rest stays free for others. With 1, a proxy missing in `trust` would
/// get only half.
pub(crate) const CLIENT_REQUESTS_PER_FREE: u32 = 8;

/// Interval at which a queue checks again if all its clients have used up their shares: the end of a stream, or of a
/// request on another core, does not call the queue. The end of a request on the queue's own core calls it at once.
pub(crate) const SHARE_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Maximum number of clients counted for groups of limited capacity, 256 KiB; more clients are not limited. Few groups
/// can have as many requests in flight.
pub(crate) const GROUP_CLIENTS_MAX: usize = 1 << 15;

/// Number of requests in flight up to which a server is never considered overloaded by `hash`: a browser opens six
/// connections to a site, which should reach the same server if the address is the key.
pub(crate) const HASH_LOAD_FREE: u32 = 6;

/// Maximum load of a server with `hash`, as a percentage of its fair share. A lower value moves keys with every small
/// change of load; with a higher one, the server of a hot key has more load than necessary.
pub(crate) const HASH_LOAD_PERCENT_MAX: u32 = 125;

/// Number of steps of slow start to full weight, 5 % each. Each rebuilds balancers: 1 ms for a hash ring of a hundred
/// servers.
pub(crate) const SLOW_START_STEPS: u32 = 20;

/// First step of slow start: a tenth of the weight, Envoy's default. With less a server hardly warms up.
pub(crate) const SLOW_START_STEP_FIRST: u32 = 2;

/// Number of slices in a sliding window, so that a tenth expires at a time.
pub(crate) const WINDOW_SLICES: usize = 10;

/// Time for which requests count towards the retry budget: Finagle's default. A longer time would let an outage start
/// with hours of credit; a shorter one would lose it in a pause.
pub(crate) const RETRY_WINDOW: Duration = Duration::from_secs(10);

/// Number of retries that each core grants in [`RETRY_WINDOW`] regardless of the traffic, one per second: enough for
/// quiet groups, and too few to worsen an outage. Finagle grants ten per second.
pub(crate) const RETRIES_MIN: u32 = 10;

/// Window for the share of failures and the latencies of a server: Envoy's interval. The reference documents this
/// value.
pub(crate) const EJECT_WINDOW: Duration = Duration::from_secs(10);

/// Minimum number of requests to eject a server by its share of failures or its latency: a server with 10 % failures
/// appears to have 50 % once in 100,000 times.
pub(crate) const EJECT_REQUESTS_MIN: u32 = 20;

/// Longest ejection because of request outcomes, unless configured longer: Envoy's limit.
pub(crate) const EJECT_TIME_MAX: Duration = Duration::from_secs(300);

/// Delay before the first recheck of a server that could not be connected to, so that a brief failure costs capacity no
/// longer than this. It doubles each time, up to the configured time.
pub(crate) const RECHECK_WAIT: Duration = Duration::from_millis(250);

/// Connect timeout of a recheck: enough for one retransmitted SYN, and short enough not to delay a stop.
pub(crate) const RECHECK_TIMEOUT: Duration = Duration::from_millis(1_500);

/// Time for which a server on trial waits for a request that may be repeated; then any request is used.
pub(crate) const TRIAL_WAIT_MAX: Duration = Duration::from_secs(1);

/// Time for which requests that cannot be repeated avoid a server after a failure, if another is available. By then,
/// the requests in flight of a crashed server have failed.
pub(crate) const AVOID_TIME: Duration = Duration::from_secs(1);

/// Maximum number of times a request is sent again to a server that reset its stream without processing it (RFC 9113
/// 8.7). All connections of a group reach the server's limit of requests at about the same time, so the second attempt
/// often meets the next GOAWAY; a server that refuses every stream costs five streams per request at most.
pub(crate) const UNPROCESSED_REPEATS_MAX: u32 = 4;

/// Maximum number of servers tried for one request. If half of a group has just crashed, one request in 65,536 finds
/// none.
pub(crate) const SERVERS_TRIED_MAX: usize = 16;

/// Maximum number of doublings of a server's ejection time: 65,536 times any time exceeds all limits.
pub(crate) const EJECT_DOUBLINGS_MAX: u32 = 16;

/// Divisor of a timeout: the timeout does not count against a server if this core was stalled for the quotient. A
/// stalled core still detects servers that refuse connections or respond with failures.
pub(crate) const STALL_SHARE: u32 = 10;

/// A server is not ejected as slow if its latency exceeds that of its peers by less than this: the difference is not
/// noticeable, and scheduling on a busy machine alone causes such differences.
pub(crate) const EJECT_LATENCY_MARGIN: Duration = Duration::from_millis(10);

/// First checks are spread over this time, or the interval if shorter, instead of starting all at once.
pub(crate) const HEALTH_START_SPREAD: Duration = Duration::from_secs(1);

/// Maximum number of rate-limit keys in the whole server, 2 MiB. Only keys that have not yet recovered their full rate
/// count: with 10 requests/s and a burst of 20, those seen in the last two seconds.
pub(crate) const RATE_KEYS_MAX: usize = 1 << 17;

/// Maximum number of keys with requests in progress, in the whole server, 512 KiB: the active connections of a large
/// server.
pub(crate) const CONCURRENCY_KEYS_MAX: usize = 1 << 16;

/// Retry-After for too many concurrent requests: the smallest possible value.
pub(crate) const CONCURRENCY_RETRY_AFTER: Duration = Duration::from_secs(1);

/// Maximum number of attempts to count a request whose key is changed by other cores at the same time. Each failed
/// attempt means that another request was counted, so even on the largest machines this is never reached.
pub(crate) const ADMIT_ATTEMPTS_MAX: usize = 1024;

/// Maximum number of mirrored requests in progress per core: 2,500 requests/s for a group that responds within 0.1 s.
/// Each has a task, a connection and its request; a slow mirror group must not affect clients.
pub(crate) const MIRRORED_MAX: usize = 256;

/// Maximum number of bytes of the response to a mirrored request that are read to keep its connection; after a longer
/// one it is closed.
pub(crate) const MIRROR_RESPONSE_BYTES_MAX: usize = 1024 * 1024;

/// Largest file of users, which is held in memory: 160,000 users of about a hundred bytes.
pub(crate) const USERS_FILE_BYTES_MAX: u64 = 16 << 20;

/// Maximum number of passwords waiting to be verified, on all cores together. At 0.1 s each, the last one waits six
/// seconds. Further requests are refused, so that a password-guessing client cannot delay all others indefinitely.
pub(crate) const PASSWORDS_WAITING_MAX: usize = 64;

/// Maximum number of successful logins cached per core and route, 32 KiB: the users of a few seconds. Further users are
/// verified again.
pub(crate) const LOGINS_MAX: usize = 1024;

/// Time for which an unused login is cached: longer than users pause. Users do not change while the server runs.
pub(crate) const LOGIN_IDLE: Duration = Duration::from_secs(300);

/// Maximum number of lasting failures, such as unreadable files, that a core remembers in order to log each one once.
pub(crate) const LOG_SUBJECTS_MAX: usize = 64;

/// Maximum number of addresses of one name shown in the log.
pub(crate) const ADDRESSES_SHOWN_MAX: usize = 16;

/// Time constant of latency averages: Finagle's default for peak EWMA.
pub(crate) const LATENCY_TIME_CONSTANT: Duration = Duration::from_secs(10);

/// Maximum number of bytes of a health check's response that are examined, its head included. Typical status pages have
/// a few hundred.
pub(crate) const CHECK_BYTES_MAX: usize = 64 * 1024;

/// Maximum number of bytes of the fields that a route adds to a response, expanded: they fit one buffer with a
/// generated head.
pub(crate) const RESPONSE_LINES_BYTES_MAX: usize = 4 * 1024;

/// Maximum size of a Cache-Control line in bytes: the field name, and the limit of the configuration.
pub(crate) const CACHE_LINE_BYTES_MAX: usize = 32 + CACHE_CONTROL_BYTES_MAX;

/// Largest Location of a redirect: the longest target with a host before it. With the rest of the head it fits the
/// space for generated heads (`reply/http1.rs`).
pub(crate) const LOCATION_BYTES_MAX: usize = 10 * 1024;

/// Maximum number of buffers for parts of requests that a core keeps for reuse: enough for a few thousand concurrent
/// requests, such as on a hundred HTTP/2 connections. Each has some hundred bytes, and at most
/// [`RESPONSE_LINES_BYTES_MAX`].
pub(crate) const KEPT_SPARE_MAX: usize = 4096;

/// Maximum memory of all encoders in use on a core, counted at their maximum size: 128 for Brotli, 186 for zstd, 682
/// for gzip. A client that reads slowly occupies one; above the limit, responses are not compressed.
pub(crate) const ENCODERS_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Maximum number of encoders that a core keeps for reuse: as many as are used between two polls of the kernel; 8 MiB.
pub(crate) const ENCODERS_IDLE_MAX: usize = 8;

/// Number of bytes compressed before other tasks run: 0.3 ms at 100 MB/s.
pub(crate) const ENCODED_BYTES_PER_TURN: usize = 32 * 1024;

/// Number of items of a configuration that a core processes before other tasks run: less than [`SLICE_TIME`] (1 to 4 us
/// each).
pub(crate) const SLICE_ITEMS: usize = 64;

/// Time for which a core works on another configuration before other tasks run, give or take an item: as long as any
/// task that yields. Reading the clock after each item costs 2 % of the work.
pub(crate) const SLICE_TIME: Duration = Duration::from_micros(250);

/// Maximum number of listeners, routes and groups with metrics of their own, of each kind: a histogram takes 1.8 KiB
/// per core.
pub(crate) const SERIES_MAX: usize = 1000;

/// Time for writing the last access log lines at exit, so that an output without a reader cannot block the exit.
pub(crate) const LOG_FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
