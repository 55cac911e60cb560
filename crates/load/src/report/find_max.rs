//! Search for the highest rate at which a condition holds. Pure: takes results of trials, returns the next rate.
//!
//! ```text
//! bracket   double the rate while the condition holds, or halve until it does:  lowest failed / highest held <= 2
//! narrow    try the geometric mean, best of three trials, until that ratio is PRECISION
//! confirm   repeat the highest rate that held until it holds more often than not with 95 % confidence;
//!           if it fails that, it counts as failed, and the next lower rate is confirmed
//! ```
//! Trials are noisy, so no single trial decides. The sign test makes no assumption about their distribution.

mod json;
mod score;
mod text;
pub mod undecided;

use onrush_measure::units;
use serde::Serialize;

use crate::limits::{FIND_PRECISION, FIND_RATE_KEPT, FIND_RATE_START, FIND_TRIALS_MAX, RATE_MAX};
use crate::report::Report;
pub use json::to_json;
use score::{P_VALUE_MAX, Score};
pub use text::sentence;

/// Outcome of one trial.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialOutcome {
    /// The condition held.
    Yes,
    /// The condition did not hold.
    No,
    /// The condition held, but the target did not keep up with the rate, so the trial does not count as a pass.
    RateNotKept,
    /// The generator was the limit, so the trial has no result about the target.
    GeneratorLimit,
    /// Undecidable because requests got no response; not a pass.
    Undecided,
    /// Undecidable because there were too few responses, as there are at any lower rate; not a pass.
    TooShort,
}

/// Whether the target kept up with the rate of the trial `report`: it responded to at least `FIND_RATE_KEPT` of the due
/// requests. Responses shortly after the end count. Requests without a response at the end count up to the number that
/// is normally in flight: rate times mean response time (Little's law), plus two standard deviations of a Poisson
/// distribution. More than that is a growing queue.
pub fn keeps_up(report: &Report) -> bool {
    let due = report.due_requests() as f64;
    let mean_s = report.latency_us.mean.unwrap_or_default() / 1e6;
    let under_way = due / report.duration_s.max(f64::MIN_POSITIVE) * mean_s;
    let usual = (under_way + 2.0 * under_way.sqrt() + 1.0).floor();
    let open = (report.unfinished as f64).min(usual);
    report.requests as f64 + open >= due * FIND_RATE_KEPT
}

/// One trial, as shown in the table and the curve.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Trial {
    /// Requested rate, per second.
    pub rate: u64,
    /// Outcome.
    pub held: TrialOutcome,
    /// Value of the condition's figure, as text.
    pub measured: String,
    /// Responses per second.
    pub rps: f64,
    /// Median response time in microseconds. Each percentile is `None` if the count of responses does not support it.
    pub p50_us: Option<f64>,
    /// See `p50_us`.
    pub p99_us: Option<f64>,
    /// See `p50_us`.
    pub p99_9_us: Option<f64>,
    /// Names of percentiles with only a lower bound; see
    /// [`Latency::at_least`](crate::report::latency::Latency::at_least).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub at_least: Vec<String>,
}

impl Trial {
    /// Returns the trial `report` at `rate`; `measured` is the value of the condition's figure as text.
    pub fn new(rate: u64, held: TrialOutcome, measured: String, report: &Report) -> Trial {
        let latency = &report.latency_us;
        let shown = ["50", "99", "99.9"].into_iter();
        Trial {
            rate,
            held,
            measured,
            rps: report.rps,
            p50_us: latency.percentile("50"),
            p99_us: latency.percentile("99"),
            p99_9_us: latency.percentile("99.9"),
            at_least: shown
                .filter(|name| latency.is_at_least(name))
                .map(str::to_owned)
                .collect(),
        }
    }

