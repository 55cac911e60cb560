//! Runs an experiment: all rounds of all variants of all works, interleaved.

mod agent;

mod agent_protocol;
mod child;
mod client_report;
mod cost;
mod failure;
mod flame;
mod idle;
mod interrupt;
mod journal;
mod leftover_processes;
mod loaded;
mod network;
mod notes;
mod orphans;
mod ports;
mod prepare;
mod profiles;
mod programs;
mod progress;
mod rate;
mod recording;
mod remote;
mod rounds;
mod running;
mod scratch;
mod self_placement;
mod start;
mod subject;
mod synchronized_start;
mod trial;
mod version;
mod warm_up;
mod watch;
mod window_metrics;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub use self::agent::serve as serve_agent;
pub use self::agent_protocol::check_any_bytes;
pub use self::journal::{Header, ResumedRun};

use self::interrupt::Interrupt;
use self::journal::Journal;
use self::notes::notes;
use self::profiles::Profiles;
use self::programs::{Missing, missing_of, with_program_paths};
use self::progress::Progress;
use self::remote::Hosts;
use self::rounds::{Ending, Rounds};
use self::scratch::Scratch;
use self::subject::Context;
use self::version::Versions;
use crate::clock::rfc3339;
use crate::environment::{self, Environment, usable_cpus};
use crate::error::Error;
use crate::outcome::{Outcome, SCHEMA, VariantOutcome, WorkOutcome, metrics_of_rounds};
use crate::placement::{self, CpuAllotment, place};
use crate::scenario::{Experiment, Program, Role, Variant, Work};
use crate::schedule::Schedule;
use crate::verdict::{disagreements, figure_lines};

/// Results of a run.
pub struct Measured {
    /// The figures.
    pub outcome: Outcome,
    /// Facts of the machine and the programs.
    pub environment: Environment,
    journal: Journal,
}

impl Measured {
    /// Removes the journal of a complete run after its results were written; an incomplete run can be resumed from it.
    pub fn close(self) {
        if self.outcome.complete {
            self.journal.remove();
        }
    }
}

/// How a run starts.
pub enum RunStart {
    /// A new run.
    Anew(Header),
    /// A resumed run.
    Earlier(ResumedRun),
}

impl RunStart {
    fn header(&self) -> &Header {
        match self {
            RunStart::Anew(header) => header,
            RunStart::Earlier(earlier) => &earlier.header,
        }
    }
}

/// Plan of a run.
pub struct Planned {
    /// Trials of each round.
    pub schedule: Schedule,
    /// Variants that are left out, with reasons.
    pub left_out: Vec<String>,
    /// Estimated length of a trial.
    pub trial_length: Duration,
    /// Works with the CPUs of each role.
    pub works: Vec<WorkOutcome>,
}

/// Checks the programs of an experiment and plans a run without starting anything.
///
/// # Errors
/// If nothing could be measured.
pub fn plan(experiment: &Experiment, onrush: &Path, header: &Header) -> Result<Planned, Error> {
    plan_on(experiment, onrush, header, &Hosts::default())
}

/// Plans a run with the programs on `hosts`, if these are connected.
fn plan_on(
    experiment: &Experiment,
    onrush: &Path,
    header: &Header,
    hosts: &Hosts,
) -> Result<Planned, Error> {
    let missing = programs::check_programs(experiment, onrush, hosts)?;
    let is_measured = |cell: crate::schedule::Cell| {
        let variant = &experiment.works[cell.work].variants[cell.variant];
        missing_of(variant, &missing).is_none()
    };
    Ok(Planned {
        schedule: Schedule::new(experiment, header.seed, is_measured),
        trial_length: experiment.trial_length(),
        works: works(experiment, &usable_cpus(), &missing, hosts),
        left_out: missing.sentences(),
    })
}

/// Whether the executable of a program is installed; true for programs that are not commands.
pub fn is_program_installed(experiment: &Experiment, program: &Program, onrush: &Path) -> bool {
    programs::file(experiment, program, onrush).is_none_or(|file| child::file_of(&file).is_some())
}

