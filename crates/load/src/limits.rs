//! Every bound of the load generator, each with its reason.

pub(crate) mod http1;
pub(crate) mod http2;
pub(crate) mod ordered;
pub(crate) mod scrape;
pub(crate) mod socket;

use std::num::NonZeroUsize;
use std::time::Duration;

/// What must be left of a body that nobody looks into for the kernel to drop it (plain TCP): with less, a receive into a
/// buffer brings it with what is left of the turn's work.
pub(crate) const DROPPED_MIN: u64 = 16 * 1024;

/// Most connections of one run: fs.nr_open's default, the most descriptors a process can be given.
pub const CONNECTIONS_MAX: usize = 1 << 20;

/// Most threads: one for each CPU that the kernel's `cpu_set_t` can name.
pub const THREADS_MAX: usize = 1024;

/// Bytes of one request before its body. Servers refuse heads far smaller than that; a longer one is a mistake.
pub const REQUEST_BYTES_MAX: usize = 32 * 1024;

/// Bytes of a request's body. Each core has a copy of it, and what larger ones measure is a network.
pub const BODY_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Bytes of a file of requests, of rows of data or of a browser's recording: hundreds of thousands of requests, or a
/// recording of hours with the responses in it. They are all held in memory.
pub const REQUESTS_BYTES_MAX: u64 = 256 << 20;

/// Bytes of an access log: about five million lines. Its text is given back before the run; sixteen bytes of each line stay.
pub const ACCESS_LOG_BYTES_MAX: u64 = 1 << 30;

/// Bytes of the JSON of a result: one with an hour of seconds and a hundred kinds of requests has 3 MB, and merged ones
/// have no more kinds.
pub const RESULT_BYTES_MAX: u64 = 64 << 20;

/// Bytes of a body up to which it is copied behind each head, so that both leave in one piece of memory; copying
/// that much takes a microsecond.
pub const BODY_COPIED_MAX: usize = 8 * 1024;

/// Kinds of requests up to which each has figures of its own: a histogram takes 30 KB, and nobody reads a longer table.
pub const KINDS_SHOWN_MAX: usize = 100;

/// Bytes of the requests that are pipelined in one send. What fits in a socket's first receive window (64 KiB) is sent
/// whole even to a server that does not read on before its responses are taken; with more, both sides could wait for
/// each other.
pub const BATCH_BYTES_MAX: usize = 64 * 1024;

/// Bytes of a response's body that a journey looks into, before and behind content codings: a page or a list is shorter, and
/// each user of a step that looks into bodies may hold as many.
pub const BODY_KEPT_MAX: usize = 1024 * 1024;

/// Bytes of a value that a journey takes and sends in a path or a field: cookies may have 4096 (RFC 6265 6.1), and servers
/// refuse heads of more than 8 KiB.
pub const VALUE_IN_HEAD_MAX: usize = 8 * 1024;

/// Steps of a file of journeys. Each has figures of its own, as kinds of requests have ([`KINDS_SHOWN_MAX`]).
pub const STEPS_MAX: usize = 100;

/// The longest pause before a step: somebody who comes back after an hour begins anew.
pub const THINK_MAX: Duration = Duration::from_secs(60 * 60);

/// Memory of a compiled regular expression; the library's own bound is ten times as large. One of a page of text takes 100 KB.
pub const REGEX_BYTES_MAX: usize = 1 << 20;

/// The highest rate that can be asked for: one request per nanosecond, the clock's resolution.
pub const RATE_MAX: u64 = 1_000_000_000;

/// Steps of a staircase: one a second for nearly three hours. They are all held in memory.
pub const STAIRS_MAX: u64 = 10_000;

/// The longest run; beyond a year a unit was mistyped.
pub const DURATION_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Source addresses that are tried before the run: with 28,000 ports each more than the connections of any run need.
pub const SOURCES_CHECKED_MAX: u64 = 4096;

/// Bytes of a header of the PROXY protocol: one of version 2 with the paths of Unix sockets has 232.
pub(crate) const INTRODUCTION_BYTES_MAX: usize = 256;

