//! How far two systems are apart: a ratio, and between which bounds the true one lies.
//!
//! The samples are rounds, never requests: those of one round wait in the same queues, and a million of them say little
//! more than one. No distribution is assumed. Everything happens on logarithms, so that a shift is a ratio, and "half" is
//! as far from "equal" as "twice" is.
//!
//! Rounds of two runs: the Hodges-Lehmann estimate of the shift (the median of all differences between a round of one and a
//! round of the other), and the interval of the shifts that the Mann-Whitney test does not refuse (Hodges & Lehmann, Annals
//! of Mathematical Statistics 34, 1963; Hollander, Wolfe & Chicken, Nonparametric Statistical Methods, sections 4.1-4.3).
//! Pairs of one round: the sign test, or the Wilcoxon signed-rank test (sections 3.1-3.6 there).
//!
//! What these intervals do not know is added by [`Effect::widened`]: that rounds behind each other know of each other, and
//! that two runs of the same thing differ by more than their rounds do.

use serde::{Deserialize, Serialize};

use crate::blocks::normal_quantile;
use crate::compare::{Ratios, median, sorted};

/// Rounds of both sides together up to which the distribution of the rank sum is exact: it is counted in whole numbers,
/// and of 120 rounds there are 10^35 orders, which still fit. Beyond, it is normal to within what a table shows.
const ROUNDS_EXACT_MAX: usize = 120;

/// Pairs up to which the signed-rank test is exact: 2^100 signs fit a whole number, and with more pairs the sign test is
/// narrow enough.
const PAIRS_EXACT_MAX: usize = 100;

/// What a correlation of neighbours counts as, at most: beyond it the rounds are one slow movement, of which no number of
/// rounds says where it is going.
const CORRELATION_MAX: f64 = 0.8;

/// A ratio and its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// How many times the first the second is.
    pub ratio: f64,
    /// The true ratio lies from here …
    pub low: f64,
    /// … to here, with probability `confidence`.
    pub high: f64,
    /// What the interval reaches: at least what was asked for, unless there are too few rounds for that. Then the interval
    /// is as wide as it can be, and this says what it is worth.
    pub confidence: f64,
    /// Where the interval comes from.
    pub method: Method,
}

/// Where an interval comes from, and with it what it assumes beside independent rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// The exact Mann-Whitney test: both sides are distributed equally but for the shift.
    RankSum,
    /// Its normal approximation, corrected for ties.
    RankSumNormal,
    /// The exact Wilcoxon signed-rank test: logarithms of ratios lie symmetrically around their median.
    SignedRank,
    /// The exact sign test, which assumes nothing more.
    Sign,
}

impl Method {
    /// Its name, and what it assumes.
    pub fn says(self) -> &'static str {
        match self {
            Method::RankSum => "Mann-Whitney, exact; both sides vary alike",
            Method::RankSumNormal => "Mann-Whitney, normal approximation; both sides vary alike",
            Method::SignedRank => {
                "Wilcoxon signed-rank, exact; ratios lie symmetrically around their median"
            }
            Method::Sign => "sign test, exact; nothing assumed of how ratios are distributed",
        }
    }
}

impl Effect {
    /// How many times the rounds of `a` those of `b` are. The two runs are independent of each other: round 3 of one has
    /// nothing to do with round 3 of the other. None when a side has no rounds, or a figure is not finite and above 0.
    pub fn independent(a: &[f64], b: &[f64], confidence: f64) -> Option<Effect> {
        let (a, b) = (logarithms(a)?, logarithms(b)?);
        let differences: Vec<f64> = a
            .iter()
            .flat_map(|from| b.iter().map(move |to| to - from))
            .collect();
        let differences = sorted(&differences)?;
        let side = side(confidence);
        let (cut, method) = if a.len() + b.len() <= ROUNDS_EXACT_MAX {
            (
                Cut::of(&rank_sum_counts(a.len(), b.len()), side),
                Method::RankSum,
            )
        } else {
            (normal_cut(&a, &b, confidence), Method::RankSumNormal)
        };
        Some(Effect::read(&differences, cut, method))
    }