/// Whether a command is installed on this machine.
pub(crate) fn is_installed(program: &str) -> bool {
    child::file_of(program).is_some()
}

/// Path of the Onrush executable.
///
/// # Errors
/// If the system does not report it.
pub fn own_program(asked: Option<&Path>) -> Result<PathBuf, Error> {
    let onrush = match asked {
        Some(path) => path.to_owned(),
        None => std::env::current_exe()
            .map_err(|source| Error::System("find the running program", source))?,
    };
    onrush
        .canonicalize()
        .map_err(|source| Error::Read(onrush.clone(), source.into()))
}

/// Runs an experiment until it is complete or a signal arrives. Failures of programs become notes of their trials.
///
/// # Errors
/// If nothing can be measured: programs are missing, the journal cannot be written to `out`, or an earlier run cannot
/// be resumed.
pub fn measure(
    experiment: &Experiment,
    onrush: &Path,
    out: &Path,
    begin: RunStart,
) -> Result<Measured, Error> {
    let interrupt =
        Interrupt::listen().map_err(|source| Error::System("listen for signals", source))?;
    let open_files_max = idle::raise_open_files_max();
    orphans::become_subreaper();
    let root = Scratch::create().map_err(|source| Error::Write(std::env::temp_dir(), source))?;
    let hosts = Hosts::reach(experiment, onrush, &root.path, &interrupt);
    let planned = plan_on(experiment, onrush, begin.header(), &hosts)?;
    let versions = Versions::below(&root.path, &interrupt)
        .map_err(|source| Error::Write(root.path.clone(), source))?;
    let file_of = |program: &str| child::file_of(&with_program_paths(program, experiment, onrush));
    let mut environment =
        environment::read(experiment, onrush, file_of, |command| versions.of(command));
    environment.hosts = hosts.facts(experiment);
    let header = begin.header().clone();
    let started = UNIX_EPOCH + Duration::from_secs_f64(header.started);
    let (journal, lines) = match begin {
        RunStart::Anew(header) => (Journal::create(out, header, &environment)?, Vec::new()),
        RunStart::Earlier(earlier) => Journal::resume(out, earlier, &mut environment)?,
    };
    let since = SystemTime::now()
        .duration_since(started)
        .unwrap_or_default();
    let now = Instant::now();
    let mut rounds = Rounds {
        experiment,
        journal,
        works: planned.works,
        failures: BTreeMap::new(),
        started: now.checked_sub(since).unwrap_or(now),
        notes: first_notes(experiment, &planned.left_out, lines.len(), started),
        lost: None,
        no_room: None,
        schedule: planned.schedule,
    };
    let mut progress = Progress::new(experiment, &rounds.schedule, lines.len());
    rounds.add_resumed(lines).map_err(|name| {
        let said = format!("its experiment has no {name}; start it again");
        Error::Resume(out.to_owned(), said)
    })?;
    let mut context = Context {
        experiment,
        onrush,
        root: &root.path,
        open_files_max,
        interrupt: &interrupt,
        hosts: &hosts,
        progress: &mut progress,
        profiles: experiment.profile.then(|| Profiles::below(out)),
        environment: &mut environment,
    };
    let ending = rounds.run(&mut context);
    hosts.finish(&mut environment.hosts);
    let (outcome, journal) = outcome(rounds, ending, &header, started);
    Ok(Measured {
        outcome,
        environment,
        journal,
    })
}

/// Notes that are known before the measurement.
fn first_notes(
    experiment: &Experiment,
    left_out: &[String],
    made: usize,
    started: SystemTime,
) -> Vec<String> {
    let left_out = left_out.iter().map(|what| format!("Left out: {what}."));
    let warning = experiment.too_few_cpus(environment::usable_cpus().len());
    let mut notes: Vec<String> = warning.into_iter().chain(left_out).collect();
    if made > 0 {
        notes.push(format!(
            "Resumed: {made} trials were finished before this run was interrupted, from {} on.",
            rfc3339(started)
        ));
    }
    notes
}