/// How long nothing may arrive while a response is due, unless the caller says otherwise: h1load's default.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

/// How long a connection may take to be made, where the timeout is not shorter: Linux sends a lost SYN again after
/// one second, so this survives losing it once.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// The pause after a first failure to connect; doubled with each further one up to [`BACK_OFF_MAX`]. Long enough not to
/// spin, short enough that a restarting server is found again at once.
pub const BACK_OFF_MIN: Duration = Duration::from_millis(10);

/// See [`BACK_OFF_MIN`].
pub const BACK_OFF_MAX: Duration = Duration::from_millis(500);

/// A target to which no connection could be made within this time is called unreachable. A server that is just being
/// started listens by then.
pub const UNREACHABLE_AFTER: Duration = Duration::from_secs(1);

/// A run ends when no connection could be made and no response came for this long: its count would never be reached, and
/// more of the same says nothing. A restart of a server takes less.
pub const LOST_AFTER: Duration = Duration::from_secs(10);

/// Seconds of a run that are kept one by one: an hour, 1.2 MB. Of a longer run each entry is two, four, ... seconds.
pub const HISTORY_ENTRIES: usize = 3600;

/// What is left behind the last whole second and is a row though nothing happened in it: a tenth of it. A shorter rest is how
/// late the end was, and would look like a fall to nothing.
pub const LAST_ROW_MIN: Duration = Duration::from_millis(100);

/// Memory for the latencies of these seconds, taken at the start. A second takes about 4 KB on loopback, 15 KB with all
/// magnitudes from microseconds to seconds; when it is full, seconds are joined as with [`HISTORY_ENTRIES`].
pub const HISTORY_BYTES: usize = 4 * 1024 * 1024;

/// Samples of threads' rates that are kept for wrk's statistics, 512 KiB: nine hours of two threads. Of more, every second,
/// fourth, ... is left, which nobody can tell from all in a mean and a spread.
pub const RATE_SAMPLES_MAX: usize = 1 << 16;

/// Empty histograms that a core has in hand, each for one second (1.6 MB): so many seconds the thread that takes them may
/// be without a CPU before neighbouring seconds are joined.
pub const SPARE_SECONDS: usize = 2;

/// The longest way to full load: a day. What is due on a slope is computed in whole numbers of 128 bits, which hold the
/// square of a day in nanoseconds times the highest rate.
pub const START_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// How long responses are waited for at the end, which are then counted as late and not measured: h1load's. A target that
/// was not given this time would see its last responses fail.
pub const SOFT_STOP: Duration = Duration::from_millis(500);

/// Between the moment at which the last of several cores is ready and the start: time for the others to learn of it.
pub const START_DELAY: Duration = Duration::from_millis(3);

/// How long before a start at a set moment it is fixed on the monotonic clock: a clock that is being put right is slewed
/// by 500 us a second at most (adjtimex(2)), which makes 10 us of it; and enough for other cores to learn of it.
pub const START_SETTLED: Duration = Duration::from_millis(20);

/// How long before a start at a set moment connections are made that are to be made before: enough for a hundred
/// thousand of them, and no server closes one so soon for being idle.
pub const CONNECT_AHEAD: Duration = Duration::from_secs(5);

/// The furthest moment at which a run may be set to start; what is further ahead was mistyped.
pub const START_AHEAD_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// How often a thread of the generator looks whether it is late: as often as a stall is long (`STALL_MIN` of the engine),
/// which costs 50 wake-ups a second where nothing else happens.
pub const BEAT: Duration = Duration::from_millis(20);

/// A target is silent when nothing has come of it for this long, and for twice as long as its longest response took: a
/// restart takes less, and of less the rate of a run of ten seconds would not suffer by more than a tenth.
pub const SILENCE_MIN: Duration = Duration::from_secs(1);

/// Connections of a core whose TCP counters are read, once a second and at their end: enough to see loss, and 16 system
/// calls.
pub const TCP_SAMPLES: usize = 16;

/// A shorter run is mostly the making of connections: how busy a core was in it means nothing.
pub const BUSY_DURATION_MIN: Duration = Duration::from_millis(500);

