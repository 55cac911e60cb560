//! The highest rate at which a condition holds: which rate to try next, and when to be sure. Pure: results of trials in,
//! the next rate out.
//!
//! ```text
//! bracket   double while it holds, or halve until it does:  lowest that failed / highest that held <= 2
//! narrow    the geometric middle, best of three trials each, until that ratio is PRECISION
//! confirm   the highest that held, again and again, until it holds more often than not with 95 % confidence;
//!           a rate that fails that is one that failed, and the next lower one is confirmed
//! ```
//! Trials are noisy and a neighbour's burst makes any of them fail, so no single trial decides; the sign test assumes
//! nothing of how they are distributed.

mod json;
mod score;
mod text;
pub mod undecided;

use onrush_measure::units;
use serde::Serialize;

use crate::limits::{FIND_PRECISION, FIND_RATE_KEPT, FIND_RATE_START, FIND_TRIALS_MAX, RATE_MAX};
use crate::report::Report;
pub use json::to_json;
use score::{DOUBT_MAX, Score};
pub use text::sentence;

/// What one trial came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Held {
    /// The condition held.
    Yes,
    /// It did not.
    No,
    /// It did, but the target did not keep up with the rate, so that it says nothing of it.
    RateNotKept,
    /// Nothing can be said of the target: the generator was the limit.
    GeneratorLimit,
    /// It cannot be told, since requests were left without a response: no pass.
    Undecided,
    /// It cannot be told, since there were too few responses for it, as there are at any lower rate: no pass.
    TooShort,
}

/// Whether the target kept up with the rate of the trial `report`: it responded to as large a share of what was due as it has
/// to. Responses that came shortly behind the end count, and so do requests without a response at the end, as far as a target
/// that keeps up has them: rate times mean response time are under way at any moment (Little's law), give or take two
/// standard deviations of a Poisson distribution. Those beyond are a queue that grew.
pub fn keeps_up(report: &Report) -> bool {
    let due = report.asked_for() as f64;
    let mean_s = report.latency_us.mean.unwrap_or_default() / 1e6;
    let under_way = due / report.duration_s.max(f64::MIN_POSITIVE) * mean_s;
    let usual = (under_way + 2.0 * under_way.sqrt() + 1.0).floor();
    let open = (report.unfinished as f64).min(usual);
    report.requests as f64 + open >= due * FIND_RATE_KEPT
}

/// One trial, for the table and for the curve.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Trial {
    /// Requests per second asked for.
    pub rate: u64,
    /// What it came to.
    pub held: Held,
    /// The figure of the condition, as people read it.
    pub measured: String,
    /// Responses per second.
    pub rps: f64,
    /// Response times in microseconds, as far as the count supports them.
    pub p50_us: Option<f64>,
    /// See `p50_us`.
    pub p99_us: Option<f64>,
    /// See `p50_us`.
    pub p99_9_us: Option<f64>,
    /// Which of the three are only known to be at least so much, by the names of their percentiles; see
    /// [`Latency::at_least`](crate::report::latency::Latency::at_least).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub at_least: Vec<String>,
}

impl Trial {
    /// What the trial `report` at `rate` came to, with the figure of the condition as people read it.
    pub fn new(rate: u64, held: Held, measured: String, report: &Report) -> Trial {
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

    /// The response times that are shown, each with the name of its percentile.
    pub(crate) fn times(&self) -> [(&'static str, Option<f64>); 3] {
        [
            ("50", self.p50_us),
            ("99", self.p99_us),
            ("99.9", self.p99_9_us),
        ]
    }

    /// Whether a percentile is only known to be at least so much.
    pub(crate) fn is_at_least(&self, percentile: &str) -> bool {
        self.at_least.iter().any(|of| of == percentile)
    }
}

/// What to do next.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    /// Make a trial at this rate, on the way.
    Try(u64),
    /// Make one more at this rate, which is the answer if it holds: trials may be short before, not here.
    Confirm(u64),
    /// The search has ended.
    Done(Answer),
}

/// What was found.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum Answer {
    /// The highest rate that holds, within the precision.
    Found {
        /// Requests per second.
        rate: u64,
        /// In so many trials there it held …
        held: u32,
        /// … of so many.
        trials: u32,
        /// How surely it holds more often than not.
        confidence: f64,
        /// What stood above it.
        ceiling: Ceiling,
    },
    /// It does not even hold at this rate.
    Never {
        /// The lowest that was tried.
        rate: u64,
    },
    /// Too many trials without an end: the target, or the machine, does not behave the same from trial to trial.
    Unsteady {
        /// The highest rate that held in most of its trials.
        rate: Option<u64>,
    },
    /// The condition holds at no rate that was tried, and trials at lower rates have too few responses to decide it.
    TooShort {
        /// The highest of the rates at which they have.
        rate: u64,
    },
}