    /// How many times the first of each pair the second is, over pairs of one round each: by the exact test whose interval
    /// is narrower. None when there are no pairs, or a figure is not finite and above 0.
    pub fn paired(pairs: &[(f64, f64)], confidence: f64) -> Option<Effect> {
        let ratios: Vec<f64> = pairs.iter().map(|(a, b)| b / a).collect();
        let logs = logarithms(&ratios)?;
        let sign = Effect::by_sign(pairs, confidence)?;
        if logs.len() > PAIRS_EXACT_MAX {
            return Some(sign);
        }
        let averages: Vec<f64> = (0..logs.len())
            .flat_map(|to| (0..=to).map(move |from| (from, to)))
            .map(|(from, to)| (logs[from] + logs[to]) / 2.0)
            .collect();
        let cut = Cut::of(&signed_rank_counts(logs.len()), side(confidence));
        let ranked = Effect::read(&sorted(&averages)?, cut, Method::SignedRank);
        let is_sure = ranked.confidence >= confidence.min(sign.confidence) - 1e-9;
        let is_narrower = ranked.width() < sign.width();
        Some(if is_sure && is_narrower { ranked } else { sign })
    }

    fn by_sign(pairs: &[(f64, f64)], confidence: f64) -> Option<Effect> {
        let swapped: Vec<(f64, f64)> = pairs.iter().map(|(a, b)| (*b, *a)).collect();
        let ratios = Ratios::of(&swapped, confidence)?;
        Some(Effect {
            ratio: ratios.rounds.median,
            low: ratios.low,
            high: ratios.high,
            confidence: ratios.confidence,
            method: Method::Sign,
        })
    }

    /// The interval between two places of sorted shifts.
    fn read(shifts: &[f64], cut: Cut, method: Method) -> Effect {
        let last = shifts.len() - 1;
        let low = cut.rank.saturating_sub(1).min(last / 2);
        Effect {
            ratio: median(shifts).exp(),
            low: shifts[low].exp(),
            high: shifts[last - low].exp(),
            confidence: cut.confidence,
            method,
        }
    }

    /// The logarithm of how many times the upper bound is the lower one.
    pub fn width(&self) -> f64 {
        (self.high / self.low).ln()
    }

    /// The same ratio with an interval that is `inflation` times as wide (see [`inflation`]) and also holds what comes on
    /// top of it: an error whose logarithm is normal with the standard deviation `between`. Each bound is moved by itself
    /// (method of variance estimates recovery: Zou & Donner, Statistics in Medicine 27, 2008).
    pub fn widened(self, inflation: f64, between: f64) -> Effect {
        let added = normal_quantile(0.5 + self.confidence / 2.0) * between;
        let reach = |ratio: f64| (ratio.ln() * inflation).hypot(added).exp();
        Effect {
            low: self.ratio / reach(self.ratio / self.low),
            high: self.ratio * reach(self.high / self.ratio),
            ..self
        }
    }
}

/// By how much intervals are too narrow that take the rounds of each of `runs`, in the order they ran, for independent of
/// each other: the root of `(1 + r) / (1 - r)`, where `r` is how far a round's logarithm follows the one before it
/// (the variance of the mean of a first-order autoregression; Law, Simulation Modeling and Analysis, section 4.4). `r` is
/// taken over all runs together, and never below 0: that rounds balance each other is not believed.
pub fn inflation(runs: &[&[f64]]) -> f64 {
    let mut products = 0.0;
    let mut squares = 0.0;
    let mut bias = 0.0;
    for run in runs {
        let logs: Vec<f64> = run.iter().map(|value| value.ln()).collect();
        if logs.len() < 3 {
            continue;
        }
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let apart: Vec<f64> = logs.iter().map(|log| log - mean).collect();
        let of_run: f64 = apart.iter().map(|it| it * it).sum();
        products += apart.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>();
        squares += of_run;
        // Of independent rounds it comes out as -1/n: their mean was taken from themselves.
        bias += of_run / logs.len() as f64;
    }
    if squares <= 0.0 {
        return 1.0;
    }
    let correlation = ((products + bias) / squares).clamp(0.0, CORRELATION_MAX);
    ((1.0 + correlation) / (1.0 - correlation)).sqrt()
}

