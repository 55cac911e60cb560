//! A whole run: every round of every variant of every work, interleaved, until done or interrupted.

mod child;
mod facts;
mod idle;
mod interrupt;
mod notes;
mod ports;
mod prepare;
mod profiles;
mod progress;
mod rate;
mod recording;
mod start;
mod subject;
mod trial;
mod watch;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rustix::thread::{CpuSet, sched_setaffinity};

use self::interrupt::Interrupt;
use self::notes::notes;
use self::profiles::Profiles;
use self::progress::{Progress, result_in_words};
use self::rate::rate;
use self::subject::{Context, Failure, Subject};
use crate::environment::{self, Environment, usable_cpus};
use crate::error::Error;
use crate::limits::START_FAILURES_MAX;
use crate::options::Options;
use crate::outcome::{Outcome, SCHEMA, Trial, VariantOutcome, WorkOutcome, metrics_of_rounds};
use crate::placement::{self, Placement, place};
use crate::report::clock::rfc3339;
use crate::scenario::{Experiment, Launch, Role, Variant, Work, render};
use crate::verdict::figure_lines;

/// Everything that is written.
#[derive(Debug)]
pub struct Measured {
    /// The numbers.
    pub outcome: Outcome,
    /// The machine and the programs.
    pub environment: Environment,
}

/// Runs an experiment to its end or until a signal. Programs that fail become notes of their trials. Profiles are
/// written below `out` as they are made.
pub fn measure(experiment: &Experiment, options: &Options, out: &Path) -> Result<Measured, Error> {
    let onrush = match &options.onrush {
        Some(path) => path.clone(),
        None => std::env::current_exe()
            .map_err(|source| Error::System("find the running program", source))?,
    };
    let onrush = onrush
        .canonicalize()
        .map_err(|source| Error::Read(onrush.clone(), source.into()))?;
    check_programs(experiment, &onrush)?;
    let interrupt =
        Interrupt::listen().map_err(|source| Error::System("listen for signals", source))?;
    let open_files_max = idle::raise_open_files_max();
    let root = Scratch::create().map_err(|source| Error::Write(std::env::temp_dir(), source))?;
    let mut environment = environment::read(experiment, &onrush, |program| {
        child::file_of(&with_program_paths(program, experiment, &onrush))
    });
    let mut run = Run {
        works: works(experiment, &usable_cpus()),
        failures: BTreeMap::new(),
        started: Instant::now(),
        experiment,
    };
    let started = SystemTime::now();
    let mut progress = Progress::new(experiment);
    let mut context = Context {
        experiment,
        onrush: &onrush,
        root: &root.path,
        open_files_max,
        interrupt: &interrupt,
        progress: &mut progress,
        profiles: experiment.profile.then(|| Profiles::below(out)),
        environment: &mut environment,
    };
    let ending = run.rounds(&mut context);
    Ok(Measured {
        outcome: run.outcome(ending, options, started),
        environment,
    })
}

// Before anything starts.

/// Every program must be there before the first round: finding out in the middle would waste the rest.
fn check_programs(experiment: &Experiment, onrush: &Path) -> Result<(), Error> {
    let mut missing = Vec::new();
    let used = |name: &String| {
        let variants = experiment.works.iter().flat_map(|work| &work.variants);
        variants
            .flat_map(|variant| variant.roles.values())
            .any(|used| used == name)
    };
    for (name, program) in &experiment.programs {
        let Launch::Command(command) = &program.launch else {
            continue;
        };
        let file = with_program_paths(&command[0], experiment, onrush);
        if !used(name) || child::file_of(&file).is_some() {
            continue;
        }
        let remedy = match (&program.package, &program.hint) {
            (_, Some(hint)) => hint.clone(),
            (Some(package), None) => format!("apt-get install {package}"),
            (None, None) => "install it, or take it out of the experiment".into(),
        };
        missing.push(format!("{file} (program `{name}`): {remedy}"));
    }
    if child::file_of("taskset").is_none() {
        missing.push("taskset, which pins programs to CPUs: apt-get install util-linux".into());
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::Missing(missing))
}

fn with_program_paths(template: &str, experiment: &Experiment, onrush: &Path) -> String {
    let bin_dir = onrush.parent().unwrap_or(Path::new("."));
    let values = [
        ("onrush", onrush),
        ("bin_dir", bin_dir),
        ("experiment_dir", experiment.directory.as_path()),
    ];
    let values = values.map(|(name, path)| (name.to_owned(), path.display().to_string()));
    render(template, &values.into())
}

/// A directory for the programs' files that goes away with the run.
struct Scratch {
    path: PathBuf,
}

