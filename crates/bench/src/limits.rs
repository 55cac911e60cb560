//! Bounds of experiments, each with its reason.

use std::time::Duration;

/// Maximum number of works in an experiment. The product of works, variants and rounds is the number of trials, which
/// should fit into a night.
pub const WORKS_MAX: usize = 64;
/// Maximum number of variants of a work; see [`WORKS_MAX`].
pub const VARIANTS_MAX: usize = 16;
/// Maximum number of rounds; see [`WORKS_MAX`].
pub const ROUNDS_MAX: u32 = 1_000;
/// Maximum time for all rounds: a week. A machine does not stay the same for longer.
pub const BUDGET_MAX: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Maximum number of points in a sweep: a night is enough for some thousand trials.
pub const POINTS_MAX: usize = 500;
/// Maximum number of hosts in an experiment: namespaces, which share the CPUs of one machine, or other machines.
pub const HOSTS_MAX: usize = 16;
/// Maximum number of links in an experiment. Together with [`INTERFACES_MAX`] it keeps the pairs of interfaces within
/// the available networks (198.18.0.0/15).
pub const LINKS_MAX: usize = 32;
/// Maximum number of pairs of interfaces per link; published setups have up to eight.
pub const INTERFACES_MAX: u64 = 16;
/// Maximum number of queues of an interface. The kernel permits 4,096 and allocates a timer and a structure for each.
pub const QUEUES_MAX: u64 = 256;
/// Maximum length of a window. A longer one would be a soak test, whose samples do not fit on a page.
pub const WINDOW_MAX: Duration = Duration::from_secs(3_600);
/// Maximum number of idle connections from one address to one port. The default range of local ports has 28,000.
pub const IDLE_CONNECTIONS_MAX: u32 = 60_000;
/// Size of an experiment file; the largest of ours has 20 KB.
pub const EXPERIMENT_BYTES_MAX: u64 = 1 << 20;
/// Length of a name in characters; names occur in table rows and directory names.
pub const NAME_MAX: usize = 100;
/// Size of a file written for a program before it starts.
pub const SIZED_FILE_MAX: u64 = 1 << 30;

/// Time for a program to accept connections after its start.
pub const READY_WAIT_MAX: Duration = Duration::from_secs(10);
/// Interval between attempts to connect to a starting program.
pub const READY_POLL: Duration = Duration::from_millis(5);
/// Time to exit after SIGTERM. nginx and HAProxy exit within milliseconds; `onrush serve` first finishes requests in
/// flight.
pub const STOP_WAIT_MAX: Duration = Duration::from_secs(4);
/// Time for a client to exit after its window.
pub const CLIENT_OVERTIME_MAX: Duration = Duration::from_secs(10);
/// Interval at which a running client is polled: 20 wake-ups per second cost less than 0.1 % of one CPU.
pub const POLL: Duration = Duration::from_millis(50);
/// Interval between samples. CPU times have a resolution of one tick (10 ms), which would matter in shorter intervals.
pub const SAMPLE_EVERY: Duration = Duration::from_secs(1);
/// Bytes read from a program's output or report file. Reports have kilobytes; one of `onrush load` with an hour of
/// seconds has 3 MB.
pub const OUTPUT_BYTES_MAX: u64 = 64 << 20;
/// Size of an earlier run's journal: a trial of an hour has 4 MB, one of ten seconds 20 KB.
pub const JOURNAL_BYTES_MAX: u64 = 1 << 30;
/// Rows of a client's report: one per 100 ms, the shortest interval of iperf3, in the longest window.
pub const CLIENT_ROWS_MAX: usize = 36_000;
/// Maximum number of percentiles in a client's report. Of the supported clients, h1load reports the most: 61.
pub const PERCENTILES_MAX: usize = 1_000;
/// Variants with disagreeing rounds listed before the results. If there are more, the machine is the problem.
pub const DISAGREEING_LISTED_MAX: usize = 8;
/// Maximum number of warnings kept per client; far fewer show the kind of error.
pub const CLIENT_WARNINGS_MAX: usize = 100;
/// Free disk space required before measuring; our largest result has 0.3 MB.
pub const RESULT_BYTES_MIN: u64 = 1 << 20;
/// Bytes read from the end of a failed program's output.
pub const OUTPUT_TAIL_BYTES: usize = 2_000;
/// Time for a version command, which normally takes milliseconds; its output so far is used.
pub const VERSION_WAIT_MAX: Duration = Duration::from_secs(5);
/// Successive failures to start after which a variant is left out of the remaining rounds.
pub const START_FAILURES_MAX: u32 = 2;

