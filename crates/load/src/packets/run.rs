//! A run of datagrams from start to report: the query of the target, one core per thread, and a thread that waits for
//! them.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use onrush_engine::{Choice, Cores, Handle, Setup, cpu};
use onrush_measure::units;
use onrush_packet::header::Flow;
use onrush_packet::report::{REPORT_BYTES, Report as FarReport, Role, report_request};

use super::counts::Counts;
use super::departure::SendMode;
use super::frames;
use super::kernel::KernelCounters;
use super::part::{Message, Outcome, run_core};
use super::path::{self, Path};
use super::plan::{Direction, Plan};
use super::report::{Report, ReportInputs};
use super::task::{RunContext, TargetCapability};
use crate::limits::{REPORT_REQUESTS_MAX, REPORT_TIMEOUT, SOFT_STOP};
use crate::pace::error::Error;
use crate::pace::start_barrier::StartBarrier;
use crate::pace::target::TargetAddress;
use crate::pace::target::lookup::Lookup;
use crate::pace::wall_clock::WallTime;
use crate::record::host::HostTime;

/// Starts a run.
///
/// # Errors
/// If the target's name cannot be resolved, nothing listens there, it does not match the options, or this machine does
/// not permit them.
pub fn start(mut plan: Plan) -> Result<RunHandle, Error> {
    let options = &plan.options;
    cpu::check(&options.cpus).map_err(Error::Invalid)?;
    let choice = onrush_engine::choose(options.io).map_err(Error::Invalid)?;
    let (target, lookup) = resolve(&plan)?;
    let run = (WallTime::now().nanoseconds() ^ u64::from(std::process::id()) << 20) as u32;
    plan.options.sources = plan.options.sources.same_family(&target);
    let options = &plan.options;
    let by = |name: &String| Path::by(name, target.ip());
    let paths: Vec<Path> = options
        .interfaces
        .iter()
        .map(by)
        .collect::<Result<_, _>>()?;
    let neighbours = match options.departure {
        SendMode::Single | SendMode::Batch | SendMode::Offload => Vec::new(),
        SendMode::Xdp => frames::prepare(options, &paths, target, run)?,
    };
    let (way, far) = far_end(&plan, &paths, target, run)?;
    let setup = Setup {
        io: choice.io,
        cpus: (0..options.threads)
            .map(|core| match options.cpus.len() {
                0 => None,
                cpus => Some(options.cpus[core % cpus]),
            })
            .collect(),
    };
    let gate = Arc::new(StartBarrier::new(options.threads, None));
    let task = Arc::new(RunContext {
        plan,
        direction: way,
        capability: far,
        target,
        lookup,
        paths,
        neighbours,
        run,
    });
    let (sender, messages) = channel();
    let (their_task, their_gate) = (Arc::clone(&task), Arc::clone(&gate));
    let (host, kernel) = (HostTime::now(), KernelCounters::now());
    let main = move |core| run_core(&core, &their_task, &their_gate, &sender);
    let cores = onrush_engine::start(&setup, main)
        .map_err(|error| Error::Invalid(format!("cannot start the threads: {error}")))?;
    Ok(RunHandle {
        cores,
        messages,
        task,
        choice,
        gate,
        host,
        kernel,
    })
}

fn resolve(plan: &Plan) -> Result<(SocketAddr, Option<Lookup>), Error> {
    let Plan { options, .. } = plan;
    let is_fit = |address: &SocketAddr| options.sources.supports(address);
    let url = &options.target.url;
    if let TargetAddress::Unix(_) = options.target.place {
        return Err(Error::Invalid(format!(
            "{url} is a Unix socket, but datagrams use UDP: expected udp://HOST:PORT"
        )));
    }
    // UDP cannot test which address works, so the first is used.
    let (fit, lookup) = options.target.place.resolve_all(is_fit)?;
    match fit.first() {
        Some(address) => Ok((*address, lookup)),
        None => Err(Error::Invalid(format!(
            "{url} has no address of the address family of --source"
        ))),
    }
}

/// Queries the target and determines the direction.
fn far_end(
    plan: &Plan,
    paths: &[Path],
    target: SocketAddr,
    run: u32,
) -> Result<(Direction, TargetCapability), Error> {
    let far = probe(plan, paths, target, run)?;
    let wanted = plan.options.direction;
    let url = &plan.options.target.url;
    match (far, wanted) {
        (Some(TargetResponse::Reports(Role::Sink)), None | Some(Direction::OneWay)) => {
            Ok((Direction::OneWay, TargetCapability::Reports))
        }
        (Some(TargetResponse::Reports(Role::Sink)), Some(Direction::RoundTrip)) => {
            Err(Error::Invalid(format!(
                "{url} is a sink, which sends nothing back: leave out --round-trip, or run onrush serve --echo there"
            )))
        }
        (Some(TargetResponse::Reports(Role::Echo) | TargetResponse::Echoes), None)
            if plan.options.departure == SendMode::Xdp =>
        {
            Err(Error::Invalid(format!(
                "{url} is an echo, but --via xdp is one-way: run onrush serve --sink there, or leave --via xdp out"
            )))
        }
        (Some(TargetResponse::Reports(Role::Echo)), None | Some(Direction::RoundTrip)) => {
            Ok((Direction::RoundTrip, TargetCapability::Reports))
        }
        (Some(TargetResponse::Echoes), None | Some(Direction::RoundTrip)) => {
            Ok((Direction::RoundTrip, TargetCapability::Silent))
        }
        (
            Some(TargetResponse::Reports(Role::Echo) | TargetResponse::Echoes),
            Some(Direction::OneWay),
        ) => Err(Error::Invalid(format!(
            "{url} is an echo, which sends everything back: leave out --one-way, or run onrush serve --sink there"
        ))),
        (None, Some(way)) => Ok((way, TargetCapability::Silent)),
        (None, None) => Err(Error::Invalid(format!(
            "{url} does not report whether it counts datagrams or sends them back: start onrush serve --sink or --echo \
             there, or pass --one-way or --round-trip"
        ))),
    }
}

