//! A run from its start to its report: one core per thread, and the calling thread, which collects their messages.

pub mod exposition;
pub mod live;
pub(crate) mod part;
pub mod populate;
pub(crate) mod seconds;
pub mod selftest;
pub(crate) mod udp_probe;

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock};

use onrush_engine::{Address, Choice, Core, Cores, Handle, Setup, cpu, descriptors};
use onrush_measure::units;

use crate::connection::outcome::Outcome;
use crate::limits::{DESCRIPTORS_OF_PROGRAM, DESCRIPTORS_PER_CORE, SOFT_STOP, START_AHEAD_MAX};
use crate::pace::error::Error;
use crate::pace::start_barrier::StartBarrier;
use crate::pace::stop::{RunHealth, StallDetector};
use crate::pace::target::lookup::Lookup;
use crate::pace::wall_clock::WallTime;
use crate::plan::Plan;
use crate::plan::reach;
use crate::record::history::History;
use crate::record::host::HostTime;
use crate::record::host::ports::Ports;
use crate::record::live_counters::{RunView, Thread};
use crate::record::rows::{Row, RowCollector};
use crate::report::Report;
use crate::report::report_input::ReportInput;
use crate::report::snapshot::Snapshot;
use crate::requests::memcached::TransportKind;
use crate::run::part::{Message, run_core};
use crate::run::seconds::Seconds;

/// Starts the run of `plan`.
///
/// # Errors
/// When the target's name cannot be resolved, or this machine does not support the options.
pub fn start(plan: Plan) -> Result<Running, Error> {
    let options = &plan.options;
    check_start(options.start_at)?;
    check_descriptors(plan.connections() as u64, options.threads as u64)?;
    cpu::check(&options.cpus).map_err(Error::Invalid)?;
    let choice = onrush_engine::choose(options.io).map_err(Error::Invalid)?;
    let (address, lookup) = match plan.carrier() {
        TransportKind::Streams => options.reach.resolve(&options.target)?,
        TransportKind::Datagrams => {
            let (address, lookup) = udp_probe::find(&plan)?;
            (Address::Tcp(address), lookup)
        }
    };
    reach::check_host(&plan, &address)?;
    let setup = Setup {
        io: choice.io,
        cpus: (0..options.threads).map(|core| plan.cpu_of(core)).collect(),
    };
    let plan = Arc::new(plan);
    let (sender, messages) = channel();
    let (their_plan, their_address) = (Arc::clone(&plan), address.clone());
    let gate = Arc::new(StartBarrier::new(
        plan.options.threads,
        plan.options.start_at,
    ));
    let their_gate = Arc::clone(&gate);
    let host = HostTime::now();
    let ports = plan
        .uses_ephemeral_ports(&address)
        .then(Ports::now)
        .flatten();
    let history = History::new();
    let main = move |core: Core| {
        run_core(
            &core,
            &their_plan,
            their_address.clone(),
            &their_gate,
            &sender,
        )
    };
    let cores = onrush_engine::start(&setup, main)
        .map_err(|error| Error::Invalid(format!("cannot start the threads: {error}")))?;
    Ok(Running {
        cores,
        messages,
        plan,
        address,
        lookup,
        choice,
        gate,
        host,
        ports,
        history,
        reason: Arc::default(),
    })
}

/// Rejects a start time that has passed, or that is so far ahead that it must be a typing error.
fn check_start(start_at: Option<WallTime>) -> Result<(), Error> {
    let (Some(at), now) = (start_at, WallTime::now()) else {
        return Ok(());
    };
    let (ago, ahead) = (now.since(at), at.since(now));
    if !ago.is_zero() {
        return Err(Error::Invalid(format!(
            "--start-at {at} was {:.3} s ago by this machine's clock, which shows {now}: choose a time far enough \
             ahead for every generator to be ready",
            ago.as_secs_f64()
        )));
    }
    if ahead > START_AHEAD_MAX {
        return Err(Error::Invalid(format!(
            "--start-at {at} is {:.0} hours ahead by this machine's clock, which shows {now}: choose a time within a \
             day",
            ahead.as_secs_f64() / 3600.0
        )));
    }
    Ok(())
}

/// Rejects a number of connections that would exceed the limit on file descriptors during the run.
fn check_descriptors(connections: u64, threads: u64) -> Result<(), Error> {
    let needed = connections + threads * DESCRIPTORS_PER_CORE + DESCRIPTORS_OF_PROGRAM;
    match descriptors::raise() {
        Some(limit) if limit < needed => Err(Error::Invalid(format!(
            "{connections} connections need {needed} file descriptors, but the limit of this process is {limit}: raise \
             the hard limit (ulimit -Hn {needed}) or use fewer connections"
        ))),
        _ => Ok(()),
    }
}

/// A run in progress.
pub struct Running {
    cores: Cores<Outcome>,
    messages: Receiver<Message>,
    plan: Arc<Plan>,
    address: Address,
    lookup: Option<Lookup>,
    choice: Choice,
    gate: Arc<StartBarrier>,
    /// The machine's CPU times before the run.
    host: HostTime,
    ports: Option<Ports>,
    /// Allocated before the run, so that the memory of the run does not grow.
    history: History,
    reason: Arc<OnceLock<String>>,
}

/// Stops a run early, from any thread. The report has the results until then.
#[derive(Clone)]
pub struct StopHandle {
    handles: Vec<Handle>,
    reason: Arc<OnceLock<String>>,
}