/// Kernel files that a sampler keeps open; the others are opened for each read. A role with 64 threads needs 260.
pub const KERNEL_FILES_OPEN_MAX: usize = 768;
/// Bytes read from a kernel file: `/proc/stat` of a machine with 512 CPUs and all their interrupts has less than 1 MB.
pub const KERNEL_FILE_BYTES_MAX: usize = 8 << 20;
/// Size up to which generating `/proc/interrupts` takes the kernel less than 1 ms: 64 CPUs and 350 lines.
pub const INTERRUPTS_BYTES_MAX: usize = 256 << 10;
/// Maximum number of interrupt lines of network devices that are counted: two devices with 128 queues.
pub const INTERRUPT_LINES_MAX: usize = 256;
/// Threads of a role with rows of their own: one per CPU of a large machine. The role's total includes all threads.
pub const THREAD_ROWS_MAX: usize = 128;

/// Profile samples per second on each CPU. The number is not a divisor of the timer frequencies 1,000 and 250, to avoid
/// sampling in lockstep with the timer. A window of 5 s has a thousand samples, enough to distinguish 1 % from 2 %.
pub const PROFILE_HERTZ: u32 = 199;
/// Size of perf's output for one role, in perf's syntax: four minutes of one busy CPU.
pub const PROFILE_DATA_MAX: &str = "32M";
/// Time to resolve the symbols of one role's profile; a kernel with debug information takes 10 s on a busy machine.
pub const PROFILE_READ_WAIT_MAX: Duration = Duration::from_secs(60);
/// Maximum number of distinct stacks in a profile: five windows of one busy CPU if every sample were different.
pub const STACKS_MAX: usize = 5_000;
/// Maximum number of functions in a stack; perf itself records up to 127.
pub const STACK_FRAMES_MAX: usize = 128;
/// Maximum number of nodes in a flame graph before it is drawn, 100 bytes each.
pub const FLAME_NODES_MAX: usize = 100_000;
/// Maximum number of boxes in a flame graph: a browser draws these quickly, and the file stays below 2 MB.
pub const FLAME_BOXES_MAX: usize = 4_000;
/// Length of a function name in a flame graph in characters.
pub const FLAME_NAME_MAX: usize = 160;
/// Size of an earlier run's `raw.csv`: 64 works with 16 variants, 15 metrics and 30 rounds have 45 MB.
pub const RAW_BYTES_MAX: u64 = 64 << 20;
/// Size of an earlier run's `environment.json`: our largest has 0.4 MB. It contains the experiment file, which has its
/// own limit.
pub const ENVIRONMENT_BYTES_MAX: u64 = 16 << 20;
/// Largest value in `raw.csv`: far above any measurement, and small enough that ratios and squares stay finite.
pub const VALUE_MAX: f64 = 1e18;
/// Variants over all works of an earlier run: the maximum of an experiment at a hundred points of a sweep.
pub const VARIANT_ROWS_MAX: usize = WORKS_MAX * VARIANTS_MAX * 100;
/// Maximum number of runs compared with the first one; each has its own table.
pub const COMPARED_MAX: usize = 16;

/// Rounds per run that a comparison needs. Of the permutations of five and five rounds, one in 126 has all of one side
/// above the other, which suffices for 90 % confidence but not much more.
pub const ROUNDS_COMPARED_MIN: usize = 5;
/// Default of the smallest relevant effect: BENCHMARKING.md examines changes from 2 % on.
pub const MIN_EFFECT_DEFAULT: f64 = 0.02;
/// Standard deviation between runs of the same system, as a share. Peers in pairs of quiet runs under `runs/`, minutes
/// to hours apart on one machine, have 31 figures that differ by 2.7 %; their rounds explain 1.2 % of that.
pub const BETWEEN_RUNS: f64 = 0.02;
/// The same for a ratio to a reference in the same rounds. In 17 such ratios of two peers in those runs, the rounds
/// explain the differences (a mean square of 1.1 times the expected one), so the true value is too small to estimate.
/// The data does not exclude this one, which is small compared with the smallest relevant effect.
pub const RATIO_BETWEEN_RUNS: f64 = 0.0025;

/// Maximum number of runs in a history: four years with one run per working day. The cost of a permutation test grows
/// with the square.
pub const HISTORY_RUNS_MAX: usize = 1_000;
/// Depth of folders that a history searches. Results are two levels deep.
pub const HISTORY_DEPTH_MAX: usize = 4;
/// Maximum number of entries of one folder that a history reads; results have a few files.
pub const HISTORY_ENTRIES_MAX: usize = 10_000;
/// Rounds that a run needs to be part of a history; the median of fewer depends on a single round.
pub const HISTORY_ROUNDS_MIN: usize = 3;
/// Charts on a history's page, for the longest series: a browser draws a thousand in a second.
pub const HISTORY_CHARTS_MAX: usize = 1_000;

