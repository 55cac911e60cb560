//! Change point detection in a history of figures, with the size and confidence of each change.
//!
//! E-divisive (Matteson & James, A Nonparametric Approach for Multiple Change Point Analysis of Multivariate Data, JASA
//! 109, 2014): the candidate is the position at which the energy distance between the figures before and after is
//! largest; a permutation test decides whether it is a change. Then the segments on both sides are searched in the same
//! way. The method assumes neither a distribution nor a number of changes. Daly et al. found it to work on performance
//! figures (The Use of Change Point Detection to Identify Software Performance Regressions in a Continuous Integration
//! System, ICPE 2020). It is applied to logarithms, so that a change is a ratio.

use std::ops::Range;

use crate::compare::{median, sorted};
use crate::effect::Effect;
use crate::random::Random;

/// Minimum number of figures on either side of a change. A single deviating figure is an outlier.
pub const SEGMENT_MIN: usize = 2;

/// Minimum number of figures after a change if the part compared ends before its segment. The paper uses
/// [`SEGMENT_MIN`] here as well; then any two neighbouring outliers look like a change, and a change in the newest
/// figures, which matter most, needs many more figures to be significant.
const PART_MIN: usize = 5;

/// Number of permutations per test: the confidence has a resolution of 0.001.
const PERMUTATIONS: u32 = 999;

/// Fixed, so that the same history always has the same changes.
const SEED: u64 = 20_140_130;

/// A change point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Index of the first figure after the change.
    pub at: usize,
    /// Median of the figures between the previous change and this one.
    pub before: f64,
    /// Median of the figures between this change and the next one.
    pub after: f64,
    /// Ratio of the figures after to those before, with a 95 % interval; with few figures the interval has a lower
    /// confidence, see [`Effect::confidence`].
    pub effect: Effect,
    /// 1 minus the share of permutations with an equally large change.
    pub confidence: f64,
}

/// Finds the changes of `values` with at least `confidence` (between 0 and 1; usually 0.99, since histories are
/// inspected often), in ascending order. Empty with fewer than twice [`SEGMENT_MIN`] values, or if a value is not
/// finite and above 0.
pub fn changes(values: &[f64], confidence: f64) -> Vec<Change> {
    if values
        .iter()
        .any(|value| !(value.is_finite() && *value > 0.0))
    {
        return Vec::new();
    }
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let mut random = Random::new(SEED);
    let mut found: Vec<(usize, f64)> = Vec::new();
    loop {
        let segments = segments(values.len(), &found);
        let Some(split) = best_of(&logs, &segments) else {
            break;
        };
        let share = share_by_chance(&logs, &segments, split.distance, confidence, &mut random);
        if share > 1.0 - confidence {
            break;
        }
        found.push((split.at, 1.0 - share));
        found.sort_by_key(|(at, _)| *at);
    }
    let ends = segments(values.len(), &found);
    let neighbours = ends.windows(2).zip(&found);
    neighbours
        .filter_map(|(pair, (at, confidence))| {
            let [before, after] = [&values[pair[0].clone()], &values[pair[1].clone()]];
            Some(Change {
                at: *at,
                before: median(&sorted(before)?),
                after: median(&sorted(after)?),
                effect: Effect::independent(before, after, 0.95)?,
                confidence: *confidence,
            })
        })
        .collect()
}

/// Minimum length of a history that can show a change with `confidence` in its middle. A change near the end needs a
/// longer history.
pub fn values_min(confidence: f64) -> usize {
    let share = |count: usize| {
        // Exchanging both sides gives the same distance.
        let half = count / 2;
        let orders = (1..=half).fold(1.0, |ways, at| {
            ways * (count - half + at) as f64 / at as f64
        });
        2.0 / orders
    };
    let enough = (2 * SEGMENT_MIN..).find(|count| share(*count) <= 1.0 - confidence);
    enough.unwrap_or(usize::MAX)
}

