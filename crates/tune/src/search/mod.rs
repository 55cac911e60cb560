//! Tries settings one at a time against the best so far, with a measurement that the user provides.
//!
//! A candidate and the best so far are measured alternately, because machines drift. It is kept if it wins every turn,
//! and by more than one percent in the median; otherwise the old values are restored. Winning five turns of five by
//! chance has a probability of 1 in 32.

mod candidates;

use std::io;

use serde::Serialize;

use crate::Error;
use crate::advise::{Action, Plan, Request, Revert, Target, ValueFormat};
use crate::apply::{self, Applied, Journal, Location, Machine, Outcome};
use crate::facts::Facts;
use candidates::{Candidate, CandidateKind, Value};

/// Smallest relevant difference.
const EFFECT_MIN: f64 = 0.01;

/// Trace of a search, in order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SearchTrace {
    /// Median before any change.
    pub start: f64,
    /// Candidates tried.
    pub steps: Vec<Step>,
    /// How the search ended.
    pub end: End,
}

/// How a search ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// All candidates were tried.
    Whole,
    /// Stopped by the user.
    Stopped,
    /// A candidate could not be undone, so nothing can be compared any more; contains the reason.
    Stuck(String),
}

/// A candidate compared with the best so far.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// Description of the change.
    pub change: String,
    /// Median with the change; `None` if it could not be applied or measured.
    pub result: Option<f64>,
    /// Ratio to the best so far: minimum, median and maximum over all turns.
    pub ratio: Option<(f64, f64, f64)>,
    /// Whether it was kept.
    pub is_kept: bool,
    /// Why it could not be tried.
    pub trouble: Option<String>,
}

/// How candidates are measured and reported.
pub struct Trials<'here> {
    /// Measurements of each candidate and of the best so far; at least one.
    pub turns: usize,
    /// Returns a number; larger is better.
    pub measure: &'here mut dyn FnMut() -> Result<f64, Unmeasured>,
    /// Called after the first measurement and after each step.
    pub on_step: &'here mut dyn FnMut(&SearchTrace),
}

/// Reason for a missing measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unmeasured {
    /// It failed; contains the reason.
    Failed(String),
    /// Stopped by the user.
    Stopped,
}

/// Tries all candidates and leaves the machine with the best settings. [`Unmeasured::Stopped`] ends it early.
///
/// All changes are in the journal, so that `apply::revert` restores the machine, even after a crash.
pub fn search(
    machine: &mut impl Machine,
    request: &Request,
    journal: &mut Journal,
    trials: Trials,
) -> Result<SearchTrace, Error> {
    assert!(
        trials.turns > 0,
        "a comparison needs at least one measurement"
    );
    let mut firsts = Vec::new();
    for _ in 0..trials.turns {
        firsts.push((trials.measure)().map_err(|why| match why {
            Unmeasured::Failed(why) => Error::Request(why),
            Unmeasured::Stopped => {
                Error::Request("stopped before the first candidate was tried".to_owned())
            }
        })?);
    }
    let mut road = SearchTrace {
        start: middle(&mut firsts),
        steps: Vec::new(),
        end: End::Whole,
    };
    (trials.on_step)(&road);
    let mut search = Search {
        machine,
        request,
        journal,
        trials,
    };
    // Each stage starts from the facts after the previous stage.
    for stage in candidates::STAGES {
        for candidate in stage(&search.machine.facts()?, request)? {
            match search.try_out(&candidate)? {
                CandidateResult::Step(step) => road.steps.push(step),
                CandidateResult::Over(end) => road.end = end,
            }
            (search.trials.on_step)(&road);
            if road.end != End::Whole {
                return Ok(road);
            }
        }
    }
    Ok(road)
}

struct Search<'here, 'told, M> {
    machine: &'here mut M,
    request: &'here Request,
    journal: &'here mut Journal,
    trials: Trials<'told>,
}

type Values = [(Target, Value)];

enum CandidateResult {
    Step(Step),
    Over(End),
}

enum Turn {
    /// Values of the best so far and of the candidate.
    Measured(f64, f64),
    Failed(String),
    Over(End),
}