/// A rate is missed when more than this share of its requests was not finished, beyond those in flight.
pub const RATE_MISSED_SHARE: f64 = 0.01;

/// Descriptors a core needs besides its connections: its driver, its wake-up, and as many again for the program.
pub const DESCRIPTORS_PER_CORE: u64 = 8;

/// Descriptors the program needs besides its cores: standard streams, output files, the resolver.
pub const DESCRIPTORS_OF_PROGRAM: u64 = 16;

// Bounds of the verdict on a run (verdict.rs).

/// A thread that is busy for more than this share of the run at a set rate starts requests late now and then: arrivals
/// come in bursts, and with a fifth of its time to spare a queue of them drains four times as fast as it grew.
pub const CPU_SHARE_SUSPECT: f64 = 0.80;

/// A thread this busy has no time to spare: it sleeps only while the kernel looks for something to tell it.
pub const CPU_SHARE_INVALID: f64 = 0.95;

/// Requests due and never sent, of those due: with one in a hundred missing, the 99th percentile is unknown.
pub const MISSED_SHARE_INVALID: f64 = 0.01;

/// The share of a figure that the generator itself may have made: of two figures that differ by a quarter one could say
/// that the target differs.
pub const OWN_SHARE_SUSPECT: f64 = 0.25;

/// Where more than half of it is the generator's own, it is a figure of the generator.
pub const OWN_SHARE_INVALID: f64 = 0.50;

/// What the generator may add to a figure in any case, in microseconds: twice what the wake-up of a thread and a timer
/// take in a virtual machine (about 50 us each). Who wants to measure less takes `--busy-poll`.
pub const OWN_MIN_US: f64 = 200.0;

/// The highest percentile of which a wrong one makes a run invalid: what is rarer is called suspect, since one pause of
/// the machine makes it.
pub const OWN_PERCENTILE_INVALID: f64 = 95.0;

/// The share of the run in which a thread saw nothing, in pieces of 20 ms and more: so much of the load was not made, and
/// a hundredth decides the 99th percentile.
pub const STALLED_SHARE_SUSPECT: f64 = 0.01;

/// See [`STALLED_SHARE_SUSPECT`]; a twentieth decides the 95th.
pub const STALLED_SHARE_INVALID: f64 = 0.05;

/// Requests that failed, or had no response at the end, of all: one in a hundred decides the 99th percentile.
pub const UNANSWERED_SHARE_SUSPECT: f64 = 0.01;

/// See [`UNANSWERED_SHARE_SUSPECT`]; of ten without one the 90th is unknown.
pub const UNANSWERED_SHARE_INVALID: f64 = 0.10;

/// Of requests that failed: where most did, not even the median is known. Fewer are told by the exit code for errors.
pub const FAILED_SHARE_INVALID: f64 = 0.50;

/// Requests sent again over other connections, of all: each has waited for a new one, and one in a hundred decides the 99th percentile.
pub const RESENT_SHARE_MAX: f64 = 0.01;

/// The share of the connections asked for that must have been open at once.
pub const CONNECTIONS_SHARE_MIN: f64 = 0.99;

/// Jain's index of responses per connection: 0.5 is what comes of half the connections doing all the work.
pub const FAIRNESS_MIN: f64 = 0.5;

/// The share of CPU time given to other guests: at 2 % a request in fifty may have waited for the hypervisor, and the
/// 99th percentile is its.
pub const STEAL_SHARE_MAX: f64 = 0.02;

/// The share of the run during which a CPU quota was exhausted: a throttled period lasts up to 100 ms, the kernel's
/// default period, so that one in ten seconds already decides the 99th percentile.
pub const THROTTLED_SHARE_MAX: f64 = 0.01;

/// Segments sent again, of those sent: each costs its request the retransmission timeout of 200 ms at least (Linux,
/// TCP_RTO_MIN), so that one in a thousand decides the 99.9th percentile.
pub const RETRANSMIT_SHARE_MAX: f64 = 0.001;