    /// Response times shown, with the names of their percentiles.
    pub(crate) fn times(&self) -> [(&'static str, Option<f64>); 3] {
        [
            ("50", self.p50_us),
            ("99", self.p99_us),
            ("99.9", self.p99_9_us),
        ]
    }

    pub(crate) fn is_at_least(&self, percentile: &str) -> bool {
        self.at_least.iter().any(|of| of == percentile)
    }
}

/// Next step of a search.
#[derive(Clone, PartialEq, Debug)]
pub enum NextStep {
    /// Make a trial at this rate.
    Try(u64),
    /// Make one more trial at this rate, the answer if confirmed. Trials of `Try` may be shorter.
    Confirm(u64),
    /// The search has ended.
    Done(SearchResult),
}

/// Result of a search.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum SearchResult {
    /// The highest rate that holds, within the precision.
    Found {
        /// Requests per second.
        rate: u64,
        /// Trials in which it held.
        held: u32,
        /// Trials at this rate.
        trials: u32,
        /// Confidence that it holds more often than not.
        confidence: f64,
        /// Reason why no higher rate was found.
        ceiling: SearchLimit,
    },
    /// The condition does not hold even at this rate.
    Never {
        /// Lowest rate tried.
        rate: u64,
    },
    /// The limit on trials was reached: the target or the machine varies too much from trial to trial.
    Unsteady {
        /// Highest rate that held in most of its trials.
        rate: Option<u64>,
    },
    /// The condition held at no rate tried, and trials at lower rates have too few responses to decide it.
    TooShort {
        /// Highest rate with too few responses.
        rate: u64,
    },
}

/// Reason why a search found no higher rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchLimit {
    /// The condition failed at a higher rate.
    Condition,
    /// The target did not keep up with a higher rate.
    Target,
    /// Trials at a higher rate were undecided.
    Undecided,
    /// The generator could not produce a higher rate; the target may sustain more.
    Generator,
    /// The highest rate that can be configured was reached.
    Rates,
}

/// State of a search.
#[derive(Clone, Debug)]
pub struct Search {
    start: u64,
    /// Ratio of the lowest rate that failed to the highest that held at which narrowing stops.
    precision: f64,
    trials: Vec<Trial>,
}

impl Search {
    /// Creates a search that starts at `start` requests per second, or at `FIND_RATE_START`.
    pub fn new(start: Option<u64>) -> Search {
        Search {
            start: start.unwrap_or(FIND_RATE_START).clamp(1, RATE_MAX),
            precision: FIND_PRECISION,
            trials: Vec::new(),
        }
    }

    /// Sets the ratio, above 1, of the lowest rate that failed to the highest that held at which narrowing stops.
    pub fn narrowed_to(self, precision: f64) -> Search {
        Search { precision, ..self }
    }

    /// Adds a finished trial.
    pub fn record(&mut self, trial: Trial) {
        self.trials.push(trial);
    }

    /// All trials, in order.
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// Returns the next step.
    pub fn next(&self) -> NextStep {
        let scores = self.scores();
        if self.trials.len() >= FIND_TRIALS_MAX {
            let best = scores
                .iter()
                .filter(|score| score.majority() == Some(true))
                .map(|score| score.rate);
            return NextStep::Done(SearchResult::Unsteady { rate: best.max() });
        }
        if let Some(open) = scores.iter().find(|score| score.majority().is_none()) {
            return NextStep::Try(open.rate);
        }
        let failed = scores
            .iter()
            .filter(|score| score.majority() == Some(false));
        let Some(lowest_failed) = failed.min_by_key(|score| score.rate) else {
            return self.upwards(&scores);
        };
        let below =
            |score: &&Score| score.majority() == Some(true) && score.rate < lowest_failed.rate;
        match scores.iter().filter(below).max_by_key(|score| score.rate) {
            None => downwards(lowest_failed),
            Some(highest) => self.narrow(*highest, lowest_failed),
        }
    }

    /// Next step while no rate has failed.
    fn upwards(&self, scores: &[Score]) -> NextStep {
        match scores.iter().max_by_key(|score| score.rate) {
            None => NextStep::Try(self.start),
            Some(highest) if highest.rate >= RATE_MAX => confirm(*highest, SearchLimit::Rates),
            Some(highest) => NextStep::Try((highest.rate * 2).min(RATE_MAX)),
        }
    }

