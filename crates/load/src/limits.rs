//! Every bound of the load generator, each with its reason.

use std::time::Duration;

/// Most connections of one run: fs.nr_open's default, the most descriptors a process can be given.
pub const CONNECTIONS_MAX: usize = 1 << 20;

/// Most threads: one for each CPU that the kernel's `cpu_set_t` can name.
pub const THREADS_MAX: usize = 1024;

/// Bytes of one request. Servers refuse heads far smaller than that; a longer one is a mistake.
pub const REQUEST_BYTES_MAX: usize = 32 * 1024;

/// Bytes of the requests that are pipelined in one send. What fits in a socket's first receive window (64 KiB) is sent
/// whole even to a server that does not read on before its answers are taken; with more, both sides could wait for
/// each other.
pub const BATCH_BYTES_MAX: usize = 64 * 1024;

/// The highest rate that can be asked for: one request per nanosecond, the clock's resolution.
pub const RATE_MAX: u64 = 1_000_000_000;

/// The longest run; beyond a year a unit was mistyped.
pub const DURATION_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// How long nothing may arrive while an answer is due, unless the caller says otherwise: h1load's default.
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

/// A run ends when no connection could be made and no answer came for this long: its count would never be reached, and
/// more of the same says nothing. A restart of a server takes less.
pub const LOST_AFTER: Duration = Duration::from_secs(10);

/// Seconds of a run that are kept one by one: an hour, 1.2 MB. Of a longer run each entry is two, four, ... seconds.
pub const HISTORY_ENTRIES: usize = 3600;

/// Memory for the latencies of these seconds, taken at the start. A second takes about 4 KB on loopback, 15 KB with all
/// magnitudes from microseconds to seconds; when it is full, seconds are joined as with [`HISTORY_ENTRIES`].
pub const HISTORY_BYTES: usize = 4 * 1024 * 1024;

/// The longest way to full load: a day. What is due on a slope is computed in whole numbers of 128 bits, which hold the
/// square of a day in nanoseconds times the highest rate.
pub const START_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// How long answers are waited for at the end, which are then counted as late and not measured: h1load's. A target that
/// was not given this time would see its last answers fail.
pub const SOFT_STOP: Duration = Duration::from_millis(500);

/// How often a core looks whether the last answers are there, or the other cores ready: not noticed by anybody.
pub const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Between the moment at which the last of several cores is ready and the start: time for the others to learn of it.
pub const START_DELAY: Duration = Duration::from_millis(3);

/// Connections of a core whose TCP counters are read, once a second and at their end: enough to see loss, and 16 system
/// calls.
pub const TCP_SAMPLES: usize = 16;

/// A core that is busy for more than this share of the run is the limit: what it measures is its own queue.
pub const BUSY_SHARE_MAX: f64 = 0.95;

/// A shorter run is mostly the making of connections: how busy a core was in it means nothing.
pub const BUSY_DURATION_MIN: Duration = Duration::from_millis(500);

/// A rate is missed when more than this share of its requests was not finished, beyond those in flight.
pub const RATE_MISSED_SHARE: f64 = 0.01;

/// Descriptors a core needs besides its connections: its driver, its wake-up, and as many again for the program.
pub const DESCRIPTORS_PER_CORE: u64 = 8;

/// Descriptors the program needs besides its cores: standard streams, output files, the resolver.
pub const DESCRIPTORS_OF_PROGRAM: u64 = 16;
