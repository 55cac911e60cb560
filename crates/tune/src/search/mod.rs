//! The settings that matter, tried one change at a time against what is best so far, with a measurement that the user
//! brings.
//!
//! A candidate and the best so far are measured in turns, since machines change while one measures. It is kept when it
//! won every turn, and by more than a per cent in the middle; else what was there is put back. Five turns of five happen
//! by chance once in 32 times.

mod candidates;

use std::io;

use serde::Serialize;

use crate::Error;
use crate::advise::{Action, Plan, Request, Revert, Spelling, Target};
use crate::apply::{self, Applied, Journal, Machine, Outcome, Place};
use crate::facts::Facts;
use candidates::{Candidate, Value};

/// A difference that is worth a change.
const EFFECT_MIN: f64 = 0.01;

/// What was tried, in order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Road {
    /// What was measured before anything was changed, in the middle.
    pub start: f64,
    /// Each candidate.
    pub steps: Vec<Step>,
    /// Whether the user had enough before everything was tried.
    pub is_stopped: bool,
}

/// A candidate beside the best so far.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// What was changed.
    pub change: String,
    /// What was measured with it, in the middle of all turns; none when it could not be applied or measured.
    pub result: Option<f64>,
    /// By what factor it was better: the least, the middle and the most of all turns.
    pub ratio: Option<(f64, f64, f64)>,
    /// Whether it was kept.
    pub is_kept: bool,
    /// Why it could not be tried.
    pub trouble: Option<String>,
}

/// How candidates are measured, and who hears of it.
pub struct Trials<'here> {
    /// How often each is measured beside the best so far; at least once.
    pub turns: usize,
    /// Gives a number that is better when larger.
    pub measure: &'here mut dyn FnMut() -> Result<f64, Unmeasured>,
    /// Is told of the start and of each step, when it was taken.
    pub tell: &'here mut dyn FnMut(&Road),
}

/// Why there is no measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unmeasured {
    /// It failed; the sentence says how.
    Failed(String),
    /// The user has had enough.
    Stopped,
}

