//! Self-test: compares reports with known delays of a server, and measures the limits of this machine.

mod server;
mod text;

use std::num::NonZeroU64;
use std::time::Duration;

use onrush_engine::{Core, Instant, Io, clock};
use onrush_measure::histogram::Histogram;
use onrush_measure::{percentile, units};

use crate::pace::Pace;
use crate::pace::error::Error;
use crate::pace::target::Target;
use crate::plan::{Connecting, Options, Plan};
use crate::report::Report;
use crate::run;
use server::{Delay, Observations, Server};

/// Tolerance of a percentile, as a share of the expected value ...
const ERROR_SHARE_MAX: f64 = 0.02;
/// ... or as a time; the larger one applies.
const ERROR_MAX: Duration = Duration::from_micros(20);

/// Share of a CPU taken by others that is visible in p99.9, the rarest percentile compared.
const TAKEN_MAX: f64 = 0.001;

/// Result of the self-test.
#[derive(Clone, Debug)]
pub struct SelfTest {
    /// Driver tested.
    pub io: Io,
    /// Limits of this machine.
    pub host: Host,
    /// Comparisons.
    pub checks: Vec<Check>,
}

/// Limits of this machine at the time of the test.
#[derive(Clone, Debug)]
pub struct Host {
    /// Response times without a delay, over one connection.
    pub floor: Histogram,
    /// Lateness of timers of 50 us, and of 1 ms.
    pub slip_50us: Histogram,
    /// See `slip_50us`.
    pub slip_1ms: Histogram,
    /// Responses per second of one thread over 50 connections, with the server on another thread.
    pub ceiling: f64,
    /// Time taken from the CPUs of generator and server while a thread on each did nothing but read the clock.
    pub gaps: Vec<Gaps>,
}

/// Times in which a thread that never sleeps did not run.
#[derive(Clone, Debug)]
pub struct Gaps {
    /// Gaps longer than the tolerance of a figure, in nanoseconds.
    pub lengths: Histogram,
    /// Share of the gaps in the total time.
    pub share: f64,
}

/// Comparison of one figure of a report with its expected value.
#[derive(Clone, Debug)]
pub struct Check {
    /// Behaviour of the server.
    pub case: &'static str,
    /// Name of the figure.
    pub figure: String,
    /// Expected value; times in microseconds.
    pub expected: f64,
    /// Reported value.
    pub reported: f64,
    /// Largest accepted difference.
    pub tolerance: f64,
}

impl Check {
    fn exact(case: &'static str, figure: &str, expected: u64, reported: u64) -> Check {
        Check {
            case,
            figure: figure.to_owned(),
            expected: expected as f64,
            reported: reported as f64,
            tolerance: 0.0,
        }
    }

    /// Compares times in nanoseconds.
    fn time(case: &'static str, figure: String, expected: f64, reported: u64) -> Check {
        let tolerance = (expected * ERROR_SHARE_MAX).max(ERROR_MAX.as_nanos() as f64);
        Check {
            case,
            figure,
            expected: expected / 1e3,
            reported: reported as f64 / 1e3,
            tolerance: tolerance / 1e3,
        }
    }

    /// Whether the difference is within the tolerance.
    pub fn is_right(&self) -> bool {
        (self.reported - self.expected).abs() <= self.tolerance
    }
}

impl SelfTest {
    /// Whether every comparison is right.
    pub fn is_right(&self) -> bool {
        self.checks.iter().all(Check::is_right)
    }
}

/// Tests the generator with the driver `io`; takes about 30 seconds.
///
/// # Errors
/// When a server or a run cannot be started.
pub fn test(io: Io) -> Result<SelfTest, Error> {
    let io = onrush_engine::choose(io).map_err(Error::Invalid)?.io;
    let host = host(io)?;
    let millisecond = Duration::from_millis(1);
    let mut checks = Vec::new();
    // Few connections: an interruption of the machine affects each response in flight.
    for (case, delay, connections, count) in [
        ("constant 2 ms", Delay::Constant(millisecond * 2), 4, 5_000),
        (
            "exponential, mean 2 ms",
            Delay::Exponential(millisecond * 2),
            10,
            20_000,
        ),
        (
            "1 ms, and 10 ms for 15 %",
            Delay::Bimodal(millisecond, millisecond * 10, 0.15),
            5,
            10_000,
        ),
    ] {
        let (report, seen) = run_against(io, delay, |options| {
            options.connections = connections;
            options.stop.count = Some(count);
        })?;
        checks.push(Check::exact(case, "responses", count, report.requests));
        checks.push(Check::exact(case, "requests seen", seen.requests, count));
        percentiles(case, delay, &report, &seen, &host, &mut checks);
    }
    stall(io, &mut checks)?;
    closes(io, &mut checks)?;
    rate(io, &mut checks)?;
    Ok(SelfTest { io, host, checks })
}

