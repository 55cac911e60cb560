//! A run from its start to its report: one core per thread, and one thread that waits for what they tell it.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use onrush_engine::{Address, Choice, Core, Cores, Handle, Io, Setup, cpu, descriptors};
use onrush_measure::second::{Second, Tally};

use crate::client::{Client, End};
use crate::error::Error;
use crate::failure::Failure;
use crate::figures::Figures;
use crate::gate::Gate;
use crate::history::History;
use crate::host::HostTime;
use crate::limits::{
    BEAT, DESCRIPTORS_OF_PROGRAM, DESCRIPTORS_PER_CORE, SOFT_STOP, SPARE_SECONDS, START_AHEAD_MAX,
};
use crate::plan::Plan;
use crate::reach;
use crate::record::Record;
use crate::report::{Report, SecondRow};
use crate::rows::{Reading, Row, Rows};
use crate::seconds::{Measured, Seconds, Told};
use crate::standing::{Thread, View};
use crate::stop::{Patience, Progress, Prospect};
use crate::times::Times;
use crate::unanswered::Unanswered;
use crate::verdict::Verdict;
use crate::wall_clock::WallTime;

/// Starts what `plan` says.
///
/// # Errors
/// When the target's name cannot be resolved or this machine does not allow what was asked for.
pub fn start(plan: Plan) -> Result<Running, Error> {
    let options = &plan.options;
    check_start(options.start_at)?;
    check_descriptors(plan.connections() as u64, options.threads as u64)?;
    cpu::check(&options.cpus).map_err(Error::Invalid)?;
    let choice = onrush_engine::choose(options.io).map_err(Error::Invalid)?;
    let address = options.reach.resolve(&options.target)?;
    reach::check_host(&plan, &address)?;
    let setup = Setup {
        io: choice.io,
        cpus: (0..options.threads).map(|core| plan.cpu_of(core)).collect(),
    };
    let plan = Arc::new(plan);
    let (sender, messages) = channel();
    let (their_plan, their_address) = (Arc::clone(&plan), address.clone());
    let gate = Arc::new(Gate::new(plan.options.threads, plan.options.start_at));
    let their_gate = Arc::clone(&gate);
    let host = HostTime::now();
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
        .map_err(|error| Error::Invalid(format!("the threads cannot be started: {error}")))?;
    Ok(Running {
        cores,
        messages,
        plan,
        address,
        choice,
        gate,
        host,
        history,
        reason: Arc::default(),
    })
}

/// Refuses a moment to start at that has passed, or is so far away that it was mistyped.
fn check_start(start_at: Option<WallTime>) -> Result<(), Error> {
    let (Some(at), now) = (start_at, WallTime::now()) else {
        return Ok(());
    };
    let (ago, ahead) = (now.since(at), at.since(now));
    if !ago.is_zero() {
        return Err(Error::Invalid(format!(
            "--start-at {at} was {:.3} s ago by this machine's clock, which says {now}: choose a moment that is far enough ahead for every generator to be there",
            ago.as_secs_f64()
        )));
    }
    if ahead > START_AHEAD_MAX {
        return Err(Error::Invalid(format!(
            "--start-at {at} is {:.0} hours ahead by this machine's clock, which says {now}: a run is set to start within a day",
            ahead.as_secs_f64() / 3600.0
        )));
    }
    Ok(())
}

/// Refuses before the run what would only fail within it.
fn check_descriptors(connections: u64, threads: u64) -> Result<(), Error> {
    let needed = connections + threads * DESCRIPTORS_PER_CORE + DESCRIPTORS_OF_PROGRAM;
    match descriptors::raise() {
        Some(limit) if limit < needed => Err(Error::Invalid(format!(
            "{connections} connections need {needed} file descriptors and this process may have {limit}: raise the hard limit (ulimit -Hn {needed}) or use fewer connections"
        ))),
        _ => Ok(()),
    }
}

/// A run under way.
pub struct Running {
    cores: Cores<Outcome>,
    messages: Receiver<Message>,
    plan: Arc<Plan>,
    address: Address,
    choice: Choice,
    gate: Arc<Gate>,
    /// The machine's time before the run.
    host: HostTime,
    /// Made before the run, so that the run's memory does not grow.
    history: History,
    reason: Arc<OnceLock<String>>,
}

/// What ends a run early, from any thread. What was measured until then is reported.
#[derive(Clone)]
pub struct Stopper {
    handles: Vec<Handle>,
    reason: Arc<OnceLock<String>>,
}

impl Stopper {
    /// Ends the run now: no further request is sent. Answers that are on their way have as long to arrive as at the end of
    /// a run's time.
    pub fn stop(&self) {
        self.handles
            .iter()
            .for_each(|handle| handle.stop(SOFT_STOP));
    }