/// Tries everything, and leaves the machine at what was best. When the measurement says that the user has had enough,
/// the search ends with what it has.
///
/// All changes stand in the journal, so that `apply::revert` gives the machine back as it was, after a crash as well.
pub fn search(
    machine: &mut impl Machine,
    request: &Request,
    journal: &mut Journal,
    trials: Trials,
) -> Result<Road, Error> {
    assert!(
        trials.turns > 0,
        "nothing can be compared without a measurement"
    );
    let mut firsts = Vec::new();
    for _ in 0..trials.turns {
        firsts.push((trials.measure)().map_err(|why| match why {
            Unmeasured::Failed(why) => Error::Request(why),
            Unmeasured::Stopped => Error::Request("stopped before anything was tried".to_owned()),
        })?);
    }
    let mut road = Road {
        start: middle(&mut firsts),
        steps: Vec::new(),
        is_stopped: false,
    };
    (trials.tell)(&road);
    let mut search = Search {
        machine,
        request,
        journal,
        trials,
    };
    // Each stage starts from the facts that the stage before has left.
    for stage in candidates::STAGES {
        for candidate in stage(&search.machine.facts()?, request)? {
            match search.try_out(&candidate)? {
                Some(step) => road.steps.push(step),
                None => road.is_stopped = true,
            }
            (search.trials.tell)(&road);
            if road.is_stopped {
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

/// What to set a target to.
type Values = [(Target, Value)];

impl<M: Machine> Search<'_, '_, M> {
    /// Measures a candidate beside the best so far, and keeps it or puts back what was there; nothing when the user has
    /// had enough.
    fn try_out(&mut self, candidate: &Candidate) -> Result<Option<Step>, Error> {
        let mut step = Step {
            change: candidate.change.clone(),
            result: None,
            ratio: None,
            is_kept: false,
            trouble: None,
        };
        let facts = self.machine.facts()?;
        if self
            .actions(&facts, candidate, &candidate.values)
            .is_empty()
        {
            step.trouble = Some("is so already".to_owned());
            return Ok(Some(step));
        }
        let before = self.before(&facts, candidate);
        let mut ratios = Vec::new();
        let mut results = Vec::new();
        for _ in 0..self.trials.turns {
            let best = (self.trials.measure)();
            let refused = match best {
                Ok(_) => self.swap(candidate, &candidate.values)?,
                Err(_) => None,
            };
            let result = match (&best, &refused) {
                (Ok(_), None) => (self.trials.measure)(),
                _ => Ok(0.0),
            };
            self.swap(candidate, &before)?;
            match (refused, best, result) {
                (_, Err(Unmeasured::Stopped), _) | (_, _, Err(Unmeasured::Stopped)) => {
                    return Ok(None);
                }
                (None, Ok(best), Ok(result)) if best > 0.0 => {
                    ratios.push(result / best);
                    results.push(result);
                }
                (refused, best, result) => {
                    let failed = [best.err(), result.err()].into_iter().flatten().next();
                    step.trouble = Some(match (refused, failed) {
                        (Some(why), _) | (None, Some(Unmeasured::Failed(why))) => why,
                        _ => "the measurement gave nothing above 0".to_owned(),
                    });
                    return Ok(Some(step));
                }
            }
        }
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        let ratio = middle(&mut ratios);
        step.result = Some(middle(&mut results));
        step.ratio = Some((least, ratio, most));
        step.is_kept = least > 1.0 && ratio > 1.0 + EFFECT_MIN;
        if step.is_kept {
            self.swap(candidate, &candidate.values)?;
        }
        Ok(Some(step))
    }

    /// What is there now of all that a candidate changes, and of all that is lost with it.
    fn before(&self, facts: &Facts, candidate: &Candidate) -> Vec<(Target, Value)> {
        let mut targets: Vec<Target> = Vec::new();
        for (target, _) in &candidate.values {
            targets.push(target.clone());
            targets.extend(apply::lost_with(target, facts));
        }
        let value = |target: Target| {
            let now = self.machine.get(&Place::of(&target, facts)?).ok()?;
            Some((target, Value::Text(now)))
        };
        targets.into_iter().filter_map(value).collect()
    }

    /// Sets values. What is kept by queue is found anew when the number of queues was changed before it, since interrupts
    /// have other numbers then. Says what was refused.
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

    /// Why something could not be set. Threads that have ended since are none: programs start and end them.
    fn refusal(&self, applied: &[Applied]) -> Option<String> {
        let has_ended = |target: &Target| match target {
            Target::Thread {
                process,
                thread,
                started,
            } => {
                let place = Place::Thread(*process, *thread, *started);
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

    /// The changes to values; nothing for those that are so already, and for what is gone.
    fn actions(&self, facts: &Facts, candidate: &Candidate, values: &Values) -> Vec<Action> {
        let action = |(target, value): &(Target, Value)| {
            let place = Place::of(target, facts)?;
            let now = self.machine.get(&place).ok()?;
            let path = place.to_string();
            let spelling = Spelling::of(&path);
            let proposed = match (value, spelling) {
                (Value::Cpus(cpus), Spelling::CpuMask) => cpus.mask_like(&now),
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
                risk: "none beyond the measurement".to_owned(),
                revert: Revert::WriteBack,
                effect: "the measurement".to_owned(),
            })
        };
        values.iter().filter_map(action).collect()
    }
}

/// The value in the middle; of an even number the lower of both, so that it is one that was measured.
fn middle(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() - 1) / 2]
}

/// The road as a table, from the beginning to now.
pub fn table(road: &Road) -> String {
    let first = first_row(road);
    let rest = road.steps.iter().map(row);
    std::iter::once(first).chain(rest).collect()
}

/// The row that was added to the table last.
pub fn last_row(road: &Road) -> String {
    road.steps.last().map_or_else(|| first_row(road), row)
}

fn first_row(road: &Road) -> String {
    format!("{:<64} {:>12}\n", "as it was", figure(road.start))
}

fn row(step: &Step) -> String {
    let verdict = match (&step.trouble, step.is_kept) {
        (Some(trouble), _) => format!("not tried: {trouble}"),
        (None, true) => "kept".to_owned(),
        (None, false) => "put back".to_owned(),
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