impl Scratch {
    fn create() -> io::Result<Scratch> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let name = format!("onrush-bench-{}-{}", std::process::id(), now.as_nanos());
        let path = std::env::temp_dir().join(name);
        // Not create_dir_all: a directory that is already there belongs to somebody else.
        fs::create_dir(&path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(Scratch { path })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn works(experiment: &Experiment, cpus: &[usize]) -> Vec<WorkOutcome> {
    let variant = |work: &Work, variant: &Variant| {
        let under_test = work.under_test(variant);
        let roles: Vec<Role> = variant.roles.keys().copied().collect();
        VariantOutcome {
            name: variant.name.clone(),
            ours: experiment.programs[&variant.roles[&under_test]].is_ours(),
            under_test,
            programs: variant.roles.clone(),
            placement: place(cpus, &roles, under_test, experiment.cpus_per_role),
            metrics: BTreeMap::new(),
            trials: Vec::new(),
        }
    };
    let work = |work: &Work| WorkOutcome {
        name: work.name.clone(),
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

// Rounds.

struct Run<'a> {
    experiment: &'a Experiment,
    works: Vec<WorkOutcome>,
    /// Failures in a row, by work and variant.
    failures: BTreeMap<(usize, usize), u32>,
    started: Instant,
}

/// Whether every trial was made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Complete,
    Interrupted,
}

impl Run<'_> {
    /// Makes all trials, unless it is interrupted.
    fn rounds(&mut self, context: &mut Context<'_>) -> Ending {
        for round in 1..=self.experiment.rounds {
            for work in 0..self.experiment.works.len() {
                for variant in 0..self.experiment.works[work].variants.len() {
                    if context.interrupt.is_asked() || !self.trial(context, round, work, variant) {
                        return Ending::Interrupted;
                    }
                }
            }
        }
        Ending::Complete
    }

    /// Makes one trial; false when interrupted in it.
    fn trial(
        &mut self,
        context: &mut Context<'_>,
        round: u32,
        work_index: usize,
        variant_index: usize,
    ) -> bool {
        let work = &self.experiment.works[work_index];
        let variant = &work.variants[variant_index];
        let failures = self
            .failures
            .entry((work_index, variant_index))
            .or_default();
        context
            .progress
            .begin(label(self.experiment, round, work, variant));
        if *failures >= START_FAILURES_MAX {
            context.progress.end("left out: it failed before");
            return true;
        }
        let placement = self.works[work_index].variants[variant_index]
            .placement
            .clone();
        step_aside(&placement, work.under_test(variant));
        let made = match rate(&self.works, work) {
            Err(why) => Err(Failure::Failed(why)),
            Ok(rate) => trial::measure(
                context,
                Subject {
                    work,
                    variant,
                    placement: &placement,
                    round,
                    rate,
                    run_started: self.started,
                },
            ),
        };
        let trial = match made {
            Err(Failure::Interrupted) => {
                context.progress.end("interrupted");
                return false;
            }
            Ok(trial) => {
                *failures = 0;
                context.progress.end(&result_in_words(&trial));
                trial
            }
            Err(Failure::Failed(why)) => {
                *failures += 1;
                context.progress.end(&format!("FAILED: {why}"));
                Trial {
                    round,
                    at_s: self.started.elapsed().as_secs_f64(),
                    invalid: vec![why],
                    ..Trial::default()
                }
            }
        };
        self.works[work_index].variants[variant_index]
            .trials
            .push(trial);
        true
    }

    fn outcome(mut self, ending: Ending, options: &Options, started: SystemTime) -> Outcome {
        for (work, described) in self.works.iter_mut().zip(&self.experiment.works) {
            for variant in &mut work.variants {
                variant.metrics = metrics_of_rounds(&variant.trials);
            }
            work.figures = described
                .figures
                .iter()
                .flat_map(|figure| figure_lines(figure, &work.variants))
                .collect();
        }
        let mut outcome = Outcome {
            schema: SCHEMA,
            experiment: self.experiment.name.clone(),
            about: self.experiment.about.trim().to_owned(),
            started: rfc3339(started),
            duration_s: self.started.elapsed().as_secs_f64(),
            complete: ending == Ending::Complete,
            quick: options.quick,
            rounds: self.experiment.rounds,
            warm_up_s: self.experiment.warm_up.as_secs_f64(),
            measure_s: self.experiment.measure.as_secs_f64(),
            placement_rule: placement::RULE.into(),
            notes: Vec::new(),
            works: self.works,
        };
        outcome.notes = notes(&outcome);
        outcome
    }
}

fn label(experiment: &Experiment, round: u32, work: &Work, variant: &Variant) -> String {
    let names = format!("{} · {}", work.name, variant.name);
    if experiment.rounds == 1 {
        return names;
    }
    format!("round {round} · {names}")
}

/// Moves ourselves away from the role under test: to CPUs without a role, else to those of the other roles.
///
/// Best effort; each program is pinned by its own command line, whatever it inherits.
fn step_aside(placement: &Placement, under_test: Role) {
    let taken = placement.all();
    let mut chosen: Vec<usize> = placement
        .cpus
        .iter()
        .filter(|(role, _)| **role != under_test)
        .flat_map(|(_, cpus)| cpus.iter().copied())
        .collect();
    let spare: Vec<usize> = (0..CpuSet::MAX_CPU)
        .filter(|cpu| {
            !taken.contains(cpu) && Path::new(&format!("/sys/devices/system/cpu/cpu{cpu}")).exists()
        })
        .collect();
    if !spare.is_empty() {
        chosen = spare;
    }
    let mut set = CpuSet::new();
    for cpu in chosen {
        set.set(cpu);
    }
    let _ = sched_setaffinity(None, &set);
}