fn host(io: Io) -> Result<Host, Error> {
    let (floor, _) = run_against(io, Delay::None, |options| options.stop.count = Some(5_000))?;
    let (ceiling, _) = run_against(io, Delay::None, |options| {
        options.connections = 50;
        options.stop.after = Some(Duration::from_secs(1));
    })?;
    Ok(Host {
        floor: floor.times.service,
        slip_50us: timer_lateness(io, Duration::from_micros(50))?,
        slip_1ms: timer_lateness(io, Duration::from_millis(1))?,
        ceiling: ceiling.rps,
        gaps: gaps(io)?,
    })
}

/// Reads the clock for a second on the CPUs of generator and server at once; on one CPU if they share it.
fn gaps(io: Io) -> Result<Vec<Gaps>, Error> {
    const TIME: Duration = Duration::from_secs(1);
    let cpus = match can_busy_poll() {
        true => vec![cpu(0), cpu(1)],
        false => vec![None],
    };
    let setup = onrush_engine::Setup { io, cpus };
    let cores = onrush_engine::start(&setup, |_: Core| {
        let begun = clock::now();
        let (mut last, mut lengths, mut lost) = (begun, Histogram::new(), 0);
        while last.since(begun) < TIME {
            let now = clock::now();
            let gap = now.since(last);
            if gap > ERROR_MAX {
                lengths.record(now.nanoseconds_since(last));
                lost += now.nanoseconds_since(last);
            }
            last = now;
        }
        let share = lost as f64 / last.nanoseconds_since(begun) as f64;
        Gaps { lengths, share }
    })
    .map_err(|error| Error::Invalid(format!("cannot start a thread: {error}")))?;
    Ok(cores.join())
}

/// Whether generator and server can busy-poll on a CPU each. Their figures then exclude wake-ups, which `Host` has.
fn can_busy_poll() -> bool {
    cpu(1).is_some()
}

/// CPU of the generator (0) or the server (1), if there are at least two.
fn cpu(role: usize) -> Option<usize> {
    let cpus = onrush_engine::cpu::allowed();
    (cpus.len() > 1).then(|| cpus[role])
}

/// Measures the lateness of timers of `time`.
fn timer_lateness(io: Io, time: Duration) -> Result<Histogram, Error> {
    let setup = onrush_engine::Setup {
        io,
        cpus: vec![None],
    };
    let cores = onrush_engine::start(&setup, move |core: Core| {
        let slips = std::rc::Rc::new(std::cell::RefCell::new(Histogram::new()));
        let (own, record) = (core.clone(), std::rc::Rc::clone(&slips));
        core.spawn(async move {
            for _ in 0..1000 {
                let due = clock::now() + time;
                own.sleep_until(due).await;
                let late = clock::now().nanoseconds_since(due);
                record.borrow_mut().record(late);
            }
        });
        core.run();
        slips.take()
    })
    .map_err(|error| Error::Invalid(format!("cannot start a thread: {error}")))?;
    Ok(cores.join().pop().unwrap_or_default())
}

/// Runs the generator once against a server with this delay.
fn run_against(
    io: Io,
    delay: Delay,
    change: impl FnOnce(&mut Options),
) -> Result<(Report, Observations), Error> {
    let server = Server::start(io, delay)?;
    let url = format!("http://{}/", server.address);
    let mut options = Options {
        cpus: cpu(0).into_iter().collect(),
        io,
        busy_poll: can_busy_poll(),
        connecting: Connecting::Before,
        ..Options::new(Target::parse(&url).map_err(Error::Invalid)?)
    };
    change(&mut options);
    let report = run::start(Plan::new(options)?)?.finish(|_| ())?;
    Ok((report, server.stop()))
}

/// Compares all percentiles with the delays' percentiles plus the lateness of the server's timers and the round trip.
fn percentiles(
    case: &'static str,
    delay: Delay,
    report: &Report,
    seen: &Observations,
    host: &Host,
    checks: &mut Vec<Check>,
) {
    let floor = host.floor.value_at(50.0) as f64;
    for at in percentile::supported(report.times.response.count()) {
        let Some(analytic) = delay.quantile(at / 100.0) else {
            continue;
        };
        let waited = seen.waited.value_at(at) as f64;
        let slip = (waited - analytic.as_nanos() as f64).max(0.0);
        let expected = analytic.as_nanos() as f64 + slip + floor;
        let figure = format!(
            "p{} (slip {})",
            units::percentile(at),
            units::nanoseconds(slip)
        );
        let reported = report.times.response.value_at(at);
        checks.push(Check::time(case, figure, expected, reported));
    }
}