/// With fewer segments than this the share of those sent again says nothing.
pub const SEGMENTS_MIN: u64 = 1000;

/// How late a run may begin that was set to begin at a moment: longer than timers are late, and short beside a second,
/// in which several generators are added up.
pub const START_LATE_MAX: Duration = Duration::from_millis(10);

/// The share of local ports that connections may keep which ended during a run: with half of them gone, one that is twice as
/// long, or the next one within a minute, finds none.
pub const PORTS_SHARE_MAX: f64 = 0.5;

// Bounds of thresholds (threshold.rs).

/// How many times its rate so far the rest of a run of a set time may reach before a judgement made ahead of its end is
/// wrong. A target that was at its worst in the first seconds rarely doubles.
pub const RATE_GROWTH_MAX: f64 = 2.0;

/// A run with fewer finished requests than this is not ended early for a share of them: the first second may be all
/// connecting.
pub const HOPELESS_RESPONSES_MIN: u64 = 100;

// Bounds of merging (merge.rs).

/// The share of the whole span during which not all generators ran, beyond which the sum is not one load: a twentieth
/// decides the 95th percentile.
pub const MERGE_SKEW_SHARE_MAX: f64 = 0.05;

/// Rows of a merged result: a day of seconds. Each part has [`HISTORY_ENTRIES`] at most, so more say that a clock was wrong.
pub const MERGE_ROWS_MAX: u64 = 24 * 60 * 60;

// Bounds of comparing (compare.rs).

/// A smaller change than this is never called a difference: what two runs of the same thing differ by (where threads and
/// connections came to lie, what the machine did beside) cannot be known from one run of each.
pub const SHIFT_SHARE_MIN: f64 = 0.02;

// Bounds of the search for the highest rate (find_max.rs).

/// Requests per second of the first trial, when none are given: any server keeps up with that, and nine doublings reach
/// half a million.
pub const FIND_RATE_START: u64 = 1000;

/// The search narrows the highest rate that held and the lowest that failed to this ratio. Trials of one rate differ by
/// about as much.
pub const FIND_PRECISION: f64 = 1.05;

/// The same of datagrams, whose rates a link or a queue bounds exactly.
pub const FIND_PACKETS_PRECISION: f64 = 1.01;

/// A trial whose target responded to less than this share of what was due, or usually has it under way, did not keep up.
pub const FIND_RATE_KEPT: f64 = 0.99;

/// Trials of a rate on the way, of which the majority decides.
pub const FIND_TRIALS_PER_RATE: u32 = 3;

/// Trials of a rate after which it counts as failed when they have not confirmed it: a rate that holds nine times in
/// ten is confirmed by five to nine trials with a probability of five in six.
pub const FIND_CONFIRM_MAX: u32 = 9;

/// Trials of a search. A steady target takes about thirty from the default start; of ten seconds each, 200 are half an
/// hour.
pub const FIND_TRIALS_MAX: usize = 200;

/// Seconds that the full-screen view remembers: two for each column of the widest terminals.
pub const LIVE_ROWS_MAX: usize = 1024;

/// Bytes of a datagram's payload: 65,535 less the headers of IPv4 and UDP.
pub const DATAGRAM_BYTES_MAX: usize = 65_507;

/// Bytes that an echo is sent at a time when nothing is said: what datagrams have, too.
pub const ECHO_BYTES_DEFAULT: NonZeroUsize = NonZeroUsize::new(64).unwrap();
/// Bytes of one send of a stream that nobody answers when nothing is said: those of iperf3.
pub const STREAM_BYTES_DEFAULT: NonZeroUsize = NonZeroUsize::new(128 << 10).unwrap();
/// Bytes of one send over TCP: each thread holds one copy.
pub const STREAM_BYTES_MAX: usize = 64 << 20;

/// Messages of one call for datagrams: what the engine takes at a time.
pub(crate) const MESSAGES_PER_CALL: usize = 32;

/// Datagrams that the kernel makes of one message, in all versions that make any (`UDP_MAX_SEGMENTS`).
pub(crate) const SEGMENTS_MAX: usize = 64;