fn works(
    experiment: &Experiment,
    cpus: &[usize],
    missing: &Missing,
    hosts: &Hosts,
) -> Vec<WorkOutcome> {
    let variant = |work: &Work, variant: &Variant| {
        let under_test = work.under_test(variant);
        let roles: Vec<Role> = variant.roles.keys().copied().collect();
        let room = CpuAllotment {
            sharing: work.sharing,
            each_max: work.cpus_per_role.or(experiment.cpus_per_role),
        };
        VariantOutcome {
            name: variant.name.clone(),
            ours: variant
                .subject
                .unwrap_or_else(|| experiment.programs[&variant.roles[&under_test]].is_ours()),
            under_test,
            programs: variant.roles.clone(),
            hosts: hosts_of(variant),
            placement: match &variant.remote {
                Some(remote) => hosts.placement(remote, under_test, room),
                None => place(cpus, &roles, under_test, room),
            },
            left_out: missing_of(variant, missing),
            disagreeing: Default::default(),
            metrics: BTreeMap::new(),
            trials: Vec::new(),
        }
    };
    let work = |work: &Work| WorkOutcome {
        name: work.name.clone(),
        point: work.point.clone(),
        is_road: work.has_steps,
        labels: work.labels.clone(),
        about: work.about.clone(),
        connections: work.connections,
        variants: work
            .variants
            .iter()
            .map(|entry| variant(work, entry))
            .collect(),
        figures: Vec::new(),
    };
    experiment.works.iter().map(work).collect()
}

fn hosts_of(variant: &Variant) -> BTreeMap<Role, String> {
    let remote = variant.remote.iter();
    let roles = remote.flat_map(|remote| {
        let of = remote.of.iter();
        of.map(|(role, host)| (*role, remote.hosts[*host].name.clone()))
    });
    roles.collect()
}

fn outcome(
    rounds: Rounds<'_>,
    ending: Ending,
    header: &Header,
    started: SystemTime,
) -> (Outcome, Journal) {
    let experiment = rounds.experiment;
    let made = rounds.rounds_made();
    let mut works = rounds.works;
    for (work, described) in works.iter_mut().zip(&experiment.works) {
        for variant in &mut work.variants {
            variant.trials.sort_by_key(|trial| trial.round);
            variant.metrics = metrics_of_rounds(&variant.trials);
        }
        work.figures = described
            .figures
            .iter()
            .flat_map(|figure| figure_lines(figure, &work.variants))
            .collect();
        for variant in &mut work.variants {
            variant.disagreeing = disagreements(&work.figures, variant, experiment.precision);
        }
    }
    let mut outcome = Outcome {
        schema: SCHEMA,
        experiment: experiment.name.clone(),
        about: experiment.about.trim().to_owned(),
        started: rfc3339(started),
        duration_s: rounds.started.elapsed().as_secs_f64(),
        complete: match ending {
            Ending::Complete | Ending::Budget | Ending::Precise => true,
            Ending::Interrupted | Ending::Lost | Ending::NoRoom => false,
        },
        lost: rounds.lost,
        no_room: rounds.no_room,
        quick: header.choice.quick,
        rounds: match ending {
            Ending::Complete | Ending::Interrupted | Ending::Lost | Ending::NoRoom => {
                experiment.rounds
            }
            Ending::Budget | Ending::Precise => made,
        },
        warm_up_s: experiment.warm_up.longest().as_secs_f64(),
        measure_s: experiment.measure.as_secs_f64(),
        seed: rounds.schedule.seed(),
        placement_rule: placement::RULE.into(),
        notes: rounds.notes,
        works,
    };
    let more = notes(&outcome, ending);
    outcome.notes.extend(more);
    (outcome, rounds.journal)
}
