//! Every bound of an experiment, with its reason.

use std::time::Duration;

/// Works, variants per work and rounds: products of these are trials, and nobody waits for more than a night.
pub const WORKS_MAX: usize = 64;
/// See [`WORKS_MAX`].
pub const VARIANTS_MAX: usize = 16;
/// See [`WORKS_MAX`].
pub const ROUNDS_MAX: u32 = 1_000;
/// All rounds together: a week, which is longer than a machine stays the same.
pub const BUDGET_MAX: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Points of a sweep: a night has time for some thousand trials.
pub const POINTS_MAX: usize = 500;
/// Hosts of an experiment: namespaces of one machine, whose CPUs they share, or other machines.
pub const HOSTS_MAX: usize = 16;
/// Links; with [`INTERFACES_MAX`] as many pairs of interfaces as there are networks for (198.18.0.0/15).
pub const LINKS_MAX: usize = 32;
/// Pairs of interfaces of a link: the article with the most had eight.
pub const INTERFACES_MAX: u64 = 16;
/// Queues of an interface; the kernel takes 4,096 and makes a timer and a structure for each.
pub const QUEUES_MAX: u64 = 256;
/// One window; a longer one belongs to a soak test, whose samples would not fit a page.
pub const WINDOW_MAX: Duration = Duration::from_secs(3_600);
/// Idle connections from one address to one port: the range of local ports ends near 28,000 by default.
pub const IDLE_CONNECTIONS_MAX: u32 = 60_000;
/// The text of an experiment: the longest of ours has 20 KB.
pub const EXPERIMENT_BYTES_MAX: u64 = 1 << 20;
/// Characters of a name: it stands in a line of a table, and in the name of a directory.
pub const NAME_MAX: usize = 100;
/// A file written for a program before it starts.
pub const SIZED_FILE_MAX: u64 = 1 << 30;

/// A program that does not accept connections by then has failed to start.
pub const READY_WAIT_MAX: Duration = Duration::from_secs(10);
/// Between two tries to connect to a starting program.
pub const READY_POLL: Duration = Duration::from_millis(5);
/// After SIGTERM; nginx and HAProxy leave within milliseconds, `onrush serve` finishes what is in flight.
pub const STOP_WAIT_MAX: Duration = Duration::from_secs(4);
/// A client that has not ended this long after its window is stuck.
pub const CLIENT_OVERTIME_MAX: Duration = Duration::from_secs(10);
/// How often a running client is looked at: 20 wake-ups a second cost less than 0.1 % of one CPU.
pub const POLL: Duration = Duration::from_millis(50);
/// Samples are taken this often; shorter ones would be rounded to whole clock ticks (10 ms).
pub const SAMPLE_EVERY: Duration = Duration::from_secs(1);
/// What is read of a program's output, or of the file it reports in: reports have kilobytes, ours with an hour of seconds
/// 3 MB.
pub const OUTPUT_BYTES_MAX: u64 = 64 << 20;
/// What is read of the trials of an earlier run: a trial of an hour has 4 MB, one of ten seconds 20 KB.
pub const JOURNAL_BYTES_MAX: u64 = 1 << 30;
/// Rows of a client: one each 100 ms, the shortest that iperf3 makes, of the longest window.
pub const CLIENT_ROWS_MAX: usize = 36_000;
/// Percentiles of a client: h1load, which has the most, has 61.
pub const PERCENTILES_MAX: usize = 1_000;
/// Variants whose rounds do not agree, named before the results: where it is more, the machine is what to look at.
pub const DISAGREEING_NAMED_MAX: usize = 8;
/// Warnings of a client: a reader sees the kind of trouble in far fewer.
pub const CLIENT_WORDS_MAX: usize = 100;
/// Room that there has to be for a result before anything is measured: the largest of ours has 0.3 MB.
pub const RESULT_BYTES_MIN: u64 = 1 << 20;
/// What is read of a program's output when it failed.
pub const OUTPUT_TAIL_BYTES: usize = 2_000;
/// A version command is waited for so long, and has then said what it has to say: programs print theirs within milliseconds.
pub const VERSION_WAIT_MAX: Duration = Duration::from_secs(5);
/// A variant that fails to start this many times in a row is left out of the remaining rounds.
pub const START_FAILURES_MAX: u32 = 2;

