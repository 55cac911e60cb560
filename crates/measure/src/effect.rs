//! Ratio of two systems with a confidence interval.
//!
//! The samples are rounds, never requests: the requests of one round wait in the same queues and are correlated. No
//! distribution is assumed. Everything is computed on logarithms, so that a shift is a ratio and 1/2 is as far from 1
//! as 2 is.
//!
//! Rounds of two runs: the Hodges-Lehmann estimate of the shift (the median of all pairwise differences), and the
//! interval of the shifts that the Mann-Whitney test does not reject (Hodges & Lehmann, Annals of Mathematical
//! Statistics 34, 1963; Hollander, Wolfe & Chicken, Nonparametric Statistical Methods, sections 4.1-4.3). Paired
//! rounds: the sign test or the Wilcoxon signed-rank test (sections 3.1-3.6 there).
//!
//! [`Effect::widened`] accounts for what these intervals ignore: the correlation of successive rounds, and the variance
//! between runs of the same system.

use serde::{Deserialize, Serialize};

use crate::blocks::normal_quantile;
use crate::compare::{Ratios, median, sorted};

/// Maximum number of rounds of both sides for the exact rank-sum distribution, which is counted in integers: 120 rounds
/// have 10^35 combinations, which fit. Above, the normal approximation is accurate to the displayed digits.
const ROUNDS_EXACT_MAX: usize = 120;

/// Maximum number of pairs for the exact signed-rank test: 2^100 combinations of signs fit an integer. With more pairs
/// the sign test is narrow enough.
const PAIRS_EXACT_MAX: usize = 100;

/// Cap on the correlation of successive rounds. Above it the rounds follow a trend, and no interval is meaningful.
const CORRELATION_MAX: f64 = 0.8;

/// A ratio with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// Ratio of the second to the first.
    pub ratio: f64,
    /// Lower bound; the interval contains the true ratio with probability `confidence`.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// Confidence of the interval: at least the requested one, unless there are too few rounds. The interval is then as
    /// wide as possible.
    pub confidence: f64,
    /// Test that the interval is based on.
    pub method: Method,
}

/// Statistical test of an interval, with its assumptions besides independent rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Exact Mann-Whitney test: both sides have the same distribution except for a shift.
    RankSum,
    /// Normal approximation of the Mann-Whitney test, corrected for ties.
    RankSumNormal,
    /// Exact Wilcoxon signed-rank test: log ratios are symmetric around their median.
    SignedRank,
    /// Exact sign test: no further assumptions.
    Sign,
}

impl Method {
    /// Name of the test and its assumptions.
    pub fn description(self) -> &'static str {
        match self {
            Method::RankSum => "Mann-Whitney, exact; assumes equal spread on both sides",
            Method::RankSumNormal => {
                "Mann-Whitney, normal approximation; assumes equal spread on both sides"
            }
            Method::SignedRank => {
                "Wilcoxon signed-rank, exact; assumes ratios symmetric around their median"
            }
            Method::Sign => "sign test, exact; no assumption about the distribution of the ratios",
        }
    }
}

impl Effect {
    /// Ratio of rounds `b` to rounds `a` of independent runs: round 3 of one is unrelated to round 3 of the other.
    /// `None` if a side has no rounds, or a figure is not finite and above 0.
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

    /// Ratio of the second to the first of each pair, by the exact test with the narrower interval. `None` if there are
    /// no pairs, or a figure is not finite and above 0.
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

    /// The effect of sorted shifts with the interval of `cut`.
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

    /// Logarithm of the ratio of both bounds.
    pub fn width(&self) -> f64 {
        (self.high / self.low).ln()
    }

    /// Multiplies the interval's width by `inflation` (see [`inflation`]) and adds an independent error whose logarithm
    /// is normal with standard deviation `between`. Each bound is moved separately (method of variance estimates
    /// recovery: Zou & Donner, Statistics in Medicine 27, 2008).
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

/// Factor for intervals that treat the successive rounds of each of `runs` as independent: the square root of `(1 + r)
/// / (1 - r)`, where `r` is the lag-1 autocorrelation of the logarithms (variance of the mean of a first-order
/// autoregression; Law, Simulation Modeling and Analysis, section 4.4). `r` is pooled over all runs and at least 0: a
/// negative estimate is treated as chance.
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
        // Corrects the bias: the estimate for independent rounds is -1/n, because their mean comes from the same
        // rounds.
        bias += of_run / logs.len() as f64;
    }
    if squares <= 0.0 {
        return 1.0;
    }
    let correlation = ((products + bias) / squares).clamp(0.0, CORRELATION_MAX);
    ((1.0 + correlation) / (1.0 - correlation)).sqrt()
}

/// Rank, from 1, of the sorted shifts that bound the interval, counted from either end.
#[derive(Clone, Copy)]
struct Cut {
    rank: usize,
    confidence: f64,
}

impl Cut {
    /// The largest rank that leaves at most `side` in either tail; 1 if there is none.
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

/// Number of permutations in which a statistic has each value from 0 to its middle.
struct Counts {
    ways: Vec<i128>,
    all: i128,
}

/// Distribution of the Mann-Whitney statistic: coefficients of the Gaussian binomial, computed factor by factor
/// (Harding, Applied Statistics 33, 1984).
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

/// Distribution of the signed-rank statistic: sums of subsets of the ranks from 1 to `pairs`.
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

/// Normal approximation of the rank sum for many rounds, with corrections for continuity and ties.
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

/// Probability allowed in either tail. Counts are exact but `confidence` is rounded; the tolerance lets 93.75 % accept
/// five pairs, which reach exactly that.
fn side(confidence: f64) -> f64 {
    (1.0 - confidence) / 2.0 * (1.0 + 1e-9)
}

/// Logarithms of the values. `None` if there are none, or one is not finite and above 0.
fn logarithms(values: &[f64]) -> Option<Vec<f64>> {
    let are_sound = values.iter().all(|value| value.is_finite() && *value > 0.0);
    (are_sound && !values.is_empty()).then(|| values.iter().map(|value| value.ln()).collect())
}

#[cfg(test)]
mod tests;