    /// Ends the run now because of `reason`, a clause such as "p99 is above 5 ms for good", which the report then has; the
    /// first one counts.
    pub fn stop_because(&self, reason: impl Into<String>) {
        let _ = self.reason.set(reason.into());
        self.stop();
    }
}

impl Running {
    /// One line about what runs where.
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
        format!(
            "{} at {}: {} over {}{pinned}, {}{start}",
            options.target.url,
            self.address,
            plural(self.plan.connections() as u64, "connection"),
            plural(options.threads as u64, "thread"),
            self.choice,
        )
    }

    /// What ends this run early.
    pub fn stopper(&self) -> Stopper {
        Stopper {
            handles: self.cores.handles(),
            reason: Arc::clone(&self.reason),
        }
    }

    /// Waits for the end and calls `show` with each second on the way.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when no connection could be made.
    pub fn finish(mut self, mut show: impl FnMut(&Moment<'_>)) -> Result<Report, Error> {
        let stopper = self.stopper();
        let mut rows = Rows::new(self.plan.options.threads);
        let mut seconds = Seconds::new(self.plan.options.threads);
        let mut patience = Patience::default();
        let mut prospect = Prospect::Hopeful;
        let mut threads = Vec::with_capacity(self.plan.options.threads);
        // Ends when all cores have: each holds a sender.
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
                if prospect == Prospect::Hopeful {
                    prospect = patience.judge(row.progress, row.elapsed);
                }
            }
            if prospect != Prospect::Hopeful {
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
        Ok(Report::new(Found {
            plan: &self.plan,
            io: self.choice.io,
            outcomes: &outcomes,
            times: seconds.whole,
            history: self.history,
            began: self.gate.began(),
            host,
            prospect,
            reason: self.reason.get().cloned(),
        }))
    }
}

/// All that is known of the run at the end of `row`, the last of `rows`.
fn view<'a>(
    plan: &'a Plan,
    row: &'a Row,
    rows: &'a Rows,
    threads: &'a [Thread],
    host: &'a HostTime,
) -> View<'a> {
    View {
        plan,
        elapsed: row.elapsed,
        tally: &row.now,
        standing: rows.standing(),
        threads,
        host,
    }
}

/// What is known at the end of a second of a run.
pub struct Moment<'a> {
    /// The counters and rates of the second.
    pub second: Second,
    /// The same of each core; one that has ended has rates of 0.
    pub cores: &'a [Second],
    /// The second as the report will have it.
    pub row: SecondRow,
    /// Answers since the start.
    pub answers: u64,
    /// Errors since the start.
    pub errors: u64,
    /// Of these, answers other than expected.
    pub unexpected: u64,
    /// Of these, failures to make a connection.
    pub connect_failures: u64,
    /// Answers since the start by class of status, 1xx to 5xx.
    pub statuses: [u64; 5],
    /// All that was measured since the start.
    pub times: &'a Times,
    /// For how long what has no answer has waited.
    pub unanswered: &'a Unanswered,
    pub(crate) view: View<'a>,
}

impl Moment<'_> {
    /// Errors since the start by kind, those that happened.
    pub fn errors_by_kind(&self) -> BTreeMap<String, u64> {
        self.view.standing.errors_by_kind()
    }

    /// Requests that are due and not sent yet.
    pub fn waiting(&self) -> u64 {
        self.view.waiting()
    }

    /// What can be said of the run so far. It costs a look at each thread's time, which the thread does not notice.
    pub fn verdict(&self) -> Verdict {
        Verdict::of(&self.view.evidence(self.times))
    }

    /// What conditions are about, so far.
    pub fn figures(&self) -> Figures {
        let classes = self.view.plan.protocol.outcomes().classes;
        let statuses = classes.map(str::to_owned).into_iter().zip(self.statuses);
        let standing = self.view.standing;
        Figures {
            times: self.times.clone(),
            answers: self.answers,
            errors: self.errors,
            unexpected: self.unexpected,
            timeouts: standing.failures_of(Failure::Timeout),
            unanswered: self.unanswered.clone(),
            // They may yet be answered.
            unfinished: 0,
            resent: standing.resent,
            missed: standing.missed,
            statuses: statuses.filter(|(_, count)| *count > 0).collect(),
            rps: self.row.rps,
        }
    }
}

/// What a report is made of.
pub(crate) struct Found<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) io: Io,
    pub(crate) outcomes: &'a [Outcome],
    /// What all answers took.
    pub(crate) times: Times,
    pub(crate) history: History,
    /// When it began; none when it was ended before.
    pub(crate) began: Option<WallTime>,
    /// The machine's time before and after the run.
    pub(crate) host: (HostTime, HostTime),
    pub(crate) prospect: Prospect,
    /// Why the caller ended it.
    pub(crate) reason: Option<String>,
}

pub(crate) fn plural(count: u64, noun: &str) -> String {
    let number = onrush_measure::units::count(count);
    match count {
        1 => format!("{number} {noun}"),
        _ => format!("{number} {noun}s"),
    }
}

