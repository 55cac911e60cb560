//! Limits of the load generator, each with its reason.

pub(crate) mod http1;
pub(crate) mod http2;
pub(crate) mod ordered;
pub(crate) mod scrape;
pub(crate) mod socket;

use std::num::NonZeroUsize;
use std::time::Duration;

/// Bytes left of a body that is not inspected, from which the kernel discards them (plain TCP). With fewer, an ordinary
/// receive returns them together with the rest of the turn's work.
pub(crate) const DISCARD_BYTES_MIN: u64 = 16 * 1024;

/// Maximum number of connections of one run: the default of fs.nr_open, the kernel's limit on descriptors per process.
pub const CONNECTIONS_MAX: usize = 1 << 20;

/// Maximum number of threads: one for each CPU that the kernel's `cpu_set_t` can name.
pub const THREADS_MAX: usize = 1024;

/// Maximum bytes of one request before its body. Servers refuse much smaller heads, so a longer one is a mistake.
pub const REQUEST_BYTES_MAX: usize = 32 * 1024;

/// Maximum bytes of a request's body. Each core holds a copy, and a test with larger bodies measures the network.
pub const BODY_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Maximum bytes of a file of requests, of data rows or of a HAR recording, which is held in memory.
pub const REQUESTS_BYTES_MAX: u64 = 256 << 20;

/// Maximum bytes of an access log: about five million lines. Before the run all but 16 bytes per line are freed.
pub const ACCESS_LOG_BYTES_MAX: u64 = 1 << 30;

/// Maximum bytes of a result's JSON. A result with an hour of seconds and a hundred kinds of requests has 3 MB.
pub const RESULT_BYTES_MAX: u64 = 64 << 20;

/// Bytes of a body up to which it is copied after each head, so that both are sent from one buffer. Copying this much
/// takes a microsecond.
pub const BODY_COPIED_MAX: usize = 8 * 1024;

/// Kinds of requests up to which each has its own figures: a histogram takes 30 KB, and a longer table is unreadable.
pub const KINDS_SHOWN_MAX: usize = 100;

/// Bytes of the pipelined requests of one send. A batch that fits in a socket's first receive window (64 KiB) is sent
/// whole even if the server stops reading until its responses are read; with more, both sides could wait for each
/// other.
pub const BATCH_BYTES_MAX: usize = 64 * 1024;

/// Bytes of a response's body that a journey inspects, before and after content decoding. Pages and lists are shorter,
/// and each user of a step that inspects bodies may hold this much.
pub const BODY_KEPT_MAX: usize = 1024 * 1024;

/// Bytes of a value that a journey extracts and sends in a path or a field: cookies may have 4096 (RFC 6265 section
/// 6.1), and servers refuse heads of more than 8 KiB.
pub const VALUE_IN_HEAD_MAX: usize = 8 * 1024;

/// Maximum number of steps in a journeys file. Each has its own figures, as kinds of requests have
/// ([`KINDS_SHOWN_MAX`]).
pub const STEPS_MAX: usize = 100;

/// Longest pause before a step: a user who returns after an hour starts a new session.
pub const THINK_MAX: Duration = Duration::from_secs(60 * 60);

/// Memory of a compiled regular expression, a tenth of the regex crate's own limit. An expression of one page takes 100
/// KB.
pub const REGEX_BYTES_MAX: usize = 1 << 20;

/// Highest rate: one request per nanosecond, the clock's resolution.
pub const RATE_MAX: u64 = 1_000_000_000;

/// Maximum number of steps in a staircase profile: one per second for nearly three hours. All are held in memory.
pub const STAIRS_MAX: u64 = 10_000;

/// Longest run. A duration of more than a year is a mistyped unit.
pub const DURATION_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Source addresses that are tried before the run: with 28,000 ports each, enough for the connections of any run.
pub const SOURCES_CHECKED_MAX: u64 = 4096;

/// Bytes of a PROXY protocol header. A version 2 header with the paths of Unix sockets has 232.
pub(crate) const PROXY_HEADER_BYTES_MAX: usize = 256;