/// At a rate, datagrams that leave together are those of this time at most: queues of real devices hold about as much.
pub(crate) const BURST_TIME_MAX: Duration = Duration::from_millis(1);

/// Sizes of datagrams that are taken in turn; more are a range.
pub(crate) const DATAGRAM_SIZES_MAX: usize = 1024;

/// Datagrams of a flow that are on their way to an echo and back: as many as numbers are remembered on the other side. Each takes
/// 32 bytes.
pub(crate) const FLIGHT_MAX: u64 = onrush_packet::limits::WINDOW;

/// The same of all flows of a run together: 128 MiB.
pub(crate) const FLIGHT_ALL_MAX: u64 = 1 << 22;

/// Sockets that send datagrams: a flow has 16 bits for its number.
pub const FLOWS_MAX: usize = 1 << 16;

/// How long a datagram's echo is waited for when nothing is said: longer than any queue on the way holds it.
pub const ECHO_TIMEOUT_DEFAULT: Duration = Duration::from_secs(1);

/// How long a report is waited for before the question is asked again; the round trip of a satellite link.
pub(crate) const REPORT_TIMEOUT: Duration = Duration::from_millis(600);

/// How often a question is asked: behind a run the far end has as long to take what waits in its socket.
pub(crate) const QUESTIONS_MAX: u32 = 5;

/// Between two questions whose reports must agree for what was on the way to have come.
pub(crate) const REPORT_SETTLED: Duration = Duration::from_millis(20);

/// How often within its timeout a run looks whether the last echoes have come.
pub(crate) const LANDING_LOOKS: u32 = 200;

// Bounds of memcached (memcached.rs, protocol/memcached.rs).

/// Keys that have values, unless something else is asked for: those of 100 bytes fit the memory that a server has when nothing is
/// said (64 MB), and a cache of a processor does not hold them.
pub const KEYS_DEFAULT: u64 = 10_000;

/// Most keys: their numbers are computed with as floating-point ones, which hold whole numbers up to 2^53; and no server has
/// the memory for so many.
pub const KEYS_MAX: u64 = 1_000_000_000_000;

/// Bytes of a key: memcached's (doc/protocol.txt).
pub const KEY_BYTES_MAX: usize = 250;

/// Bytes of a key, unless something else is asked for: the least that memcaslap takes, and half of what keys had at Facebook.
pub const KEY_BYTES_DEFAULT: usize = 16;

/// Bytes of a value: the largest item that a server takes when nothing is said is 1 MiB (`-I`), and one that takes more gets no
/// more from here.
pub const VALUE_BYTES_MAX: usize = 1 << 20;

/// Bytes of a value, unless something else is asked for: mcblaster's.
pub const VALUE_BYTES_DEFAULT: usize = 100;

/// Sizes in a list of weights, which is searched for each size.
pub const SIZES_MAX: usize = 1000;

/// The weight of a command.
pub const RATIO_MAX: u32 = 1_000_000;

/// Keys of a get. With the shortest ones more would not fit [`REQUEST_BYTES_MAX`].
pub const MULTIGET_MAX: u64 = 10_000;

/// The longest time until something may be forgotten: memcached takes more than 30 days for a date (doc/protocol.txt).
pub const EXPIRY_MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Bytes of a line of an answer, its end among them: one with the longest key, four numbers of 64 bits and an opaque has 400, and
/// what servers say of errors is a sentence. A line that is longer is none.
pub(crate) const LINE_BYTES_MAX: usize = 2048;

/// Different errors of a server that are counted by their words; those that come later are counted as one.
pub(crate) const ERRORS_NAMED_MAX: usize = 32;

/// Characters of an error that are kept.
pub(crate) const ERROR_BYTES_MAX: usize = 120;

/// Requests sent at once on a connection while keys are stored before a run: sixteen share a call to the kernel on both sides,
/// and the waits of a single connection are no longer what it takes.
pub(crate) const FILL_BATCH: u64 = 16;
/// Seconds without an answer after which nothing more is stored: as long as a run waits for a server that is gone.
pub(crate) const FILL_SILENCE_S: u32 = 10;
