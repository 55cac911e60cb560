//! A run from its start to its report: one core per thread, and one thread that waits for what they tell it.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use onrush_engine::{Address, Choice, Core, Cores, Handle, Setup, clock, descriptors};
use onrush_measure::second::Second;

use crate::client::Client;
use crate::error::Error;
use crate::limits::{DESCRIPTORS_OF_PROGRAM, DESCRIPTORS_PER_CORE, ROWS_MAX};
use crate::plan::Plan;
use crate::record::Record;
use crate::report::Report;
use crate::rows::{Reading, Row, Rows};
use crate::stop::{Patience, Progress, Prospect};

/// Starts what `plan` says.
///
/// # Errors
/// When the target's name cannot be resolved or this machine does not allow what was asked for.
pub fn start(plan: Plan) -> Result<Running, Error> {
    let options = &plan.options;
    check_descriptors(options.connections as u64, options.threads as u64)?;
    let choice = onrush_engine::choose(options.io).map_err(Error::Invalid)?;
    let address = options.target.resolve()?;
    let setup = Setup {
        io: choice.io,
        cpus: (0..options.threads).map(|core| plan.cpu_of(core)).collect(),
    };
    let plan = Arc::new(plan);
    let (sender, messages) = channel();
    let (their_plan, their_address) = (Arc::clone(&plan), address.clone());
    let main = move |core: Core| run_core(&core, &their_plan, their_address.clone(), &sender);
    let cores = onrush_engine::start(&setup, main).map_err(|error| {
        Error::Invalid(format!(
            "the threads cannot be started ({error}): check that the CPUs in --cpus exist and may be used"
        ))
    })?;
    Ok(Running {
        cores,
        messages,
        plan,
        address,
        choice,
    })
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
}

/// What ends a run early, from any thread. What was measured until then is reported.
#[derive(Clone)]
pub struct Stopper(Vec<Handle>);

impl Stopper {
    /// Ends the run now.
    pub fn stop(&self) {
        // Whatever is in flight would only tell what happened after the end.
        self.0.iter().for_each(|handle| handle.stop(Duration::ZERO));
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
        format!(
            "{} at {}: {} over {}{pinned}, {}",
            options.target.url,
            self.address,
            plural(options.connections as u64, "connection"),
            plural(options.threads as u64, "thread"),
            self.choice,
        )
    }

    /// What ends this run early.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.cores.handles())
    }

    /// Waits for the end and calls `show` with each second's figures on the way.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when no connection could be made.
    pub fn finish(self, mut show: impl FnMut(&Second)) -> Result<Report, Error> {
        let stopper = self.stopper();
        let mut rows = Rows::new(self.plan.options.threads);
        let mut patience = Patience::default();
        let mut prospect = Prospect::Hopeful;
        let mut kept = Vec::new();
        let mut keep = |row: Row| {
            show(&row.second());
            if kept.len() < ROWS_MAX {
                kept.push(row);
            }
        };
        // Ends when all cores have: each holds a sender.
        for message in &self.messages {
            match message {
                Message::Second(core, reading) => rows.read(core, reading),
                Message::Ended(core, reading) => rows.ended(core, reading),
            }
            while let Some(row) = rows.next() {
                keep(row);
                if prospect == Prospect::Hopeful {
                    prospect = patience.judge(row.progress, row.elapsed);
                }
            }
            if prospect != Prospect::Hopeful {
                stopper.stop();
            }
        }
        if let Some(row) = rows.last() {
            keep(row);
        }
        let outcomes = self.cores.join();
        refuse_unreachable(&outcomes, &self.address)?;
        Ok(Report::new(
            &self.plan,
            self.choice.io,
            &outcomes,
            &kept,
            prospect,
        ))
    }
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
        .map(|core| core.elapsed)
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
    /// A second has passed.
    Second(usize, Reading),
    /// It has ended.
    Ended(usize, Reading),
}

/// What one core comes to.
pub(crate) struct Outcome {
    pub(crate) record: Record,
    /// From the start of the run to its end on this core.
    pub(crate) elapsed: Duration,
    /// CPU time that the run has cost on this core.
    pub(crate) cpu: Duration,
}

/// Core `core.id()`'s part of the run, from its start to its end.
pub(crate) fn run_core(
    core: &Core,
    plan: &Arc<Plan>,
    address: Address,
    messages: &Sender<Message>,
) -> Outcome {
    let cpu_before = clock::thread_cpu();
    let client = Client::begin(core, plan, address);
    core.spawn(tick(core.clone(), Rc::clone(&client), messages.clone()));
    core.run();
    let cpu = clock::thread_cpu().saturating_sub(cpu_before);
    let reading = client.read();
    // Whoever does not listen any more does not want to know.
    let _ = messages.send(Message::Ended(core.id(), reading));
    Outcome {
        record: client.record.replace(Record::new()),
        elapsed: reading.elapsed,
        cpu,
    }
}

/// Tells what was counted once a second, and stops the core when the time is over.
async fn tick(core: Core, client: Rc<Client>, messages: Sender<Message>) {
    let mut next = client.began();
    loop {
        next = next + Duration::from_secs(1);
        if let Some(end) = client.end().filter(|&end| end <= next) {
            core.sleep_until(end).await;
            core.stop(Duration::ZERO);
            return;
        }
        core.sleep_until(next).await;
        let _ = messages.send(Message::Second(core.id(), client.read()));
    }
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
        }
    }
}