/// Default of `--timeout`: longest time without received bytes while a response is pending. The same as in h1load.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

/// Longest time to connect, unless the timeout is shorter. Linux retransmits a lost SYN after one second, so this
/// allows one loss.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Pause after the first failure to connect; each further failure doubles it, up to [`BACK_OFF_MAX`]. Long enough not
/// to spin, short enough to find a restarted server quickly.
pub const BACK_OFF_MIN: Duration = Duration::from_millis(10);

/// See [`BACK_OFF_MIN`].
pub const BACK_OFF_MAX: Duration = Duration::from_millis(500);

/// Time after which a target that has accepted no connection is reported as unreachable. A server that is being started
/// listens by then.
pub const UNREACHABLE_AFTER: Duration = Duration::from_secs(1);

/// A run ends when no connection was established and no response arrived for this long: it would never reach its count,
/// and more failures add no information. A server restarts in less.
pub const TARGET_LOST_AFTER: Duration = Duration::from_secs(10);

/// Rows of a run's history: an hour of seconds, 1.2 MB. In a longer run each row covers two, four, ... seconds.
pub const HISTORY_ENTRIES: usize = 3600;

/// Length from which the part after the last whole second gets a row even if nothing happened in it. A shorter rest is
/// only the delay of the end, and would look like a drop to zero.
pub const LAST_ROW_MIN: Duration = Duration::from_millis(100);

/// Memory for the latencies of these rows, allocated at the start. A second takes about 4 KB on loopback, and 15 KB
/// with latencies from microseconds to seconds. When it is full, rows are merged as with [`HISTORY_ENTRIES`].
pub const HISTORY_BYTES: usize = 4 * 1024 * 1024;

/// Samples of the threads' rates for wrk's statistics, 512 KiB: nine hours of two threads. Beyond that every second,
/// fourth, ... sample is kept, which changes mean and deviation very little.
pub const RATE_SAMPLES_MAX: usize = 1 << 16;

/// Empty histograms that a core holds in reserve, each for one second (1.6 MB): the number of seconds for which the
/// collecting thread may have no CPU before neighbouring seconds are merged.
pub const SPARE_SECONDS: usize = 2;

/// Longest ramp to full load. The requests due on a ramp are computed in 128-bit integers, which hold the square of a
/// day in nanoseconds times the highest rate.
pub const START_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// How long the end of a run waits for outstanding responses, which are counted as late and not measured; the same as
/// in h1load. Without it the last responses of a target would fail.
pub const SOFT_STOP: Duration = Duration::from_millis(500);

/// Delay between the moment at which the last core is ready and the start: time for the other cores to learn of it.
pub const START_DELAY: Duration = Duration::from_millis(3);

/// Time before a scheduled start at which it is converted to the monotonic clock. A clock being corrected is slewed by
/// 500 us per second at most (adjtimex(2)), which is 10 us in this time; it is also long enough for the other cores to
/// learn of it.
pub const START_SETTLED: Duration = Duration::from_millis(20);

/// Time before a scheduled start at which connections are made in advance: enough for a hundred thousand, and no server
/// closes an idle connection so soon.
pub const CONNECT_AHEAD: Duration = Duration::from_secs(5);