    fn narrow(&self, highest: Score, lowest_failed: &Score) -> NextStep {
        let (held, failed) = (highest.rate, lowest_failed.rate);
        let middle = (held as f64 * failed as f64).sqrt().round() as u64;
        if failed as f64 / held as f64 > self.precision && held < middle && middle < failed {
            return NextStep::Try(round(middle, held, failed));
        }
        let ceiling = match lowest_failed {
            failed if failed.is_generator_limited => SearchLimit::Generator,
            failed if failed.is_mostly(failed.not_kept) => SearchLimit::Target,
            failed if failed.is_mostly(failed.undecided + failed.too_short) => {
                SearchLimit::Undecided
            }
            _ => SearchLimit::Condition,
        };
        confirm(highest, ceiling)
    }

    fn scores(&self) -> Vec<Score> {
        let mut scores: Vec<Score> = Vec::new();
        for trial in &self.trials {
            let at = scores
                .iter()
                .position(|score| score.rate == trial.rate)
                .unwrap_or_else(|| {
                    scores.push(Score::new(trial.rate));
                    scores.len() - 1
                });
            scores[at].add(trial.held);
        }
        scores
    }
}

fn downwards(lowest_failed: &Score) -> NextStep {
    let rate = lowest_failed.rate;
    match rate / 2 {
        // Lower rates have fewer responses.
        _ if lowest_failed.is_mostly(lowest_failed.too_short) => {
            NextStep::Done(SearchResult::TooShort { rate })
        }
        0 => NextStep::Done(SearchResult::Never { rate }),
        half => NextStep::Try(half),
    }
}

/// Rounds to three digits if the result is still between the two rates, so that the rate is easy to read and to repeat.
fn round(rate: u64, above: u64, below: u64) -> u64 {
    let digit = 10_u64.pow((rate.max(1).ilog10()).saturating_sub(2));
    let rounded = (rate + digit / 2) / digit * digit;
    if above < rounded && rounded < below {
        rounded
    } else {
        rate
    }
}

fn confirm(highest: Score, ceiling: SearchLimit) -> NextStep {
    if highest.p_value() > P_VALUE_MAX {
        return NextStep::Confirm(highest.rate);
    }
    NextStep::Done(SearchResult::Found {
        rate: highest.rate,
        held: highest.held,
        trials: highest.trials,
        confidence: 1.0 - highest.p_value(),
        ceiling,
    })
}

/// Column headers of [`Trial`]'s lines.
pub const COLUMNS: &str = "#    rate      rps       p50       p99     p99.9  condition";

/// Latency by rate as text: one line per rate, with the median 99th percentile on a logarithmic axis.
pub fn curve(trials: &[Trial]) -> String {
    const WIDTH: f64 = 50.0;
    let points = points(trials);
    let (low, high) = points
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(low, high), (_, us)| {
            (low.min(*us), high.max(*us))
        });
    if points.len() < 2 || low <= 0.0 || high <= low {
        return String::new();
    }
    let line = |(rate, us): &(u64, f64)| {
        let length = 1 + ((us / low).ln() / (high / low).ln() * WIDTH) as usize;
        let time = units::nanoseconds(us * 1000.0);
        format!("{rate:>9}/s |{} {time}\n", "#".repeat(length))
    };
    let title = format!("{:>11} |p99 of response times, logarithmic\n", "rate");
    points.iter().fold(title, |text, point| text + &line(point))
}

/// Median 99th percentile of each rate in microseconds, by rate.
pub fn points(trials: &[Trial]) -> Vec<(u64, f64)> {
    let mut by_rate: std::collections::BTreeMap<u64, Vec<f64>> = Default::default();
    for trial in trials {
        by_rate.entry(trial.rate).or_default().extend(trial.p99_us);
    }
    by_rate
        .into_iter()
        .filter_map(|(rate, values)| {
            let rounds = onrush_measure::compare::Rounds::of(&values)?;
            Some((rate, rounds.median))
        })
        .collect()
}

#[cfg(test)]
mod tests;