/// When no connection was made and one was refused, that is the result, in one sentence.
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
        "nothing could be reached at {address}: {error} ({} in {:.1} s)",
        plural(attempts, "attempt"),
        elapsed.as_secs_f64(),
    )))
}

/// What a core tells the thread that waits.
pub(crate) enum Message {
    /// Its part of the run has begun.
    Began(Thread),
    /// A second has passed.
    Second(usize, Reading, Option<Measured>),
    /// It has ended; for how long what has no answer has waited.
    Ended(usize, Reading, Box<Unanswered>),
}

/// What one core comes to.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Its times are those since the last whole second.
    pub(crate) record: Record,
    pub(crate) end: End,
    /// Requests that were due and never sent.
    pub(crate) missed: u64,
    /// What had been counted when answers began to be measured, and how long the run had taken then.
    pub(crate) before: (Tally, Duration),
    /// How long the run had taken when the last answer came; none without one.
    pub(crate) answered_until: Option<Duration>,
    /// The answers of each connection.
    pub(crate) answers: Vec<u64>,
}

/// Core `core.id()`'s part of the run, from its start to its end.
pub(crate) fn run_core(
    core: &Core,
    plan: &Arc<Plan>,
    address: Address,
    gate: &Arc<Gate>,
    messages: &Sender<Message>,
) -> Outcome {
    let client = Client::new(core, plan, address);
    core.spawn(lead(
        core.clone(),
        Rc::clone(&client),
        Arc::clone(gate),
        messages.clone(),
    ));
    core.spawn(end_early(core.clone(), Rc::clone(&client)));
    core.run();
    let end = client.finish();
    // Whoever does not listen any more does not want to know.
    let mut unanswered = Box::<Unanswered>::default();
    client.unanswered(&mut unanswered);
    let _ = messages.send(Message::Ended(core.id(), client.read(), unanswered));
    client.give_up();
    let mut record = client.record.replace(Record::new(plan.protocol.outcomes()));
    client.samples().for_each(|info| record.add_tcp(info));
    Outcome {
        record,
        end,
        missed: client.missed(),
        before: client.before(),
        answered_until: client.answered_until(),
        answers: client.answers_by_connection(),
    }
}

/// Begins the core's part of the run together with the other cores', tells once a second what was counted, and ends it
/// when the time is over.
async fn lead(core: Core, client: Rc<Client>, gate: Arc<Gate>, messages: Sender<Message>) {
    let (back, empty) = channel();
    for _ in 0..SPARE_SECONDS {
        let _ = back.send(Box::default());
    }
    client.opened().await;
    client.start(gate.pass(&core).await);
    if let Some(thread) = client.thread() {
        let _ = messages.send(Message::Began(thread));
    }
    core.spawn(beat(core.clone()));
    if client.measured_from() > client.began() {
        let (own, beginning) = (core.clone(), Rc::clone(&client));
        core.spawn(async move {
            own.sleep_until(beginning.measured_from()).await;
            beginning.begin_measuring();
        });
    }
    let mut next = client.began();
    loop {
        next = next + Duration::from_secs(1);
        if let Some(end) = client.end().filter(|&end| end <= next) {
            core.sleep_until(end).await;
            return stop_softly(&core, &client).await;
        }
        core.sleep_until(next).await;
        if core.is_stopping() {
            // The last row ends with the run, not with the answers that are late.
            return;
        }
        let reading = client.read();
        client.next_second();
        // None has come back when the waiting thread has had no CPU for seconds: this one is then joined with the next,
        // so that the run's memory does not grow.
        let measured = empty.try_recv().ok().map(|mut empty: Box<Told>| {
            client.unanswered(&mut empty.unanswered);
            empty.times = client.take_times(empty.times);
            Measured::new(empty, back.clone())
        });
        let _ = messages.send(Message::Second(core.id(), reading, measured));
    }
}

/// Always has a timer that is due soon: a thread that was stopped, or waited for a CPU, sees by how much it is late.
async fn beat(core: Core) {
    loop {
        core.sleep(BEAT).await;
    }
}

/// Ends the core's part of the run when somebody asks for it.
async fn end_early(core: Core, client: Rc<Client>) {
    core.stopped().await;
    stop_softly(&core, &client).await;
}

/// Gives answers that are on their way some time to arrive; with the last one the client stops the core.
async fn stop_softly(core: &Core, client: &Client) {
    if client.finish().unfinished > 0 {
        core.sleep(SOFT_STOP).await;
    }
    core.stop(Duration::ZERO);
}

impl Client {
    fn read(&self) -> Reading {
        let record = self.record.borrow();
        Reading {
            elapsed: self.elapsed(),
            tally: record.tally,
            progress: Progress {
                established: record.established,
                connect_failures: record.connect_failures(),
                answers: record.answers(),
            },
            standing: self.standing(),
        }
    }
}