fn segments(length: usize, found: &[(usize, f64)]) -> Vec<Range<usize>> {
    let inner = || found.iter().map(|(at, _)| *at);
    let starts = std::iter::once(0).chain(inner());
    let ends = inner().chain(std::iter::once(length));
    starts.zip(ends).map(|(start, end)| start..end).collect()
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Split {
    at: usize,
    /// Energy distance of both sides.
    distance: f64,
}

/// The candidate with the largest distance in all `segments`.
fn best_of(logs: &[f64], segments: &[Range<usize>]) -> Option<Split> {
    let splits = segments.iter().filter_map(|segment| {
        let mut split = best(&logs[segment.clone()])?;
        split.at += segment.start;
        Some(split)
    });
    splits.max_by(|one, other| one.distance.total_cmp(&other.distance))
}

/// The position in `logs` whose sides differ most. The side after it may end early, so that a change that was reverted
/// later is found too.
fn best(logs: &[f64]) -> Option<Split> {
    let distances = Distances::of(logs);
    let count = logs.len();
    let places = (SEGMENT_MIN..).take_while(|at| at + SEGMENT_MIN <= count);
    let splits = places.flat_map(|at| {
        let within = at + PART_MIN..count;
        within.chain([count]).map(move |end| (at, end))
    });
    splits
        .map(|(at, end)| Split {
            at,
            distance: distances.apart(at, end),
        })
        // The first of equal candidates; `max_by` would return the last.
        .reduce(|one, other| {
            if other.distance > one.distance {
                other
            } else {
                one
            }
        })
}

/// Prefix sums of distances between figures: the sum for any two parts takes constant time.
struct Distances {
    /// Element (`row`, `column`) is the sum from the first `row` figures to the first `column`.
    sums: Vec<f64>,
    width: usize,
}

impl Distances {
    fn of(logs: &[f64]) -> Distances {
        let width = logs.len() + 1;
        let mut sums = vec![0.0; width * width];
        for (row, from) in logs.iter().enumerate() {
            let mut of_row = 0.0;
            for (column, to) in logs.iter().enumerate() {
                of_row += (from - to).abs();
                sums[(row + 1) * width + column + 1] = sums[row * width + column + 1] + of_row;
            }
        }
        Distances { sums, width }
    }

    fn between(&self, rows: Range<usize>, columns: Range<usize>) -> f64 {
        let sum = |row: usize, column: usize| self.sums[row * self.width + column];
        sum(rows.end, columns.end) - sum(rows.start, columns.end) - sum(rows.end, columns.start)
            + sum(rows.start, columns.start)
    }

    /// Scaled energy distance between the figures before `at` and those from `at` to `end` (equations 5 and 6 of the
    /// paper with exponent 1). The scale makes parts of different lengths comparable.
    fn apart(&self, at: usize, end: usize) -> f64 {
        let (before, after) = (at as f64, (end - at) as f64);
        let across = self.between(0..at, at..end);
        // The square contains each pair twice; the paper counts it once.
        let within = |part: Range<usize>, count: f64| {
            self.between(part.clone(), part) / (count * (count - 1.0))
        };
        let energy =
            2.0 * across / (before * after) - within(0..at, before) - within(at..end, after);
        before * after / (before + after) * energy
    }
}

/// Share of permutations within the segments that have an equally large change. Returns early once the share exceeds 1
/// - `confidence`.
fn share_by_chance(
    logs: &[f64],
    segments: &[Range<usize>],
    apart: f64,
    confidence: f64,
    random: &mut Random,
) -> f64 {
    let all = f64::from(PERMUTATIONS + 1);
    let mut shuffled = logs.to_vec();
    // The observed order counts as a permutation.
    let mut as_far = 1.0;
    for _ in 0..PERMUTATIONS {
        for segment in segments {
            random.shuffle(&mut shuffled[segment.clone()]);
        }
        let by_chance = best_of(&shuffled, segments).map_or(0.0, |split| split.distance);
        // Tolerates rounding, which depends on the order of summation.
        if by_chance >= apart * (1.0 - 1e-9) {
            as_far += 1.0;
        }
        if as_far / all > 1.0 - confidence {
            break;
        }
    }
    as_far / all
}

#[cfg(test)]
mod tests;
