//! Runs the rounds of an experiment, trial by trial, until all are made or there is a reason to stop.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Instant;

use super::failure::{Failure, is_no_room};
use super::journal::{Journal, Line};
use super::leftover_processes;
use super::orphans::ExistingChildren;
use super::progress::result_in_words;
use super::rate::rate;
use super::self_placement::pin_self;
use super::subject::{Context, Subject};
use super::trial;
use crate::error::Error;
use crate::limits::START_FAILURES_MAX;
use crate::outcome::{Trial, WorkOutcome};
use crate::scenario::{Experiment, Work};
use crate::schedule::{Cell, Schedule};
use crate::verdict::{all_precise, figure_lines};

pub(super) struct Rounds<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) schedule: Schedule,
    pub(super) works: Vec<WorkOutcome>,
    pub(super) journal: Journal,
    pub(super) failures: BTreeMap<Cell, u32>,
    /// Start of the run, or of the run that it resumes.
    pub(super) started: Instant,
    pub(super) notes: Vec<String>,
    pub(super) lost: Option<String>,
    /// Write error, if a full disk ended the run.
    pub(super) no_room: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Complete,
    /// The next round would exceed the time budget.
    Budget,
    /// All figures have the required precision.
    Precise,
    Interrupted,
    Lost,
    NoRoom,
}