/// Furthest scheduled start. A later one was mistyped.
pub const START_AHEAD_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Interval at which a thread of the generator checks whether it is late: the length of a stall (`STALL_MIN` of the
/// engine). It costs an idle thread 50 wake-ups a second.
pub const STALL_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// A target is silent when nothing has arrived from it for this long and for twice its longest response time. A restart
/// takes less, and a shorter pause lowers the rate of a run of ten seconds by less than a tenth.
pub const SILENCE_MIN: Duration = Duration::from_secs(1);

/// Connections of a core whose TCP counters are read once a second and at their end: enough to notice loss, at a cost
/// of 16 system calls.
pub const TCP_SAMPLES: usize = 16;

/// In a shorter run most of the time is spent connecting, so a core's CPU share means nothing.
pub const BUSY_DURATION_MIN: Duration = Duration::from_millis(500);

/// Share of a rate's requests that may be unfinished, beyond those in flight, before the rate counts as missed.
pub const RATE_MISSED_SHARE: f64 = 0.01;

/// Descriptors that a core needs besides its connections: its driver, its wake-up, and as many again for the program.
pub const DESCRIPTORS_PER_CORE: u64 = 8;

/// Descriptors the program needs besides its cores: standard streams, output files, the resolver.
pub const DESCRIPTORS_OF_PROGRAM: u64 = 16;

// Limits of the verdict on a run (verdict.rs).

/// A thread that is busy for more than this share of a run at a set rate sometimes starts requests late: arrivals come
/// in bursts, and with a fifth of the time free a queue drains four times as fast as it grew.
pub const CPU_SHARE_SUSPECT: f64 = 0.80;

/// A thread this busy has no time to spare: it almost never waits for events.
pub const CPU_SHARE_INVALID: f64 = 0.95;

/// Share of the due requests that were never sent: with one in a hundred missing, the 99th percentile is unknown.
pub const MISSED_SHARE_INVALID: f64 = 0.01;

/// Share of a figure that may be the generator's own. Two figures that differ by a quarter would suggest that the
/// targets differ.
pub const OWN_SHARE_SUSPECT: f64 = 0.25;

/// Share of a figure beyond which it describes the generator more than the target.
pub const OWN_SHARE_INVALID: f64 = 0.50;

/// Microseconds that the generator may always add to a figure: twice the wake-up of a thread plus a timer in a virtual
/// machine (about 50 us each). To measure less, use `--busy-poll`.
pub const OWN_MIN_US: f64 = 200.0;

/// Highest percentile that can make a run invalid. Higher ones only make it suspect, since a single pause of the
/// machine affects them.
pub const OWN_PERCENTILE_INVALID: f64 = 95.0;

/// Share of the run that a thread missed in stalls of 20 ms and more. That share of the load was not generated, and one
/// in a hundred decides the 99th percentile.
pub const STALLED_SHARE_SUSPECT: f64 = 0.01;

/// See [`STALLED_SHARE_SUSPECT`]; one in twenty decides the 95th percentile.
pub const STALLED_SHARE_INVALID: f64 = 0.05;

/// Share of all requests that failed or had no response at the end: one in a hundred decides the 99th percentile.
pub const INCOMPLETE_SHARE_SUSPECT: f64 = 0.01;

/// See [`INCOMPLETE_SHARE_SUSPECT`]; with one in ten missing, the 90th percentile is unknown.
pub const INCOMPLETE_SHARE_INVALID: f64 = 0.10;

/// Share of failed requests beyond which not even the median is known. A smaller share is reported by the exit code for
/// errors.
pub const FAILED_SHARE_INVALID: f64 = 0.50;

/// Share of all requests that were sent again over another connection: each waited for a new one, and one in a hundred
/// decides the 99th percentile.
pub const RESENT_SHARE_MAX: f64 = 0.01;

/// Share of the requested connections that must have been open at once.
pub const CONNECTIONS_SHARE_MIN: f64 = 0.99;

/// Jain's fairness index of responses per connection. It is 0.5 when half of the connections do all the work.
pub const FAIRNESS_MIN: f64 = 0.5;

/// Share of CPU time stolen by other guests: at 2 % one request in fifty may have waited for the hypervisor, which then
/// decides the 99th percentile.
pub const STEAL_SHARE_MAX: f64 = 0.02;

/// Share of the run during which a CPU quota was exhausted. A throttled period lasts up to 100 ms, the kernel's default
/// period, so one in ten seconds already decides the 99th percentile.
pub const THROTTLED_SHARE_MAX: f64 = 0.01;

/// Share of retransmitted segments. Each costs its request a retransmission timeout of at least 200 ms (Linux,
/// TCP_RTO_MIN), so one in a thousand decides the 99.9th percentile.
pub const RETRANSMIT_SHARE_MAX: f64 = 0.001;

/// Segments below which the share of retransmitted ones has no meaning.
pub const SEGMENTS_MIN: u64 = 1000;

/// Longest delay of a scheduled start: more than timers are late, and short compared with a second, the unit in which
/// the figures of several generators are added up.
pub const START_LATE_MAX: Duration = Duration::from_millis(10);

/// Share of the local ports that closed connections may still occupy. With half of them in TIME_WAIT, a run twice as
/// long, or another run within a minute, has none left.
pub const PORTS_SHARE_MAX: f64 = 0.5;

// Limits of thresholds (threshold.rs).

/// Highest factor by which the rest of a timed run may exceed its rate so far; a run is judged before its end on this
/// assumption. A target that was slowest in the first seconds rarely doubles.
pub const RATE_GROWTH_MAX: f64 = 2.0;

/// Finished requests below which a run is not ended early for a share of them: the first second may be spent
/// connecting.
pub const EARLY_END_RESPONSES_MIN: u64 = 100;

// Limits of merging (merge.rs).

/// Share of the whole span during which not all generators ran, beyond which their sum is not one load: one in twenty
/// decides the 95th percentile.
pub const MERGE_SKEW_SHARE_MAX: f64 = 0.05;

/// Maximum number of rows in a merged result: a day of seconds. Each part has [`HISTORY_ENTRIES`] at most, so more rows
/// mean that a clock was wrong.
pub const MERGE_ROWS_MAX: u64 = 24 * 60 * 60;

// Limits of comparing (compare.rs).

/// Smallest change that is reported as a difference. Two runs of the same experiment vary by about this much (placement
/// of threads and connections, other work of the machine), and one run of each cannot show by how much.
pub const SHIFT_SHARE_MIN: f64 = 0.02;

// Limits of the search for the highest rate (find_max.rs).

/// Default requests per second of the first trial: any server sustains it, and nine doublings reach half a million.
pub const FIND_RATE_START: u64 = 1000;

/// Ratio of the lowest rate that failed to the highest that passed, at which the search ends. Trials of one rate differ
/// by about as much.
pub const FIND_PRECISION: f64 = 1.05;

/// The same for datagrams, whose rate a link or a queue limits exactly.
pub const FIND_PACKETS_PRECISION: f64 = 1.01;

/// A trial fails when the responses, plus the requests normally in flight, are fewer than this share of those due.
pub const FIND_RATE_KEPT: f64 = 0.99;

/// Trials of each rate during the search; the majority decides.
pub const FIND_TRIALS_PER_RATE: u32 = 3;

/// Trials of a rate after which it fails if they have not confirmed it. Five to nine trials confirm a rate that passes
/// nine times in ten with a probability of five in six.
pub const FIND_CONFIRM_MAX: u32 = 9;

/// Maximum number of trials in a search. A steady target takes about thirty from the default start; 200 trials of ten
/// seconds take half an hour.
pub const FIND_TRIALS_MAX: usize = 200;

/// Seconds that the full-screen view keeps: two for each column of the widest terminals.
pub const LIVE_ROWS_MAX: usize = 1024;

/// Bytes of a datagram's payload: 65,535 minus the headers of IPv4 and UDP.
pub const DATAGRAM_BYTES_MAX: usize = 65_507;

/// Default message size of an echo over TCP; the same as that of datagrams.
pub const ECHO_BYTES_DEFAULT: NonZeroUsize = NonZeroUsize::new(64).unwrap();
/// Default size of one send of a one-way TCP stream; the same as in iperf3.
pub const STREAM_BYTES_DEFAULT: NonZeroUsize = NonZeroUsize::new(128 << 10).unwrap();
/// Bytes of one send over TCP: each thread holds one copy.
pub const STREAM_BYTES_MAX: usize = 64 << 20;

/// Messages in one system call for datagrams: the engine's limit.
pub(crate) const MESSAGES_PER_CALL: usize = 32;

/// Datagrams into which the kernel segments one message, in every kernel version with UDP GSO (`UDP_MAX_SEGMENTS`).
pub(crate) const SEGMENTS_MAX: usize = 64;

/// Longest time whose datagrams are sent together at a set rate: queues of real devices hold about as much.
pub(crate) const BURST_TIME_MAX: Duration = Duration::from_millis(1);

/// Datagram sizes in a list that is used round robin; more can be given as a range.
pub(crate) const DATAGRAM_SIZES_MAX: usize = 1024;

/// Datagrams of a flow that are in flight to an echo and back: the sequence numbers that the other side remembers. Each
/// takes 32 bytes.
pub(crate) const FLIGHT_MAX: u64 = onrush_packet::limits::WINDOW;

/// The same for all flows of a run: 128 MiB.
pub(crate) const FLIGHT_ALL_MAX: u64 = 1 << 22;

/// Maximum number of sockets that send datagrams: a flow number has 16 bits.
pub const FLOWS_MAX: usize = 1 << 16;

/// Default timeout of a datagram's echo: longer than any queue on the path delays it.
pub const ECHO_TIMEOUT_DEFAULT: Duration = Duration::from_secs(1);

/// Timeout of a report before it is requested again: the round trip of a satellite link.
pub(crate) const REPORT_TIMEOUT: Duration = Duration::from_millis(600);

/// Maximum number of requests for a report. After a run the load target needs this long at most to read what is queued
/// in its socket.
pub(crate) const REPORT_REQUESTS_MAX: u32 = 5;

/// Interval between two requests whose reports must agree before all datagrams in flight count as arrived.
pub(crate) const REPORT_SETTLED: Duration = Duration::from_millis(20);

/// Checks for the last echoes within their timeout.
pub(crate) const ECHO_CHECKS: u32 = 200;

// Limits of memcached (memcached.rs, protocol/memcached.rs).

/// Default number of keys with values. With values of 100 bytes they fit in a server's default memory (64 MB), and not
/// in a processor's cache.
pub const KEYS_DEFAULT: u64 = 10_000;

/// Maximum number of keys. Their numbers are computed as `f64`, which holds integers up to 2^53, and no server has
/// memory for so many.
pub const KEYS_MAX: u64 = 1_000_000_000_000;

/// Maximum bytes of a key: memcached's limit (doc/protocol.txt).
pub const KEY_BYTES_MAX: usize = 250;

/// Default bytes of a key: the minimum of memcaslap, and half the size of keys measured at Facebook.
pub const KEY_BYTES_DEFAULT: usize = 16;

/// Maximum bytes of a value: the default limit of a server's items is 1 MiB (`-I`), and servers that accept larger ones
/// get no larger ones from this generator.
pub const VALUE_BYTES_MAX: usize = 1 << 20;

/// Default bytes of a value: mcblaster's.
pub const VALUE_BYTES_DEFAULT: usize = 100;

/// Maximum number of sizes in a weighted list, which is searched for each size.
pub const SIZES_MAX: usize = 1000;

/// Maximum weight of a command.
pub const RATIO_MAX: u32 = 1_000_000;

/// Maximum number of keys per get. With the shortest keys, more would exceed [`REQUEST_BYTES_MAX`].
pub const MULTIGET_MAX: u64 = 10_000;

/// Longest expiration time: memcached reads more than 30 days as a date (doc/protocol.txt).
pub const EXPIRY_MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Bytes of a response line with its line end. A line with the longest key, four 64-bit numbers and an opaque has 400
/// bytes, and error messages are one sentence. A longer line is invalid.
pub(crate) const LINE_BYTES_MAX: usize = 2048;

/// Maximum number of distinct error messages that are counted separately; further ones share one counter.
pub(crate) const ERRORS_NAMED_MAX: usize = 32;

/// Bytes of an error message that are kept.
pub(crate) const ERROR_BYTES_MAX: usize = 120;

/// Requests sent at once on a connection while keys are stored before a run. Sixteen share a system call on both sides,
/// so that round trips no longer dominate.
pub(crate) const FILL_BATCH: u64 = 16;
/// Seconds without a response after which storing keys is abandoned: as long as a run waits for a server that is gone.
pub(crate) const FILL_SILENCE_S: u32 = 10;