/// What ended the way upwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ceiling {
    /// The condition failed at a higher rate.
    Condition,
    /// The target did not keep up with a higher rate.
    Target,
    /// It could not be told whether the condition holds at a higher rate.
    Undecided,
    /// The generator could not make a higher rate: the target may hold more.
    Generator,
    /// No higher rate can be asked for.
    Rates,
}

/// A search under way.
#[derive(Clone, Debug)]
pub struct Search {
    start: u64,
    /// The ratio of the lowest rate that failed and the highest that held to which it narrows.
    precision: f64,
    trials: Vec<Trial>,
}

impl Search {
    /// A search that begins at `start` requests per second, or at a modest rate.
    pub fn new(start: Option<u64>) -> Search {
        Search {
            start: start.unwrap_or(FIND_RATE_START).clamp(1, RATE_MAX),
            precision: FIND_PRECISION,
            trials: Vec::new(),
        }
    }

    /// The same, narrowed to this ratio, above 1, of the lowest rate that failed and the highest that held.
    pub fn narrowed_to(self, precision: f64) -> Search {
        Search { precision, ..self }
    }

    /// A trial is over.
    pub fn record(&mut self, trial: Trial) {
        self.trials.push(trial);
    }

    /// All trials, in the order in which they were made.
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// The next thing to do.
    pub fn next(&self) -> Step {
        let scores = self.scores();
        if self.trials.len() >= FIND_TRIALS_MAX {
            let best = scores
                .iter()
                .filter(|score| score.leaning() == Some(true))
                .map(|score| score.rate);
            return Step::Done(Answer::Unsteady { rate: best.max() });
        }
        if let Some(open) = scores.iter().find(|score| score.leaning().is_none()) {
            return Step::Try(open.rate);
        }
        let failed = scores.iter().filter(|score| score.leaning() == Some(false));
        let Some(lowest_failed) = failed.min_by_key(|score| score.rate) else {
            return self.upwards(&scores);
        };
        let below =
            |score: &&Score| score.leaning() == Some(true) && score.rate < lowest_failed.rate;
        match scores.iter().filter(below).max_by_key(|score| score.rate) {
            None => downwards(lowest_failed),
            Some(highest) => self.narrow(*highest, lowest_failed),
        }
    }

    /// Nothing has failed yet.
    fn upwards(&self, scores: &[Score]) -> Step {
        match scores.iter().max_by_key(|score| score.rate) {
            None => Step::Try(self.start),
            Some(highest) if highest.rate >= RATE_MAX => confirm(*highest, Ceiling::Rates),
            Some(highest) => Step::Try((highest.rate * 2).min(RATE_MAX)),
        }
    }

    fn narrow(&self, highest: Score, lowest_failed: &Score) -> Step {
        let (held, failed) = (highest.rate, lowest_failed.rate);
        let middle = (held as f64 * failed as f64).sqrt().round() as u64;
        if failed as f64 / held as f64 > self.precision && held < middle && middle < failed {
            return Step::Try(round(middle, held, failed));
        }
        let ceiling = match lowest_failed {
            failed if failed.is_generators => Ceiling::Generator,
            failed if failed.is_mostly(failed.not_kept) => Ceiling::Target,
            failed if failed.is_mostly(failed.undecided + failed.too_short) => Ceiling::Undecided,
            _ => Ceiling::Condition,
        };
        confirm(highest, ceiling)
    }

    /// By rate.
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

fn downwards(lowest_failed: &Score) -> Step {
    let rate = lowest_failed.rate;
    match rate / 2 {
        // Lower rates have fewer responses.
        _ if lowest_failed.is_mostly(lowest_failed.too_short) => {
            Step::Done(Answer::TooShort { rate })
        }
        0 => Step::Done(Answer::Never { rate }),
        half => Step::Try(half),
    }
}

/// To three digits where that stays between the two: a rate that people can read and ask for again.
fn round(rate: u64, above: u64, below: u64) -> u64 {
    let digit = 10_u64.pow((rate.max(1).ilog10()).saturating_sub(2));
    let rounded = (rate + digit / 2) / digit * digit;
    if above < rounded && rounded < below {
        rounded
    } else {
        rate
    }
}

fn confirm(highest: Score, ceiling: Ceiling) -> Step {
    if highest.doubt() > DOUBT_MAX {
        return Step::Confirm(highest.rate);
    }
    Step::Done(Answer::Found {
        rate: highest.rate,
        held: highest.held,
        trials: highest.trials,
        confidence: 1.0 - highest.doubt(),
        ceiling,
    })
}

/// The names over the columns of [`Trial`]'s lines.
pub const COLUMNS: &str = "#    rate      rps       p50       p99     p99.9  condition";

/// Latency against rate as text: a line for each rate, the 99th percentile to the right on a logarithmic axis; the
/// median over the trials of a rate.
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

/// The median 99th percentile of each rate, in microseconds, by rate.
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