/// Files of the kernel that a sampler keeps open: a role with 64 threads needs 260; the rest is opened for each read.
pub const KERNEL_FILES_OPEN_MAX: usize = 768;
/// What is read of one: `/proc/stat` of a machine with 512 CPUs and all their interrupt lines has less than 1 MB.
pub const KERNEL_FILE_BYTES_MAX: usize = 8 << 20;
/// A table of interrupts up to here costs the kernel less than 1 ms to write: 64 CPUs and 350 lines.
pub const INTERRUPTS_BYTES_CHEAP: usize = 256 << 10;
/// Lines of network devices that are counted: two of 128 queues.
pub const INTERRUPT_LINES_MAX: usize = 256;
/// Threads of a role that have rows of their own: those of a program with one thread for each CPU of a large machine.
/// The CPU time of more is counted, too, in the role's sum.
pub const THREAD_ROWS_MAX: usize = 128;

/// Samples a second and CPU of a profile: no divisor of the timer's 1,000 or 250, so that it does not always meet the same
/// moment; a window of 5 s has a thousand, which tell 1 % from 2 %.
pub const PROFILE_HERTZ: u32 = 199;
/// What perf may write for one role, in its own words: four minutes of one full CPU.
pub const PROFILE_DATA_MAX: &str = "32M";
/// Naming the functions of one role's profile; a kernel with debug information takes 10 s on a busy machine.
pub const PROFILE_READ_WAIT_MAX: Duration = Duration::from_secs(60);
/// Different stacks of a profile: five windows of one full CPU, if each sample found another one.
pub const STACKS_MAX: usize = 5_000;
/// Functions of a stack; perf itself follows 127.
pub const STACK_FRAMES_MAX: usize = 128;
/// Functions of a flame graph before it is drawn, 100 bytes each.
pub const FLAME_NODES_MAX: usize = 100_000;
/// Boxes of a flame graph: a browser draws these at once, in less than 2 MB.
pub const FLAME_BOXES_MAX: usize = 4_000;
/// Letters of a function's name there.
pub const FLAME_NAME_MAX: usize = 160;
/// `raw.csv` of an earlier run: 64 works of 16 variants with 15 metrics in 30 rounds have 45 MB.
pub const RAW_BYTES_MAX: u64 = 64 << 20;
/// `environment.json` of an earlier run: the largest of ours has 0.4 MB, and holds its experiment, which is bounded itself.
pub const ENVIRONMENT_BYTES_MAX: u64 = 16 << 20;
/// A value of it: nothing that is measured comes near it, and ratios and squares of smaller ones are numbers.
pub const VALUE_MAX: f64 = 1e18;
/// Variants of works in an earlier run: as many as an experiment may have, at a hundred points of a sweep.
pub const ENTRANTS_MAX: usize = WORKS_MAX * VARIANTS_MAX * 100;
/// Runs that are compared with the first one: each has its own table, and nobody reads more of them.
pub const COMPARED_MAX: usize = 16;

/// Rounds of either run that a comparison needs: of five and five, one order of 126 is as extreme as all of one side behind
/// all of the other, which is enough for 90 % and for little more.
pub const ROUNDS_COMPARED_MIN: usize = 5;
/// The smallest effect that matters when nothing is said: BENCHMARKING.md looks into a figure from 2 % on.
pub const SMALLEST_DEFAULT: f64 = 0.02;
/// The standard deviation of a run as a whole around what it would be on average, as a share: 31 figures of peers in pairs of
/// quiet runs under `runs/`, minutes to hours apart on one machine, differ by 2.7 %, of which their rounds explain 1.2 %.
pub const BETWEEN_RUNS: f64 = 0.02;
/// The same of a ratio to a reference in the same rounds: of 17 such ratios of two peers in those runs the differences are
/// what their rounds explain (a mean square of 1.1 times that), so it is less than they can tell; this much is not excluded
/// by them, and small against the effect that is looked for.
pub const BETWEEN_RUNS_BESIDE: f64 = 0.0025;

/// Runs of a history: five years with one run on each working day, and a permutation test takes the square of it.
pub const HISTORY_RUNS_MAX: usize = 1_000;
/// Folders that a history looks into, one below the other: runs of a claim lie two deep, and a link may lead upwards.
pub const HISTORY_DEPTH_MAX: usize = 4;
/// Entries of one folder that a history looks at: runs have a few files each.
pub const HISTORY_ENTRIES_MAX: usize = 10_000;
/// Rounds of a run whose median stands in a history: of fewer it is the luck of one.
pub const HISTORY_ROUNDS_MIN: usize = 3;
/// Charts of a history's page, those of the longest series: a browser draws a thousand in a second, and nobody looks at more.
pub const HISTORY_CHARTS_MAX: usize = 1_000;

