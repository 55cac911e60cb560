//! Selects the reference, a peer's variant, for a figure: disturbances of both cancel out of their ratio.

use onrush_measure::compare::Rounds;

use crate::archive::{Run, SeriesId, UsableRounds};
use crate::limits::ROUNDS_COMPARED_MIN;
use crate::scenario::Metric;

/// Values of the reference and of ours, by round.
pub(crate) type Pairs = Vec<(f64, f64)>;

pub(crate) fn pairs(theirs: &UsableRounds, ours: &UsableRounds) -> Pairs {
    let of_round = |number: u32| {
        let found = theirs.rounds.iter().find(|(other, _)| *other == number);
        found.map(|(_, value)| *value)
    };
    let both = ours.rounds.iter();
    both.filter_map(|(number, ours)| Some((of_round(*number)?, *ours)))
        .collect()
}

/// The reference that both runs contain, with its rounds paired with `sound`. Of several, the one whose ratio to
/// `subject` varies least.
pub(super) fn shared(
    [a, b]: [&Run; 2],
    subject: &SeriesId,
    metric: &Metric,
    sound: &[UsableRounds; 2],
) -> Option<(String, [Pairs; 2])> {
    let candidates = a.rows.references(subject).filter_map(|theirs| {
        let other = b.rows.of(&theirs.subject).filter(|other| !other.is_ours)?;
        if !a.facts.is_same_reference(&b.facts, &theirs.subject) {
            return None;
        }
        let pairs = [
            pairs(&theirs.usable_rounds(metric), &sound[0]),
            pairs(&other.usable_rounds(metric), &sound[1]),
        ];
        let are_enough = pairs.iter().all(|it| it.len() >= ROUNDS_COMPARED_MIN);
        are_enough.then(|| (theirs.subject.variant.clone(), pairs))
    });
    closest(candidates, |(_, pairs)| pairs)
}

/// Selects the reference whose ratio varies least within the runs, because the same disturbances affect it. Differences
/// between the runs are ignored, so that the selection favours no verdict.
pub(crate) fn closest<T>(
    candidates: impl Iterator<Item = T>,
    pairs: impl Fn(&T) -> &[Pairs],
) -> Option<T> {
    candidates
        .map(|candidate| (variation(pairs(&candidate)), candidate))
        .min_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, candidate)| candidate)
}

/// Mean absolute deviation of log ratios from the median of their run.
fn variation(runs: &[Pairs]) -> f64 {
    let mut sum = 0.0;
    let mut count = 0.0;
    for run in runs {
        let logs: Vec<f64> = run
            .iter()
            .map(|(theirs, ours)| (ours / theirs).ln())
            .collect();
        let Some(rounds) = Rounds::of(&logs) else {
            continue;
        };
        sum += logs
            .iter()
            .map(|log| (log - rounds.median).abs())
            .sum::<f64>();
        count += logs.len() as f64;
    }
    match count > 0.0 {
        true => sum / count,
        false => f64::INFINITY,
    }
}
