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
use candidates::{Candidate, Value, What};

/// A difference that is worth a change.
const EFFECT_MIN: f64 = 0.01;

/// What was tried, in order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Road {
    /// What was measured before anything was changed, in the middle.
    pub start: f64,
    /// Each candidate.
    pub steps: Vec<Step>,
    /// How it ended.
    pub end: End,
}

/// How a search ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// Everything was tried.
    Whole,
    /// The user had enough.
    Stopped,
    /// What was being tried could not be put back, which nothing could be compared with; the sentence says why.
    Stuck(String),
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
        end: End::Whole,
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
                Tried::Step(step) => road.steps.push(step),
                Tried::Over(end) => road.end = end,
            }
            (search.trials.tell)(&road);
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

/// What to set targets to.
type Values = [(Target, Value)];

/// What came of a candidate.
enum Tried {
    Step(Step),
    Over(End),
}

/// What came of a turn.
enum Turn {
    /// The best so far, and the candidate.
    Measured(f64, f64),
    Failed(String),
    Over(End),
}

impl<M: Machine> Search<'_, '_, M> {
    /// Measures a candidate beside the best so far, and keeps it or puts back what was there.
    fn try_out(&mut self, candidate: &Candidate) -> Result<Tried, Error> {
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
            step.trouble = Some("is so already".to_owned());
            return Ok(Tried::Step(step));
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
                    return Ok(Tried::Step(step));
                }
                Turn::Over(end) => return Ok(Tried::Over(end)),
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
                return Ok(Tried::Over(End::Stuck(why)));
            }
        }
        Ok(Tried::Step(step))
    }

    /// One measurement of the best so far and one of the candidate, and back.
    fn turn(&mut self, candidate: &Candidate) -> Result<Turn, Error> {
        let best = match (self.trials.measure)() {
            Ok(best) => best,
            Err(Unmeasured::Failed(why)) => return Ok(Turn::Failed(why)),
            Err(Unmeasured::Stopped) => return Ok(Turn::Over(End::Stopped)),
        };
        // Looked at in each turn: programs start and end threads.
        let facts = self.machine.facts()?;
        let values = candidate.values(&facts);
        let before = self.before(&facts, &values);
        let result = match self.swap(candidate, &values) {
            Ok(None) => Ok((self.trials.measure)()),
            Ok(Some(why)) => Ok(Err(Unmeasured::Failed(why))),
            Err(error) => Err(error),
        };
        // Whatever happened, this comes first.
        let stuck = self.put_back(candidate, &before)?;
        let result = result?;
        if let Some(why) = stuck {
            return Ok(Turn::Over(End::Stuck(why)));
        }
        Ok(match result {
            Ok(result) if best > 0.0 => Turn::Measured(best, result),
            Ok(_) => Turn::Failed("the measurement gave nothing above 0".to_owned()),
            Err(Unmeasured::Failed(why)) => Turn::Failed(why),
            Err(Unmeasured::Stopped) => Turn::Over(End::Stopped),
        })
    }

    /// What is there now of all that is to be changed, and of all that is lost with it.
    fn before(&self, facts: &Facts, values: &Values) -> Vec<(Target, Value)> {
        let mut targets: Vec<Target> = Vec::new();
        for (target, _) in values {
            targets.push(target.clone());
            targets.extend(apply::lost_with(target, facts));
        }
        let value = |target: Target| {
            let now = self.machine.get(&Place::of(&target, facts)?).ok()?;
            Some((target, Value::Text(now)))
        };
        targets.into_iter().filter_map(value).collect()
    }

    /// Sets everything to what it was. A thread that was started meanwhile has the CPUs of who started it, which were those
    /// that were tried: it gets what the first thread of its process had. Says what was refused.
    fn put_back(
        &mut self,
        candidate: &Candidate,
        before: &Values,
    ) -> Result<Option<String>, Error> {
        let refused = self.swap(candidate, before)?;
        if !matches!(candidate.what, What::Application(_)) {
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