impl Rounds<'_> {
    /// Adds the trials of the resumed run.
    ///
    /// # Errors
    /// The name of a trial that the experiment lacks: the journal is damaged.
    pub(super) fn add_resumed(&mut self, lines: Vec<Line>) -> Result<(), String> {
        for line in lines {
            let mut works = self.works.iter_mut();
            let work = works.find(|work| work.name == line.work && work.point == line.point);
            let variants = work.into_iter().flat_map(|work| &mut work.variants);
            let mut variants = variants.filter(|variant| variant.name == line.variant);
            let is_made = line.trial.round <= self.experiment.rounds;
            match variants.next().filter(|_| is_made) {
                Some(variant) => variant.trials.push(line.trial),
                None => {
                    return Err(format!(
                        "round {} of `{}` / `{}`",
                        line.trial.round, line.work, line.variant
                    ));
                }
            }
        }
        Ok(())
    }

    /// Runs all trials, unless there is a reason to stop earlier.
    pub(super) fn run(&mut self, context: &mut Context<'_>) -> Ending {
        let began = Instant::now();
        for round in 1..=self.experiment.rounds {
            if round > 1 && self.is_precise() {
                return Ending::Precise;
            }
            if round > 1 && self.is_beyond_budget(began, round) {
                return Ending::Budget;
            }
            for cell in self.schedule.round(round) {
                if self.trial_of(cell, round).is_some() {
                    continue;
                }
                if context.interrupt.is_requested() {
                    return Ending::Interrupted;
                }
                if let Some(ending) = self.trial(context, round, cell) {
                    return ending;
                }
            }
        }
        Ending::Complete
    }

    pub(super) fn rounds_made(&self) -> u32 {
        let variants = self.works.iter().flat_map(|work| &work.variants);
        let rounds = variants.flat_map(|variant| variant.trials.iter().map(|trial| trial.round));
        rounds.max().unwrap_or(0)
    }

    fn trial_of(&self, cell: Cell, round: u32) -> Option<&Trial> {
        let trials = &self.works[cell.work].variants[cell.variant].trials;
        trials.iter().find(|trial| trial.round == round)
    }

    /// Whether another round would exceed the time budget if it takes as long as the average so far.
    fn is_beyond_budget(&self, began: Instant, round: u32) -> bool {
        let Some(budget) = self.experiment.budget else {
            return false;
        };
        let spent = began.elapsed();
        let each = spent / (round - 1).max(1);
        spent + each > budget
    }

    fn is_precise(&self) -> bool {
        let Some(precision) = self.experiment.precision else {
            return false;
        };
        let works = self.experiment.works.iter().zip(&self.works);
        let lines = works.flat_map(|(described, made)| {
            let figures = described.figures.iter();
            figures.flat_map(|figure| figure_lines(figure, &made.variants))
        });
        all_precise(lines, precision)
    }

    /// Runs one trial. Returns an ending if the run cannot continue.
    fn trial(&mut self, context: &mut Context<'_>, round: u32, cell: Cell) -> Option<Ending> {
        let work = &self.experiment.works[cell.work];
        let variant = &work.variants[cell.variant];
        context.progress.begin(self.label(round, cell));
        let failures = self.failures.entry(cell).or_default();
        if *failures >= START_FAILURES_MAX {
            context
                .progress
                .end("skipped: it failed in an earlier round");
            return None;
        }
        let placement = self.works[cell.work].variants[cell.variant]
            .placement
            .clone();
        pin_self(&placement, work.under_test(variant));
        let subject = |rate| Subject {
            work,
            variant,
            placement: &placement,
            network: None,
            round,
            rate,
            start_at: None,
            run_started: self.started,
        };
        let before = ExistingChildren::now();
        let made = match rate(&self.works, work) {
            Err(why) => Err(Failure::Failed(why)),
            Ok(rate) => trial::measure(context, subject(rate)),
        };
        // The trial has stopped its programs; this also finds processes in sessions of their own, as orphans or by the
        // run's name.
        let run = leftover_processes::run_name(context.root);
        let strays = before.kill_new() + leftover_processes::end(|name| name == run);
        let mut trial = match made {
            Err(Failure::Interrupted) => {
                context.progress.end("interrupted");
                return Some(Ending::Interrupted);
            }
            Err(Failure::Lost(why)) => {
                context.progress.end(&format!("LOST: {why}"));
                let label = self.label(round, cell);
                let note = format!("Stopped early, in {label}: {why}; `--resume` continues it.");
                self.notes.push(note);
                self.lost = Some(why);
                return Some(Ending::Lost);
            }
            Err(Failure::NoRoom(why)) => {
                context.progress.end(&format!("NO ROOM: {why}"));
                return Some(self.no_room(&why));
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
        trial.notes.extend(leftover_note(strays));
        self.keep(context, cell, trial)
    }

    fn no_room(&mut self, why: &str) -> Ending {
        let note = format!("Stopped early: {why}: free some space; `--resume` continues it.");
        let _ = writeln!(std::io::stderr(), "onrush bench: {note}");
        self.notes.push(note);
        self.no_room = Some(why.to_owned());
        Ending::NoRoom
    }

    /// Writes a trial to the journal. Returns an ending if the disk is full.
    fn keep(&mut self, context: &mut Context<'_>, cell: Cell, trial: Trial) -> Option<Ending> {
        let work = &self.works[cell.work];
        let variant = &work.variants[cell.variant].name;
        let kept = self.journal.add(work, variant, &trial, context.environment);
        if let Err(error) = kept {
            let source = std::error::Error::source(&error);
            let cause = source.map_or(String::new(), |cause| format!(": {cause}"));
            if let Error::Write(_, source) = &error
                && is_no_room(source)
            {
                // An incomplete line is ignored when the run is resumed, and the trial is made again.
                return Some(self.no_room(&format!("{error}{cause}")));
            }
            let note = format!("{error}{cause}: this run cannot be resumed.");
            let _ = writeln!(std::io::stderr(), "onrush bench: {note}");
            self.notes.push(note);
        }
        self.works[cell.work].variants[cell.variant]
            .trials
            .push(trial);
        None
    }

    fn label(&self, round: u32, cell: Cell) -> String {
        let work: &Work = &self.experiment.works[cell.work];
        let names = format!("{} · {}", work.title(), work.variants[cell.variant].name);
        if self.experiment.rounds == 1 {
            return names;
        }
        format!("round {round} · {names}")
    }
}

fn leftover_note(strays: usize) -> Option<String> {
    match strays {
        0 => None,
        1 => Some("a process that a program had started and not stopped was killed".to_owned()),
        more => Some(format!(
            "{more} processes that programs had started and not stopped were killed"
        )),
    }
}