impl<M: Machine> Search<'_, '_, M> {
    /// Compares a candidate with the best so far, and keeps or undoes it.
    fn try_out(&mut self, candidate: &Candidate) -> Result<CandidateResult, Error> {
        let mut step = Step {
            change: candidate.change.clone(),
            result: None,
            ratio: None,
            is_kept: false,
            trouble: None,
        };
        let facts = self.machine.facts()?;
        let values = candidate.values(&facts);
        if self.actions(&facts, candidate, &values).is_empty() {
            step.trouble = Some("already set".to_owned());
            return Ok(CandidateResult::Step(step));
        }
        let mut ratios = Vec::new();
        let mut results = Vec::new();
        for _ in 0..self.trials.turns {
            match self.turn(candidate)? {
                Turn::Measured(best, result) => {
                    ratios.push(result / best);
                    results.push(result);
                }
                Turn::Failed(why) => {
                    step.trouble = Some(why);
                    return Ok(CandidateResult::Step(step));
                }
                Turn::Over(end) => return Ok(CandidateResult::Over(end)),
            }
        }
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        let ratio = middle(&mut ratios);
        step.result = Some(middle(&mut results));
        step.ratio = Some((least, ratio, most));
        step.is_kept = least > 1.0 && ratio > 1.0 + EFFECT_MIN;
        if step.is_kept {
            let facts = self.machine.facts()?;
            let values = candidate.values(&facts);
            let before = self.before(&facts, &values);
            step.trouble = self.swap(candidate, &values)?;
            step.is_kept = step.trouble.is_none();
            if !step.is_kept
                && let Some(why) = self.put_back(candidate, &before)?
            {
                return Ok(CandidateResult::Over(End::Stuck(why)));
            }
        }
        Ok(CandidateResult::Step(step))
    }

    /// Measures the best so far and the candidate, and undoes the candidate.
    fn turn(&mut self, candidate: &Candidate) -> Result<Turn, Error> {
        let best = match (self.trials.measure)() {
            Ok(best) => best,
            Err(Unmeasured::Failed(why)) => return Ok(Turn::Failed(why)),
            Err(Unmeasured::Stopped) => return Ok(Turn::Over(End::Stopped)),
        };
        // Read again in each turn, because programs start and end threads.
        let facts = self.machine.facts()?;
        let values = candidate.values(&facts);
        let before = self.before(&facts, &values);
        let result = match self.swap(candidate, &values) {
            Ok(None) => Ok((self.trials.measure)()),
            Ok(Some(why)) => Ok(Err(Unmeasured::Failed(why))),
            Err(error) => Err(error),
        };
        // Undo first, also after an error.
        let stuck = self.put_back(candidate, &before)?;
        let result = result?;
        if let Some(why) = stuck {
            return Ok(Turn::Over(End::Stuck(why)));
        }
        Ok(match result {
            Ok(result) if best > 0.0 => Turn::Measured(best, result),
            Ok(_) => Turn::Failed("the measurement's result is not above 0".to_owned()),
            Err(Unmeasured::Failed(why)) => Turn::Failed(why),
            Err(Unmeasured::Stopped) => Turn::Over(End::Stopped),
        })
    }

    /// Current values of all targets, and of settings that are lost when these change.
    fn before(&self, facts: &Facts, values: &Values) -> Vec<(Target, Value)> {
        let mut targets: Vec<Target> = Vec::new();
        for (target, _) in values {
            targets.push(target.clone());
            targets.extend(apply::lost_with(target, facts));
        }
        let value = |target: Target| {
            let now = self.machine.get(&Location::of(&target, facts)?).ok()?;
            Some((target, Value::Text(now)))
        };
        targets.into_iter().filter_map(value).collect()
    }

    /// Restores the old values. A thread started meanwhile inherited the tried CPUs; it gets the CPUs of its process's
    /// first thread. Returns the refused changes.
    fn put_back(
        &mut self,
        candidate: &Candidate,
        before: &Values,
    ) -> Result<Option<String>, Error> {
        let refused = self.swap(candidate, before)?;
        if !matches!(candidate.what, CandidateKind::Application(_)) {
            return Ok(refused);
        }
        let facts = self.machine.facts()?;
        let had = |process: u32| {
            let first = |target: &Target| matches!(target, Target::Thread { process: its, thread, .. } if *its == process && *thread == process);
            let found = before.iter().find(|(target, _)| first(target));
            found.or_else(|| before.first()).map(|(_, value)| value)
        };
        let started = facts.application.iter().filter_map(|(number, thread)| {
            let target = candidates::target(*number, thread);
            let is_known = before.iter().any(|(known, _)| *known == target);
            (!is_known).then(|| Some((target, had(thread.process)?.clone())))?
        });
        let started: Vec<_> = started.collect();
        let also = self.swap(candidate, &started)?;
        Ok(refused.or(also))
    }