impl StopHandle {
    /// Stops the run: no further request is sent. Responses in flight have the usual time to arrive.
    pub fn stop(&self) {
        self.handles
            .iter()
            .for_each(|handle| handle.stop(SOFT_STOP));
    }

    /// Stops the run with a reason for the report, such as "p99 is above 5 ms for good". The first reason wins.
    pub fn stop_because(&self, reason: impl Into<String>) {
        let _ = self.reason.set(reason.into());
        self.stop();
    }
}

impl Running {
    /// Describes target, threads and connections in one line.
    pub fn headline(&self) -> String {
        let options = &self.plan.options;
        let cpus: Vec<String> = options.cpus.iter().map(usize::to_string).collect();
        let pinned = match cpus.len() {
            0 => String::new(),
            _ => format!(" on CPU {}", cpus.join(",")),
        };
        let start = options.start_at.map_or(String::new(), |at| {
            let left = at.since(WallTime::now());
            format!("; starts at {at}, in {:.1} s", left.as_secs_f64())
        });
        let (over, noun) = match self.plan.carrier() {
            TransportKind::Streams => ("", "connection"),
            TransportKind::Datagrams => (" over UDP", "socket"),
        };
        format!(
            "{} at {}{over}: {} over {}{pinned}, {}{start}",
            options.target.url,
            self.address,
            units::plural(self.plan.connections() as u64, noun),
            units::plural(options.threads as u64, "thread"),
            self.choice,
        )
    }

    /// Returns a handle that stops the run early.
    pub fn stopper(&self) -> StopHandle {
        StopHandle {
            handles: self.cores.handles(),
            reason: Arc::clone(&self.reason),
        }
    }

    /// Waits for the end of the run and calls `show` after each second.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if no connection could be made.
    pub fn finish(mut self, mut show: impl FnMut(&Snapshot<'_>)) -> Result<Report, Error> {
        let stopper = self.stopper();
        let mut rows = RowCollector::new(self.plan.options.threads);
        let mut seconds = Seconds::new(self.plan.options.threads);
        let mut patience = StallDetector::default();
        let mut prospect = RunHealth::Hopeful;
        let mut threads = Vec::with_capacity(self.plan.options.threads);
        // Ends when all cores have ended, because each holds a sender.
        for message in &self.messages {
            match message {
                Message::Began(thread) => threads.push(thread),
                Message::Second(core, reading, measured) => {
                    rows.read(core, reading);
                    seconds.add(core, measured);
                }
                Message::Ended(core, reading, unanswered) => {
                    rows.ended(core, reading);
                    seconds.ended(core, unanswered);
                }
            }
            while let Some(row) = rows.next() {
                seconds.next();
                let times = &seconds.second;
                self.history.keep(row, &times.response, &times.service);
                let view = view(&self.plan, &row, &rows, &threads, &self.host);
                show(&seconds.moment(&row, rows.cores(), view));
                if prospect == RunHealth::Hopeful {
                    prospect = patience.judge(row.progress, row.elapsed);
                }
            }
            if prospect != RunHealth::Hopeful {
                stopper.stop();
            }
        }
        let last = rows.last();
        let mut outcomes = self.cores.join();
        let host = (self.host, HostTime::now());
        seconds.last(outcomes.iter_mut().map(|outcome| &mut outcome.record.times));
        if let Some(row) = last {
            let times = &seconds.second;
            self.history.keep(row, &times.response, &times.service);
            let view = view(&self.plan, &row, &rows, &threads, &host.0);
            show(&seconds.moment(&row, rows.cores(), view));
        }
        refuse_unreachable(&outcomes, &self.address)?;
        Ok(Report::new(ReportInput {
            plan: &self.plan,
            io: self.choice.io,
            lookup: self.lookup,
            outcomes: &outcomes,
            times: seconds.whole,
            history: self.history,
            began: self.gate.started_at(),
            host,
            ports: self.ports.zip(Ports::now()),
            prospect,
            reason: self.reason.get().cloned(),
        }))
    }
}

/// State of the run at the end of `row`, the last of `rows`.
fn view<'a>(
    plan: &'a Plan,
    row: &'a Row,
    rows: &'a RowCollector,
    threads: &'a [Thread],
    host: &'a HostTime,
) -> RunView<'a> {
    RunView {
        plan,
        elapsed: row.elapsed,
        tally: &row.now,
        standing: rows.standing(),
        threads,
        host,
    }
}

/// Returns an error if no connection was made and an attempt failed.
fn refuse_unreachable(outcomes: &[Outcome], address: &Address) -> Result<(), Error> {
    let established: u64 = outcomes.iter().map(|core| core.record.established).sum();
    let error = outcomes
        .iter()
        .find_map(|core| core.record.connect_error.as_ref());
    let Some(error) = error.filter(|_| established == 0) else {
        return Ok(());
    };
    let attempts = outcomes
        .iter()
        .map(|core| core.record.tally.connections)
        .sum();
    let elapsed = outcomes
        .iter()
        .map(|core| core.end.elapsed)
        .max()
        .unwrap_or_default();
    Err(Error::Unreachable(format!(
        "cannot reach {address}: {error} ({} in {:.1} s)",
        units::plural(attempts, "attempt"),
        elapsed.as_secs_f64(),
    )))
}