/// Largest CPU number; kernels support at most 8,192 CPUs (`CONFIG_NR_CPUS`).
pub const CPU_NUMBER_MAX: usize = onrush_machine::limits::CPUS_MAX - 1;
/// Maximum number of receive queues of an interface: one per CPU.
pub const RECEIVE_QUEUES_MAX: u64 = 8_192;
/// Bits per second of a link; the fastest Ethernet has 1.6 T.
pub const LINK_BITS_MAX: f64 = 1e13;
/// Packets per second of a machine: minimum-size frames on the fastest link.
pub const PACKET_RATE_MAX: u64 = 15_000_000_000;
/// Packets per request in one direction: a response of 1 GB has 700,000.
pub const PACKETS_PER_REQUEST_MAX: f64 = 1e6;
/// Maximum number of client machines: more than any laboratory has.
pub const CLIENTS_MAX: u64 = 10_000;
/// Bytes of a message in one direction: 1 GB.
pub const MESSAGE_BYTES_MAX: f64 = 1e9;
/// Maximum number of concurrent connections: all ports of a hundred clients.
pub const CONNECTIONS_MAX: u64 = 6_000_000;
/// Requests or packets per second in published figures: more than the fastest link carries.
pub const RATE_MAX: f64 = 15e9;
/// CPU time per request or packet in microseconds: a minute.
pub const COST_US_MAX: f64 = 6e7;
/// Smallest CPU time other than 0 in microseconds: a picosecond, less than any CPU needs for anything.
pub const COST_US_MIN: f64 = 1e-6;

/// Maximum number of nodes in a Slurm host; each has one connection and one srun process.
pub const NODES_MAX: u32 = 64;
/// Range of CPU numbers per host: above the kernel's limit of 8,192 (NR_CPUS), and a power of ten for readability.
pub const CPUS_OF_HOST_MAX: usize = 10_000;
/// Silence after which both ends close a connection. Heartbeats are sent every second. Long enough for a route change,
/// and short enough that everything started has ended well within a minute.
pub const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Interval between heartbeats; several may be lost before the connection is closed.
pub const HEARTBEAT_EVERY: Duration = Duration::from_secs(1);
/// Time to reach a host, copy the program and start it: 20 MB over 10 Mbit/s take 16 s.
pub const AGENT_START_WAIT_MAX: Duration = Duration::from_secs(120);
/// Time to wait in Slurm's queue: the jobs of a night.
pub const ALLOCATION_WAIT_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Length of one line of the agent protocol: a file of an experiment has up to 1 MiB, and JSON may escape each byte as
/// six.
pub const LINE_BYTES_MAX: u64 = 8 << 20;
/// Size of the pieces into which longer text is split.
pub const PIECE_BYTES_MAX: usize = 256 << 10;
/// Lines that a host's shell may print before the agent's first line; login banners have some dozen.
pub const GREETING_LINES_MAX: usize = 1_000;
/// Maximum number of lines in one response: one row per second of the longest window, or the pieces of the longest
/// output.
pub const RESPONSE_LINES_MAX: usize = 8_192;
/// Time for a command that an agent runs to completion, such as a tuning command.
pub const COMMAND_WAIT_MAX: Duration = Duration::from_secs(30);
/// Number of round trips to compare clocks; the shortest of them did not wait in a queue.
pub const CLOCK_TRIPS: u32 = 16;

/// Maximum number of trials shown second by second on a page. One of an hour has about ten charts and 0.4 MB; a browser
/// opens 3 MB in 0.2 s.
pub const TRIALS_DRAWN_MAX: usize = 48;
/// Up to this number, all rounds of a variant are shown second by second; otherwise only the median one.
pub const ROUNDS_DRAWN_MAX: usize = 2;
/// CPUs of a trial with their own chart; the others have a row in the heat map.
pub const CPUS_DRAWN_MAX: usize = 8;
/// Rows of a kind in a heat map: as many as fit on a screen or a printed page.
pub const HEAT_ROWS_MAX: usize = 64;
/// Rows of all kinds in a heat map: the height of about two charts, which are next to it.
pub const HEAT_ROWS_COMBINED_MAX: usize = 32;
/// Maximum number of interfaces in a chart. Each has two lines, and more cannot be distinguished.
pub const INTERFACES_DRAWN_MAX: usize = 4;
/// Charts of latency by rate, one for each combination of the other parameters of a sweep: two rows of a wide page.
pub const RATE_CHARTS_MAX: usize = 6;
