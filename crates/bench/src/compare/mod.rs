//! Compares two results: which figures became better or worse, by how much, and with which confidence. `archive/` reads
//! the runs.
//!
//! A figure is one metric of one variant of one work. The samples are rounds. Two runs of the same system differ for
//! three reasons, and the interval of a figure accounts for each: rounds vary (a rank test, `onrush_measure::effect`);
//! successive rounds are correlated (`onrush_measure::effect::inflation`); and the runs differ as a whole, which their
//! rounds cannot show. For the last one there is a reference, a peer's program that both runs contain: a disturbance
//! that affects both programs cancels out of their ratio, round by round. The remaining difference between runs, or all
//! of it without a reference, is a constant explained in `limits.rs`. `docs/compare.md` lists how many rounds are
//! needed; `tests/power.rs` checks it.

mod comparison;
mod direction;
mod judge;
mod markdown;
pub(crate) mod reference;
mod text;
pub(crate) mod verdict;

pub use comparison::{
    Comparison, ComparisonStatus, Figure, ReferenceChange, RelativeFigure, Selection,
};
pub use direction::Direction;
pub use verdict::{Counts, Verdict};

use onrush_measure::compare::Rounds;

use self::judge::{Judge, Judged};
use crate::archive::{Difference, DifferenceScope, Run, UsableRounds, VariantRows, is_selected};
use crate::limits::{BETWEEN_RUNS, MIN_EFFECT_DEFAULT, RATIO_BETWEEN_RUNS, ROUNDS_COMPARED_MIN};
use crate::scenario::Metric;

/// Options of a comparison.
#[derive(Debug, Clone)]
pub struct Options {
    /// Smallest relevant effect: 0.02 is 2 %.
    pub min_effect: f64,
    /// Compare only figures whose name, `work / variant / metric`, contains one of these; all if empty.
    pub only: Vec<String>,
    /// Measured standard deviation between runs of the same system, if known: 0.01 is 1 %.
    pub between_runs: Option<f64>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            min_effect: MIN_EFFECT_DEFAULT,
            only: Vec::new(),
            between_runs: None,
        }
    }
}

/// Compares run `b` with run `a`.
pub fn compare(a: &Run, b: &Run, options: &Options) -> Comparison {
    let differences = a.facts.differences(&b.facts);
    let candidates = candidates(a, b, options);
    let judge = |together: usize| Judge {
        min_effect: options.min_effect,
        together,
    };
    let settled: Vec<PreparedFigure<'_>> = candidates
        .iter()
        .map(|candidate| candidate.prepare_figure([a, b], &differences))
        .collect();
    let together = settled.iter().filter(|it| it.samples.is_ok()).count();
    let figures = settled
        .into_iter()
        .map(|it| it.figure(&judge(together), options.between_runs))
        .collect();
    Comparison {
        a: a.name.clone(),
        b: b.name.clone(),
        min_effect: options.min_effect,
        together,
        differences,
        figures,
        references: reference_changes(a, b),
        only_in_a: missing(a, b),
        only_in_b: missing(b, a),
        without_direction: without_direction(a, b),
    }
}

struct Candidate<'run> {
    sides: [&'run VariantRows; 2],
    metric: Metric,
}

/// The figures to compare: of our variants, or of all variants if none is ours.
fn candidates<'run>(a: &'run Run, b: &'run Run, options: &Options) -> Vec<Candidate<'run>> {
    let both = a.rows.variants.iter().filter_map(|entrant| {
        let other = b.rows.of(&entrant.subject)?;
        Some([entrant, other])
    });
    let both: Vec<[&VariantRows; 2]> = both.collect();
    let is_ours = |sides: &[&VariantRows; 2]| sides.iter().all(|side| side.is_ours);
    let any_ours = both.iter().any(is_ours);
    let mut found = Vec::new();
    for sides in both.into_iter().filter(|it| is_ours(it) || !any_ours) {
        let shared = sides[0]
            .metrics
            .keys()
            .filter(|it| sides[1].metrics.contains_key(*it));
        for metric in shared.filter_map(|name| Metric::parse(name)) {
            let name = format!("{} / {}", sides[0].subject, metric.name());
            if is_selected(&options.only, &name, &metric) {
                found.push(Candidate { sides, metric });
            }
        }
    }
    found
}

impl<'run> Candidate<'run> {
    /// The candidate with its samples, or the reason why it has none.
    fn prepare_figure(&self, runs: [&Run; 2], differences: &[Difference]) -> PreparedFigure<'run> {
        let sound = self.sides.map(|side| side.usable_rounds(&self.metric));
        let samples = self
            .forbidden(runs, differences)
            .map_or(Ok(()), Err)
            .and_then(|()| enough(&sound))
            .and_then(|()| self.samples(runs, &sound));
        PreparedFigure {
            sides: self.sides,
            metric: self.metric.clone(),
            sound,
            samples,
        }
    }

    /// Reason why the runs are not comparable, regardless of their rounds.
    fn forbidden(&self, [a, b]: [&Run; 2], differences: &[Difference]) -> Option<String> {
        let machine = differences
            .iter()
            .find(|it| it.forbids == DifferenceScope::Everything);
        if let Some(Difference { what, .. }) = machine {
            return Some(format!("another {what}"));
        }
        let subject = &self.sides[0].subject;
        let is_other = a.facts.has_other_driver(&b.facts, subject);
        is_other.then(|| "another driver".to_owned())
    }

    /// Samples of both runs, relative to a reference if both runs contain it.
    fn samples(&self, runs: [&Run; 2], sound: &[UsableRounds; 2]) -> Result<Samples, String> {
        let subject = &self.sides[0].subject;
        let found = reference::shared(runs, subject, &self.metric, sound);
        Ok(found.map_or(Samples::Direct, |(name, pairs)| {
            Samples::Beside(name, pairs)
        }))
    }
}