/// Response of the target to the first report request.
enum TargetResponse {
    Reports(Role),
    /// A plain echo, which returned the request.
    Echoes,
}

/// Sends report requests until there is a response; `None` without one.
fn probe(
    plan: &Plan,
    paths: &[Path],
    target: SocketAddr,
    run: u32,
) -> Result<Option<TargetResponse>, Error> {
    let failed = |what: &str, error: std::io::Error| {
        Error::Invalid(format!("datagrams to {target} cannot be {what}: {error}"))
    };
    let socket = path::report_socket(&plan.options, paths.first(), 0, target)?;
    let timeout = Some(REPORT_TIMEOUT / 2);
    socket
        .set_read_timeout(timeout)
        .map_err(|error| failed("received", error))?;
    let flow = Flow {
        run,
        number: u16::MAX,
    };
    let mut bytes = [0; REPORT_BYTES + 1];
    for number in 0..REPORT_REQUESTS_MAX {
        let asked = report_request(flow, number);
        let received = socket.send(&asked).and_then(|_| socket.recv(&mut bytes));
        let datagram = match received {
            Ok(count) => &bytes[..count],
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                return Err(Error::Unreachable(format!(
                    "{target} refused the UDP datagrams (ICMP port unreachable)"
                )));
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                continue;
            }
            Err(error) => return Err(failed("sent", error)),
        };
        if datagram == asked {
            return Ok(Some(TargetResponse::Echoes));
        }
        if let Some(report) = FarReport::read(datagram).filter(|report| report.flow == flow) {
            return Ok(Some(TargetResponse::Reports(report.role)));
        }
    }
    Ok(None)
}

/// A run in progress.
pub struct RunHandle {
    cores: Cores<Result<Outcome, String>>,
    messages: Receiver<Message>,
    task: Arc<RunContext>,
    choice: Choice,
    gate: Arc<StartBarrier>,
    host: HostTime,
    kernel: KernelCounters,
}

/// Ends a run early, from any thread.
#[derive(Clone)]
pub struct StopHandle(Vec<Handle>);

impl StopHandle {
    /// Stops sending and reports what was measured.
    pub fn stop(&self) {
        self.0.iter().for_each(|handle| handle.stop(SOFT_STOP));
    }
}

/// Figures of a second.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Second {
    /// End of the second, in seconds since the start.
    pub t: f64,
    /// Datagrams sent.
    pub sent: u64,
    /// Echoes received.
    pub received: u64,
    /// Datagrams without an echo so far, including outstanding ones; 0 one way.
    pub missing: u64,
}

impl RunHandle {
    /// Describes the run in one line.
    pub fn headline(&self) -> String {
        let RunContext {
            plan,
            direction: way,
            capability: far,
            target,
            ..
        } = &*self.task;
        let options = &plan.options;
        let far = match (way, far) {
            (Direction::OneWay, TargetCapability::Reports) => "to a sink that counts them",
            (Direction::OneWay, TargetCapability::Silent) => {
                "one way, to a target that sends nothing"
            }
            (Direction::RoundTrip, TargetCapability::Reports) => "to an echo that counts them",
            (Direction::RoundTrip, TargetCapability::Silent) => "to an echo",
        };
        format!(
            "{} at {target}: datagrams of {} bytes {far}, {} over {}, {} ({})",
            options.target.url,
            options.sizes,
            units::plural(options.flows as u64, "socket"),
            units::plural(options.threads as u64, "thread"),
            options.departure,
            self.choice,
        )
    }

    /// Returns a handle that ends this run early.
    pub fn stopper(&self) -> StopHandle {
        StopHandle(self.cores.handles())
    }

    /// Waits for the end and calls `show` with the figures of each second.
    ///
    /// # Errors
    /// If a socket could not be opened.
    pub fn finish(self, mut show: impl FnMut(&Second)) -> Result<Report, Error> {
        let threads = self.task.plan.options.threads;
        let mut last = vec![Counts::default(); threads];
        let mut before = Counts::default();
        let mut seconds = Vec::new();
        // Ends when all cores have dropped their senders.
        for Message::Second(core, elapsed, counts) in &self.messages {
            last[core] = counts;
            let is_whole = elapsed.subsec_nanos() == 0 && !elapsed.is_zero();
            if core != 0 || !is_whole {
                continue;
            }
            let now = sum(&last);
            let second = second(elapsed, &now, &before, self.task.direction);
            show(&second);
            seconds.push(second);
            before = now;
        }
        let outcomes: Result<Vec<Outcome>, String> = self.cores.join().into_iter().collect();
        let outcomes = outcomes.map_err(Error::Invalid)?;
        Ok(Report::new(ReportInputs {
            task: &self.task,
            io: self.choice.io,
            outcomes: &outcomes,
            seconds,
            began: self.gate.started_at(),
            host: (self.host, HostTime::now()),
            kernel: KernelCounters::now().since(&self.kernel),
        }))
    }
}

fn sum(counts: &[Counts]) -> Counts {
    let mut sum = Counts::default();
    counts.iter().for_each(|core| sum.add(core));
    sum
}

fn second(elapsed: Duration, now: &Counts, before: &Counts, way: Direction) -> Second {
    Second {
        t: elapsed.as_secs_f64(),
        sent: now.sent.saturating_sub(before.sent),
        received: now.received.saturating_sub(before.received),
        missing: match way {
            Direction::OneWay => 0,
            Direction::RoundTrip => now.sent.saturating_sub(now.received),
        },
    }
}