/// Numbers of CPUs: what kernels are built for at most (`CONFIG_NR_CPUS`) has 8,192.
pub const CPU_NUMBER_MAX: usize = onrush_machine::limits::CPUS_MAX - 1;
/// Receive queues of an interface: no card has more than one for each CPU.
pub const RECEIVE_QUEUES_MAX: u64 = 8_192;
/// Bits a second of a link: the fastest Ethernet has 1.6 T.
pub const LINK_BITS_MAX: f64 = 1e13;
/// Packets a second of a machine: the smallest frames on the fastest link.
pub const PACKET_RATE_MAX: u64 = 15_000_000_000;
/// Packets of a request in one direction: a response of a gigabyte has 700,000.
pub const PACKETS_PER_REQUEST_MAX: f64 = 1e6;
/// Machines that ask: more than a laboratory has.
pub const CLIENTS_MAX: u64 = 10_000;
/// Bytes of a message in one direction: a response of a gigabyte is a download, not a request.
pub const MESSAGE_BYTES_MAX: f64 = 1e9;
/// Connections at a time: every port of a hundred clients.
pub const CONNECTIONS_MAX: u64 = 6_000_000;
/// Requests or packets a second that a row may state: more than the fastest link carries.
pub const RATE_MAX: f64 = 15e9;
/// Microseconds that a request or a packet may cost: a minute is no request any more.
pub const COST_US_MAX: f64 = 6e7;
/// Microseconds that something costs at least, where it costs anything: a picosecond, in which no CPU does anything.
pub const COST_US_MIN: f64 = 1e-6;

/// Nodes of a host of Slurm: one ssh-like connection each, and a process of srun for it.
pub const NODES_MAX: u32 = 64;
/// Numbers of CPUs that belong to one host: the kernel's own bound is 8,192 (NR_CPUS), and this one is easy to take off.
pub const CPUS_OF_HOST_MAX: usize = 10_000;
/// A connection that says nothing for so long is cut, at both ends; heartbeats come each second. A route that is found
/// anew takes some seconds, and all that is started has ended well within a minute.
pub const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Between two heartbeats: some are lost before a connection counts as cut.
pub const HEARTBEAT_EVERY: Duration = Duration::from_secs(1);
/// Reaching a host, copying the program to it and starting it: 20 MB over 10 Mbit/s take 16 s.
pub const REACH_WAIT_MAX: Duration = Duration::from_secs(120);
/// An allocation of Slurm may wait in a queue for the jobs of a night.
pub const ALLOCATION_WAIT_MAX: Duration = Duration::from_secs(24 * 3_600);
/// One line between us and an agent: a file of an experiment, whose text has 1 MiB at most, each byte as six.
pub const LINE_BYTES_MAX: u64 = 8 << 20;
/// A piece of a text that is handed over in several lines.
pub const PIECE_BYTES_MAX: usize = 256 << 10;
/// Lines that the shell of a host may print before the agent speaks: greetings have some dozen.
pub const GREETING_LINES_MAX: usize = 1_000;
/// Lines of one answer: a row for each second of the longest window, or the pieces of the longest output.
pub const ANSWER_LINES_MAX: usize = 8_192;
/// A command that an agent runs to its end, such as a tuning.
pub const COMMAND_WAIT_MAX: Duration = Duration::from_secs(30);
/// Round trips by which clocks are compared: the shortest of so many met no queue.
pub const CLOCK_TRIPS: u32 = 16;

/// Trials that a page shows second by second: one of an hour has some ten charts and 0.4 MB, and a
/// browser opens 3 MB in 0.2 s.
pub const TRIALS_DRAWN_MAX: usize = 48;
/// Rounds of a variant that are all shown so; of more, the one in the middle is.
pub const ROUNDS_DRAWN_MAX: usize = 2;
/// CPUs of a trial that have a chart of their own; the others have their row in the map.
pub const CPUS_DRAWN_MAX: usize = 8;
/// Rows of a kind in a map: as many as fit on a screen or a printed page, one below the other.
pub const HEAT_ROWS_MAX: usize = 64;
/// Rows of all kinds in one map: about as high as two charts, which stand beside it.
pub const HEAT_ROWS_TOGETHER: usize = 32;
/// Interfaces in a chart: more lines, each for two directions, are not told apart.
pub const INTERFACES_DRAWN_MAX: usize = 4;
/// Charts of latency by rate, one for each combination of a sweep's other parameters: two rows of a wide page.
pub const RATE_CHARTS_MAX: usize = 6;