/// The server stalls for half a second of four, at a constant rate. Response times of requests due in the stall are
/// spread evenly between zero and the stall. Service times show the stall only for the few requests in flight.
fn stall(io: Io, checks: &mut Vec<Check>) -> Result<(), Error> {
    const CASE: &str = "stall of 0.5 s in 4 s at 400/s";
    const RATE: u64 = 400;
    let time = Duration::from_secs(4);
    let delay = Delay::Stall(Duration::from_secs(1), Duration::from_millis(500));
    let run = |delay: Delay, time: Duration| {
        run_against(io, delay, |options| {
            options.connections = 10;
            options.pace = Pace::rate(NonZeroU64::new(RATE).expect("not zero"));
            options.stop.after = Some(time);
        })
    };
    // Times at the same rate without a stall: caches get cold between two requests.
    let (usual, _) = run(Delay::None, Duration::from_secs(2))?;
    let (report, seen) = run(delay, time)?;
    let count = RATE * time.as_secs();
    let finished = report.requests + report.errors + report.unfinished + report.missed;
    checks.push(Check::exact(CASE, "requests", count, finished));
    let (Some(first), Some((begin, end))) = (seen.first, seen.stall) else {
        checks.push(Check::exact(CASE, "stalls", 1, 0));
        return Ok(());
    };
    let due = |number: u64| first + Duration::from_nanos(number * 1_000_000_000 / RATE);
    let (held_up, others): (Vec<Instant>, Vec<Instant>) = (0..count)
        .map(due)
        .partition(|due| (begin..end).contains(due));
    let floor = usual.times.response.value_at(50.0);
    let mut expected: Vec<u64> = held_up
        .iter()
        .map(|due| floor + end.nanoseconds_since(*due))
        .collect();
    // The other requests have the distribution without a stall.
    let share = |rank: usize| 100.0 * (rank as f64 + 0.5) / others.len() as f64;
    expected.extend((0..others.len()).map(|rank| usual.times.response.value_at(share(rank))));
    expected.sort_unstable();
    for at in percentile::supported(report.times.response.count()) {
        let rank = percentile::rank(count, at).clamp(1, count);
        let expected = expected[rank as usize - 1] as f64;
        let figure = format!("response p{}", units::percentile(at));
        let reported = report.times.response.value_at(at);
        checks.push(Check::time(CASE, figure, expected, reported));
    }
    let figure = "service p90".to_owned();
    let reported = report.times.service.value_at(90.0);
    let expected = usual.times.service.value_at(90.0);
    checks.push(Check::time(CASE, figure, expected as f64, reported));
    Ok(())
}

/// Closed connections cost no response and no error, and are counted.
fn closes(io: Io, checks: &mut Vec<Check>) -> Result<(), Error> {
    const CASE: &str = "closes after 10 responses";
    let (report, seen) = run_against(io, Delay::ClosesAfter(10), |options| {
        options.stop.count = Some(2_000);
    })?;
    for (figure, expected, reported) in [
        ("responses", 2_000, report.requests),
        ("requests seen", seen.requests, 2_000),
        ("errors", 0, report.errors),
        ("connections", 200, report.connections),
    ] {
        checks.push(Check::exact(CASE, figure, expected, reported));
    }
    Ok(())
}

/// The achieved rate equals the configured rate.
fn rate(io: Io, checks: &mut Vec<Check>) -> Result<(), Error> {
    const CASE: &str = "2,000/s for 2 s";
    let (report, _) = run_against(io, Delay::None, |options| {
        options.connections = 20;
        options.pace = Pace::rate(NonZeroU64::new(2_000).expect("not zero"));
        options.stop.after = Some(Duration::from_secs(2));
    })?;
    let started = report.requests + report.errors + report.unfinished + report.missed;
    checks.push(Check::exact(CASE, "requests due", 4_000, started));
    checks.push(Check {
        case: CASE,
        figure: "responses per second".to_owned(),
        expected: 2_000.0,
        reported: report.rps,
        tolerance: 2_000.0 * ERROR_SHARE_MAX,
    });
    Ok(())
}