fn values(sound: &UsableRounds) -> Vec<f64> {
    sound.rounds.iter().map(|(_, value)| *value).collect()
}

/// Checks that both runs have enough usable rounds: the minimum number, and more than half of all.
fn enough(sound: &[UsableRounds; 2]) -> Result<(), String> {
    for (side, name) in sound.iter().zip(["A", "B"]) {
        let (good, all) = (side.rounds.len(), side.all);
        let why = side.without.unwrap_or("were measured");
        if 2 * good <= all {
            return Err(format!("{} of {all} rounds of {name} {why}", all - good));
        }
        if good < ROUNDS_COMPARED_MIN {
            let reason = match side.without {
                Some(why) => format!(" ({} more {why})", all - good),
                None => String::new(),
            };
            return Err(format!(
                "{name} has {good} rounds{reason}: at least {ROUNDS_COMPARED_MIN} are needed"
            ));
        }
    }
    Ok(())
}

enum Samples {
    Direct,
    /// Name of the reference, and pairs (reference, ours) of each run.
    Beside(String, [Vec<(f64, f64)>; 2]),
}

struct PreparedFigure<'run> {
    sides: [&'run VariantRows; 2],
    metric: Metric,
    sound: [UsableRounds; 2],
    samples: Result<Samples, String>,
}

impl PreparedFigure<'_> {
    fn figure(self, judge: &Judge, between_runs: Option<f64>) -> Figure {
        let direction = Direction::of(&self.metric);
        let [a, b] = self.sound.each_ref().map(|side| Rounds::of(&values(side)));
        let alone = judge.judge(
            &self.sound.each_ref().map(values),
            between_runs.unwrap_or(BETWEEN_RUNS),
            direction,
        );
        let mut beside = None;
        let judged = match self.samples {
            Err(why) => Judged::not_comparable(why),
            Ok(Samples::Direct) => alone.clone(),
            Ok(Samples::Beside(reference, pairs)) => {
                let ratios = pairs.each_ref().map(|side| -> Vec<f64> {
                    side.iter().map(|(theirs, ours)| ours / theirs).collect()
                });
                beside = RelativeFigure::of(reference, &pairs, (alone.effect, alone.verdict));
                let between = between_runs.unwrap_or(RATIO_BETWEEN_RUNS);
                judge.judge(&ratios, between, direction)
            }
        };
        Figure {
            subject: self.sides[0].subject.clone(),
            metric: self.metric.name(),
            unit: self.metric.unit().symbol(),
            direction,
            a,
            b,
            beside,
            effect: judged.effect,
            together: judged.together,
            verdict: judged.verdict,
            why: judged.why,
            rounds_needed: judged.rounds_needed,
        }
    }
}

/// Changes of the references between the runs, by CPU time per request: a comparison without them would attribute these
/// to our variants.
fn reference_changes(a: &Run, b: &Run) -> Vec<ReferenceChange> {
    let references = a.rows.variants.iter().filter(|it| !it.is_ours);
    let mut found = Vec::new();
    for entrant in references {
        let Some(other) = b.rows.of(&entrant.subject) else {
            continue;
        };
        let is_same = a.facts.is_same_reference(&b.facts, &entrant.subject);
        for name in entrant.metrics.keys() {
            let Some(metric @ Metric::Cpu(_)) = Metric::parse(name) else {
                continue;
            };
            let sides = [entrant, other].map(|side| values(&side.usable_rounds(&metric)));
            let [Some(a), Some(b)] = sides.map(|values| Rounds::of(&values)) else {
                continue;
            };
            found.push(ReferenceChange {
                subject: entrant.subject.clone(),
                metric: name.clone(),
                change: b.median / a.median - 1.0,
                is_same,
            });
        }
    }
    found
}

fn missing(a: &Run, b: &Run) -> Vec<String> {
    let all = a.rows.variants.iter().map(|it| &it.subject);
    let missing = all.filter(|subject| b.rows.of(subject).is_none());
    missing.map(|subject| subject.to_string()).collect()
}

/// Metrics of both runs that are not compared: metrics of collectors unless selected, and unknown metrics.
fn without_direction(a: &Run, b: &Run) -> Vec<String> {
    let names = |run: &Run| -> std::collections::BTreeSet<String> {
        let metrics = run.rows.variants.iter().flat_map(|it| it.metrics.keys());
        metrics.cloned().collect()
    };
    let both = &names(a) & &names(b);
    let unknown = both
        .into_iter()
        .filter(|name| Metric::parse(name).is_none_or(|metric| metric.is_secondary()));
    unknown.collect()
}

#[cfg(test)]
mod tests;
