//! Where a history of figures changed: change points, with the size and the confidence of each.
//!
//! E-divisive (Matteson & James, A Nonparametric Approach for Multiple Change Point Analysis of Multivariate Data, JASA 109,
//! 2014): where the part before a place and a part behind it are furthest apart by their energy distance there may be a
//! change; whether there is one, a permutation test says. Then the parts are looked at in the same way. No distribution is
//! assumed, and the number of changes need not be known. It is also what Daly et al. found to work on figures of programs
//! (The Use of Change Point Detection to Identify Software Performance Regressions in a Continuous Integration System, ICPE
//! 2020). The figures' logarithms are what is looked at, so that a change is a ratio.

use std::ops::Range;

use crate::compare::{median, sorted};
use crate::effect::Effect;
use crate::random::Random;

/// Figures on either side of a change, at least: one alone that is off is an outlier until another one says the same.
pub const SEGMENT_MIN: usize = 2;

/// Figures of a part that ends before its segment does. The paper takes as few as of a segment; then any two neighbours that
/// are off look like a change, and the newest figures of a history, which matter most, would need many more of their kind to
/// stand out.
const PART_MIN: usize = 5;

/// Orders of the history that it is compared with: confidence is told to a thousandth.
const PERMUTATIONS: u32 = 999;

/// The same history always has the same changes.
const SEED: u64 = 20_140_130;

/// Where a history changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The first figure behind it, counted from 0.
    pub at: usize,
    /// The median of the figures before it, back to the change before.
    pub before: f64,
    /// The median of those behind it, as far as the next change.
    pub after: f64,
    /// How many times the figures before those behind are, with an interval at 95 %; of few figures, at less, which it says.
    pub effect: Effect,
    /// How surely it is one: 1 less the share of the orders of the same figures that show as large a change by chance.
    pub confidence: f64,
}

/// The changes of `values`, in the order they came, of which each is one with at least `confidence` (between 0 and 1; 0.99
/// is usual, since a history is looked at often). None where there are fewer than twice [`SEGMENT_MIN`] values, or one of
/// them is not finite and above 0.
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
        let share = share_by_chance(&logs, &segments, split.apart, confidence, &mut random);
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

/// How many values a history has at least that can show a change with `confidence`: of so many, few enough orders look like
/// one. Half of them then lie on either side; newer figures are fewer, and take longer histories.
pub fn values_min(confidence: f64) -> usize {
    let share = |count: usize| {
        // Those before and those behind it may be exchanged.
        let half = count / 2;
        let orders = (1..=half).fold(1.0, |ways, at| {
            ways * (count - half + at) as f64 / at as f64
        });
        2.0 / orders
    };
    let enough = (2 * SEGMENT_MIN..).find(|count| share(*count) <= 1.0 - confidence);
    enough.unwrap_or(usize::MAX)
}

/// The parts of a history between its changes.
fn segments(length: usize, found: &[(usize, f64)]) -> Vec<Range<usize>> {
    let inner = || found.iter().map(|(at, _)| *at);
    let starts = std::iter::once(0).chain(inner());
    let ends = inner().chain(std::iter::once(length));
    starts.zip(ends).map(|(start, end)| start..end).collect()
}

/// A place that may be a change.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Split {
    at: usize,
    /// How far apart both sides are.
    apart: f64,
}

/// The place in all of `segments` whose sides are furthest apart.
fn best_of(logs: &[f64], segments: &[Range<usize>]) -> Option<Split> {
    let splits = segments.iter().filter_map(|segment| {
        let mut split = best(&logs[segment.clone()])?;
        split.at += segment.start;
        Some(split)
    });
    splits.max_by(|one, other| one.apart.total_cmp(&other.apart))
}

/// The place in `logs` whose two sides are furthest apart: what lies before it, and what lies behind it, or as much of that
/// as lies before a change that was taken back later.
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
            apart: distances.apart(at, end),
        })
        // Of equals the first: `max_by` would take the last.
        .reduce(|one, other| if other.apart > one.apart { other } else { one })
}

/// Sums of distances between figures, so that those of any two parts take one step.
struct Distances {
    /// Of the first `row` figures to the first `column`.
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

    /// The energy distance of the figures before `at` and those from there to `end`, times what makes it comparable between
    /// parts of any length (equations 5 and 6 of the paper, with the exponent 1).
    fn apart(&self, at: usize, end: usize) -> f64 {
        let (before, after) = (at as f64, (end - at) as f64);
        let across = self.between(0..at, at..end);
        // Each pair is in the square twice, and the paper counts it once.
        let within = |part: Range<usize>, count: f64| {
            self.between(part.clone(), part) / (count * (count - 1.0))
        };
        let energy =
            2.0 * across / (before * after) - within(0..at, before) - within(at..end, after);
        before * after / (before + after) * energy
    }
}

/// The share of the orders of the figures within their segments in which some place looks like as much of a change. Ends
/// early where it is more than `confidence` allows.
fn share_by_chance(
    logs: &[f64],
    segments: &[Range<usize>],
    apart: f64,
    confidence: f64,
    random: &mut Random,
) -> f64 {
    let all = f64::from(PERMUTATIONS + 1);
    let mut shuffled = logs.to_vec();
    // The order that was found is one of them.
    let mut as_far = 1.0;
    for _ in 0..PERMUTATIONS {
        for segment in segments {
            random.shuffle(&mut shuffled[segment.clone()]);
        }
        let by_chance = best_of(&shuffled, segments).map_or(0.0, |split| split.apart);
        // Sums in another order differ in their last digit.
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