    /// Sets values, numbers of queues first: interrupts have other numbers afterwards and are looked up again. Returns
    /// what was refused.
    fn swap(&mut self, candidate: &Candidate, values: &Values) -> Result<Option<String>, Error> {
        let (drivers, others): (Vec<_>, Vec<_>) = values
            .iter()
            .cloned()
            .partition(|(target, _)| matches!(target, Target::Driver { .. }));
        let mut refused = None;
        for values in [drivers, others] {
            if values.is_empty() {
                continue;
            }
            let plan = Plan {
                request: self.request.clone(),
                actions: self.actions(&self.machine.facts()?, candidate, &values),
                ..Plan::default()
            };
            let applied = apply::apply_actions(self.machine, &plan, self.journal)?;
            refused = refused.or_else(|| self.refusal(&applied));
        }
        Ok(refused)
    }

    /// Why a value could not be set. Threads that have ended are ignored.
    fn refusal(&self, applied: &[Applied]) -> Option<String> {
        let has_ended = |target: &Target| match target {
            Target::Thread {
                process,
                thread,
                started,
            } => {
                let place = Location::Thread(*process, *thread, *started);
                matches!(self.machine.get(&place), Err(error) if error.kind() == io::ErrorKind::NotFound)
            }
            _ => false,
        };
        applied.iter().find_map(|change| match &change.outcome {
            Outcome::Refused(why) if !has_ended(&change.target) => {
                Some(format!("{}: {why}", change.path))
            }
            _ => None,
        })
    }

    /// Changes needed for these values, without those already set and targets that are gone.
    fn actions(&self, facts: &Facts, candidate: &Candidate, values: &Values) -> Vec<Action> {
        let action = |(target, value): &(Target, Value)| {
            let place = Location::of(target, facts)?;
            let now = self.machine.get(&place).ok()?;
            let path = place.to_string();
            let spelling = ValueFormat::of(&path);
            let proposed = match (value, spelling) {
                (Value::Cpus(cpus), ValueFormat::CpuMask) => cpus.mask_like(&now),
                (Value::Cpus(cpus), _) => cpus.to_string(),
                (Value::Text(text), _) => text.trim().to_owned(),
            };
            (!spelling.is_same(&now, &proposed)).then(|| Action {
                target: target.clone(),
                path,
                current: now.trim().to_owned(),
                proposed,
                reason: candidate.change.clone(),
                source: "measured here".to_owned(),
                risk: "none other than those seen in the measurement".to_owned(),
                revert: Revert::WriteBack,
                effect: "the measurement".to_owned(),
            })
        };
        values.iter().filter_map(action).collect()
    }
}

/// Median; of an even number the lower middle value, so that it is a measured one.
fn middle(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() - 1) / 2]
}

/// Formats a trace as a table.
pub fn table(road: &SearchTrace) -> String {
    let first = first_row(road);
    let rest = road.steps.iter().map(row);
    std::iter::once(first).chain(rest).collect()
}

/// The last row of the table.
pub fn last_row(road: &SearchTrace) -> String {
    road.steps.last().map_or_else(|| first_row(road), row)
}

fn first_row(road: &SearchTrace) -> String {
    format!("{:<64} {:>12}\n", "start", figure(road.start))
}

fn row(step: &Step) -> String {
    let verdict = match (&step.trouble, step.is_kept) {
        (Some(trouble), _) => format!("not tried: {trouble}"),
        (None, true) => "kept".to_owned(),
        (None, false) => "restored".to_owned(),
    };
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    let change = step.ratio.map(|(least, ratio, most)| {
        format!(
            "{:+.1} % ({:+.1} to {:+.1})",
            percent(ratio),
            percent(least),
            percent(most)
        )
    });
    let result = step.result.map(figure).unwrap_or_default();
    format!(
        "{:<64} {result:>12}  {:<28} {verdict}\n",
        step.change,
        change.unwrap_or_default()
    )
}

fn figure(value: f64) -> String {
    if value.abs() >= 1_000.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.3}")
    }
}