/// Which of the sorted shifts bound the interval: those of this rank, from 1, from either end.
#[derive(Clone, Copy)]
struct Cut {
    rank: usize,
    confidence: f64,
}

impl Cut {
    /// The largest rank that leaves at most `side` on either side, of a statistic that takes the values from 0 on in this
    /// many of all orders; the outermost rank when none does.
    fn of(counts: &Counts, side: f64) -> Cut {
        let mut below = 0;
        let mut rank = 0;
        for count in &counts.ways {
            let share = (below + count) as f64 / counts.all as f64;
            if share > side {
                break;
            }
            below += count;
            rank += 1;
        }
        if rank == 0 {
            below = counts.ways[0];
            rank = 1;
        }
        Cut {
            rank,
            confidence: (1.0 - 2.0 * below as f64 / counts.all as f64).max(0.0),
        }
    }
}

/// In how many of all orders a statistic takes each value from 0 to its middle.
struct Counts {
    ways: Vec<i128>,
    all: i128,
}

/// Of the Mann-Whitney statistic: the coefficients of the Gaussian binomial, one factor after the other (Harding, Applied
/// Statistics 33, 1984).
fn rank_sum_counts(a: usize, b: usize) -> Counts {
    let middle = a * b / 2;
    let mut ways = vec![0_i128; middle + 1];
    ways[0] = 1;
    let mut all = 1_i128;
    for factor in 1..=a {
        for value in (b + factor..=middle).rev() {
            ways[value] -= ways[value - b - factor];
        }
        for value in factor..=middle {
            ways[value] += ways[value - factor];
        }
        all = all * (b + factor) as i128 / factor as i128;
    }
    Counts { ways, all }
}

/// Of the signed-rank statistic: sums of any of the ranks from 1 to `pairs`.
fn signed_rank_counts(pairs: usize) -> Counts {
    let middle = pairs * (pairs + 1) / 4;
    let mut ways = vec![0_i128; middle + 1];
    ways[0] = 1;
    for rank in 1..=pairs {
        for value in (rank..=middle).rev() {
            ways[value] += ways[value - rank];
        }
    }
    Counts {
        ways,
        all: 1 << pairs,
    }
}

/// The same for many rounds: normal, with a correction for continuity, and for ties, which vary less.
fn normal_cut(a: &[f64], b: &[f64], confidence: f64) -> Cut {
    let (from, to) = (a.len() as f64, b.len() as f64);
    let all = from + to;
    let mut values = [a, b].concat();
    values.sort_by(f64::total_cmp);
    let tied: f64 = values
        .chunk_by(|one, other| one == other)
        .map(|equal| (equal.len() as f64).powi(3) - equal.len() as f64)
        .sum();
    let variance = from * to / 12.0 * (all + 1.0 - tied / (all * (all - 1.0)));
    let reach = normal_quantile(0.5 + confidence / 2.0) * variance.sqrt();
    Cut {
        rank: (from * to / 2.0 + 0.5 - reach).floor().max(1.0) as usize,
        confidence,
    }
}

/// What may lie on either side of an interval. The counts are exact and `confidence` is not: 93.75 % must find the five
/// pairs that reach exactly that.
fn side(confidence: f64) -> f64 {
    (1.0 - confidence) / 2.0 * (1.0 + 1e-9)
}

/// The logarithms; none when there are none, or one is of something that is not finite and above 0.
fn logarithms(values: &[f64]) -> Option<Vec<f64>> {
    let are_sound = values.iter().all(|value| value.is_finite() && *value > 0.0);
    (are_sound && !values.is_empty()).then(|| values.iter().map(|value| value.ln()).collect())
}

#[cfg(test)]
mod tests;
