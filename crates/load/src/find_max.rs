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

use std::fmt;

use onrush_measure::units;
use serde::Serialize;

use crate::limits::{
    FIND_CONFIRM_MAX, FIND_PRECISION, FIND_RATE_KEPT, FIND_RATE_START, FIND_TRIALS_MAX,
    FIND_TRIALS_PER_RATE, RATE_MAX,
};
use crate::report::Report;

/// How a rate is confirmed: the probability of as many trials holding by chance, if it held only half of the time.
const DOUBT_MAX: f64 = 0.05;

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
}

/// Whether the target kept up with the rate of the trial `report`: it answered as large a share of what was due as it has
/// to. Answers that came shortly behind the end count, and so do requests without an answer at the end, as far as a target
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
    /// Answers per second.
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
    /// Make a trial at this rate.
    Try(u64),
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
}

/// What ended the way upwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ceiling {
    /// The condition failed at a higher rate.
    Condition,
    /// The target did not keep up with a higher rate.
    Target,
    /// The generator could not make a higher rate: the target may hold more.
    Generator,
    /// No higher rate can be asked for.
    Rates,
}

/// A search under way.
#[derive(Clone, Debug)]
pub struct Search {
    start: u64,
    trials: Vec<Trial>,
}

/// How the trials at one rate went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Score {
    rate: u64,
    held: u32,
    trials: u32,
    /// How many failed because the target did not keep up.
    not_kept: u32,
    /// Whether the generator was the limit in any of them.
    is_generators: bool,
}

impl Score {
    /// Whether it holds, as far as two of three trials say; none before they do. A rate that many trials could not
    /// confirm does not.
    fn leaning(self) -> Option<bool> {
        let majority = FIND_TRIALS_PER_RATE / 2 + 1;
        let is_unconfirmed = self.trials >= FIND_CONFIRM_MAX && self.doubt() > DOUBT_MAX;
        if self.is_generators || is_unconfirmed {
            return Some(false);
        }
        let failed = self.trials - self.held;
        match self.held.cmp(&failed) {
            _ if self.held.max(failed) < majority => None,
            std::cmp::Ordering::Greater => Some(true),
            std::cmp::Ordering::Equal | std::cmp::Ordering::Less => Some(false),
        }
    }

    /// The probability of at least this many holding were each as likely to fail.
    fn doubt(self) -> f64 {
        upper_tail(self.trials, self.held)
    }
}

/// P(B >= `least`) for B ~ Bin(`count`, 1/2).
fn upper_tail(count: u32, least: u32) -> f64 {
    let mut ways = 1.0;
    let mut sum = 0.0;
    for outcome in 0..=count {
        if outcome >= least {
            sum += ways;
        }
        ways *= f64::from(count - outcome) / f64::from(outcome + 1);
    }
    sum / 2_f64.powi(count as i32)
}

impl Search {
    /// A search that begins at `start` requests per second, or at a modest rate.
    pub fn new(start: Option<u64>) -> Search {
        Search {
            start: start.unwrap_or(FIND_RATE_START).clamp(1, RATE_MAX),
            trials: Vec::new(),
        }
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
            None => downwards(lowest_failed.rate),
            Some(highest) => narrow(*highest, lowest_failed),
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

    /// By rate.
    fn scores(&self) -> Vec<Score> {
        let mut scores: Vec<Score> = Vec::new();
        for trial in &self.trials {
            let at = scores
                .iter()
                .position(|score| score.rate == trial.rate)
                .unwrap_or_else(|| {
                    scores.push(Score {
                        rate: trial.rate,
                        held: 0,
                        trials: 0,
                        not_kept: 0,
                        is_generators: false,
                    });
                    scores.len() - 1
                });
            scores[at].trials += 1;
            scores[at].held += u32::from(trial.held == Held::Yes);
            scores[at].not_kept += u32::from(trial.held == Held::RateNotKept);
            scores[at].is_generators |= trial.held == Held::GeneratorLimit;
        }
        scores
    }
}

fn downwards(lowest_failed: u64) -> Step {
    match lowest_failed / 2 {
        0 => Step::Done(Answer::Never {
            rate: lowest_failed,
        }),
        half => Step::Try(half),
    }
}

fn narrow(highest: Score, lowest_failed: &Score) -> Step {
    let (held, failed) = (highest.rate, lowest_failed.rate);
    let middle = (held as f64 * failed as f64).sqrt().round() as u64;
    if failed as f64 / held as f64 > FIND_PRECISION && held < middle && middle < failed {
        return Step::Try(round(middle, held, failed));
    }
    let ceiling = match lowest_failed {
        failed if failed.is_generators => Ceiling::Generator,
        failed if 2 * failed.not_kept > failed.trials - failed.held => Ceiling::Target,
        _ => Ceiling::Condition,
    };
    confirm(highest, ceiling)
}

/// To two digits where that stays between the two: a rate that people can read and ask for again.
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
        return Step::Try(highest.rate);
    }
    Step::Done(Answer::Found {
        rate: highest.rate,
        held: highest.held,
        trials: highest.trials,
        confidence: 1.0 - highest.doubt(),
        ceiling,
    })
}

impl fmt::Display for Answer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |rate: &u64| units::count(*rate);
        match self {
            Answer::Found {
                rate,
                held,
                trials,
                confidence,
                ceiling,
            } => {
                let above = match ceiling {
                    Ceiling::Condition => format!("the condition failed {:.0} % above that or less", (FIND_PRECISION - 1.0) * 100.0),
                    Ceiling::Target => format!("{:.0} % above that or less the target answered fewer requests than it was asked", (FIND_PRECISION - 1.0) * 100.0),
                    Ceiling::Generator => "the generator could not make more (-t, --cpus), so the target may hold more".to_owned(),
                    Ceiling::Rates => "no higher rate can be asked for".to_owned(),
                };
                write!(
                    out,
                    "{} requests per second: held in {held} of {trials} trials, so more often than not with {:.0} % confidence; {above}",
                    number(rate),
                    (confidence * 100.0).floor()
                )
            }
            Answer::Never { rate } => write!(
                out,
                "none: the condition fails even at {} requests per second, or the target does not keep up with them",
                number(rate)
            ),
            Answer::Unsteady { rate: Some(rate) } => write!(
                out,
                "not certain: after {FIND_TRIALS_MAX} trials no rate holds reliably; the highest that held in most of its trials was {} requests per second. Make trials longer (-d), or the machine quieter",
                number(rate)
            ),
            Answer::Unsteady { rate: None } => write!(
                out,
                "not certain: after {FIND_TRIALS_MAX} trials no rate holds reliably. Make trials longer (-d), or the machine quieter"
            ),
        }
    }
}

/// A search as JSON: `condition`, `answer` (null when it was ended before) and `trials`.
pub fn to_json(condition: &str, answer: Option<&Answer>, trials: &[Trial]) -> String {
    #[derive(Serialize)]
    struct Whole<'a> {
        condition: &'a str,
        answer: Option<&'a Answer>,
        trials: &'a [Trial],
    }
    let whole = Whole {
        condition,
        answer,
        trials,
    };
    serde_json::to_string_pretty(&whole).expect("numbers, strings and lists")
}

/// The names over the columns of [`Trial`]'s lines.
pub const COLUMNS: &str = "#    rate      rps       p50       p99     p99.9  condition";

impl fmt::Display for Trial {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p50, p99, p99_9] = self.times().map(|(name, us)| {
            let sign = if self.is_at_least(name) { "> " } else { "" };
            us.map_or("-".to_owned(), |us| {
                format!("{sign}{}", units::nanoseconds(us * 1000.0))
            })
        });
        let held = match self.held {
            Held::Yes => "holds",
            Held::No => "the condition fails",
            Held::RateNotKept => "the target did not keep up",
            Held::GeneratorLimit => "the generator was the limit",
        };
        write!(
            out,
            "{:>9} {:>8.0} {p50:>9} {p99:>9} {p99_9:>9}  {held} ({})",
            self.rate, self.rps, self.measured
        )
    }
}

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
mod tests {
    use onrush_engine::random::Random;

    use super::*;

    /// A queue with one server and exponential times (M/M/1), asked by a generator with a limit of its own; how its
    /// 99th percentile is measured is off by up to `noise`.
    struct Model {
        service_rate: f64,
        generator_max: f64,
        noise: f64,
    }

    impl Model {
        /// Response times in M/M/1 are exponential with rate mu - lambda.
        fn p99_us(&self, rate: f64) -> f64 {
            match self.service_rate - rate {
                spare if spare > 0.0 => 100_f64.ln() / spare * 1e6,
                _ => 1e7,
            }
        }

        /// The rate at which the 99th percentile is `bound_us`.
        fn truth(&self, bound_us: f64) -> f64 {
            self.service_rate - 100_f64.ln() / bound_us * 1e6
        }

        fn trial(&self, rate: u64, bound_us: f64, random: &Random) -> Trial {
            let off = 1.0 + self.noise * (2.0 * random.unit() - 1.0);
            let p99_us = self.p99_us(rate as f64) * off;
            let held = match p99_us < bound_us {
                _ if rate as f64 > self.generator_max => Held::GeneratorLimit,
                true => Held::Yes,
                false => Held::No,
            };
            Trial {
                rate,
                held,
                measured: format!("{p99_us:.0} us"),
                rps: rate as f64,
                p50_us: None,
                p99_us: Some(p99_us),
                p99_9_us: None,
                at_least: Vec::new(),
            }
        }

        fn search(&self, bound_us: f64, start: Option<u64>, seed: u64) -> (Answer, usize) {
            let random = Random::new(seed);
            let mut search = Search::new(start);
            loop {
                match search.next() {
                    Step::Try(rate) => search.record(self.trial(rate, bound_us, &random)),
                    Step::Done(answer) => return (answer, search.trials().len()),
                }
            }
        }
    }

    const STEADY: Model = Model {
        service_rate: 50_000.0,
        generator_max: 1e9,
        noise: 0.0,
    };

    fn found(answer: &Answer) -> u64 {
        match answer {
            Answer::Found {
                rate, confidence, ..
            } => {
                assert!(*confidence >= 0.95, "{answer}");
                *rate
            }
            Answer::Never { .. } | Answer::Unsteady { .. } => panic!("{answer}"),
        }
    }

    #[test]
    fn a_target_keeps_up_when_no_more_is_open_at_the_end_than_at_any_moment() {
        let kept = |requests: u64, unfinished: u64, mean_ms: f64, missed: u64, failures: u64| {
            let mut report = Report {
                duration_s: 5.0,
                requests,
                unfinished,
                missed,
                ..Report::default()
            };
            report.latency_us.mean = Some(mean_ms * 1000.0);
            report.evidence.failures = failures;
            keeps_up(&report)
        };
        // 100 per second at a constant 60 ms, and 20 per second at half a second each.
        assert!(kept(494, 6, 60.0, 0, 0));
        assert!(kept(90, 10, 500.0, 0, 0));
        assert!(kept(5000, 0, 1.0, 0, 0));
        // The same left open where answers take 1 ms.
        assert!(!kept(480, 20, 1.0, 0, 0));
        // 950 of 1,000 per second: the queue grows, to twice the mean wait.
        assert!(!kept(4750, 250, 125.0, 0, 0));
        // Never sent, and failed.
        assert!(!kept(4900, 0, 60.0, 100, 0));
        assert!(!kept(4900, 0, 60.0, 0, 100));
    }

    #[test]
    fn the_highest_rate_of_a_steady_queue_is_found_within_the_precision() {
        for bound_us in [200.0, 1_000.0, 20_000.0] {
            for start in [None, Some(1), Some(7), Some(49_000), Some(10_000_000)] {
                let (answer, trials) = STEADY.search(bound_us, start, 1);
                let (rate, truth) = (found(&answer) as f64, STEADY.truth(bound_us));
                assert!(
                    rate <= truth && rate * FIND_PRECISION >= truth * 0.999,
                    "{rate} of {truth}"
                );
                assert!(trials < FIND_TRIALS_MAX, "{trials}");
            }
        }
    }

    #[test]
    fn noise_moves_the_answer_by_little_and_never_leaves_it_unconfirmed() {
        let noisy = Model {
            noise: 0.3,
            ..STEADY
        };
        // With its p99 30 % off either way, the queue holds 1 ms surely below 44,000/s and never above 46,700/s.
        for seed in 0..300 {
            let (answer, trials) = noisy.search(1_000.0, Some(1_000), seed);
            let rate = found(&answer) as f64;
            assert!((41_000.0..46_800.0).contains(&rate), "seed {seed}: {rate}");
            assert!(trials <= FIND_TRIALS_MAX, "seed {seed}: {trials}");
        }
    }

    #[test]
    fn a_condition_that_never_holds_is_said_to() {
        let (answer, _) = STEADY.search(1.0, None, 1);
        assert_eq!(answer, Answer::Never { rate: 1 });
    }

    #[test]
    fn the_limit_of_the_generator_is_not_taken_for_that_of_the_target() {
        let model = Model {
            generator_max: 9_000.0,
            ..STEADY
        };
        let (answer, _) = model.search(1_000.0, None, 1);
        assert!(
            found(&answer) <= 9_000 && found(&answer) > 8_000,
            "{answer}"
        );
        assert!(matches!(
            answer,
            Answer::Found {
                ceiling: Ceiling::Generator,
                ..
            }
        ));
        assert!(answer.to_string().contains("the target may hold more"));
    }

    #[test]
    fn a_target_like_a_coin_ends_the_search_without_a_promise() {
        let coin = |rate: u64, random: &Random| Trial {
            held: match random.unit() < 0.5 {
                true => Held::Yes,
                false => Held::No,
            },
            ..STEADY.trial(rate, 1.0, &Random::new(0))
        };
        let (mut promised, mut ended) = (0, 0);
        for seed in 0..200 {
            let (random, mut search) = (Random::new(seed), Search::new(None));
            while let Step::Try(rate) = search.next() {
                search.record(coin(rate, &random));
            }
            ended += 1;
            promised += u32::from(matches!(search.next(), Step::Done(Answer::Found { .. })));
        }
        // Looking again after each trial finds five in a row sooner or later: the bound is on each rate, not on all.
        assert_eq!(ended, 200);
        assert!(promised < 200, "{promised}");
    }

    #[test]
    fn five_trials_of_five_are_what_confidence_takes() {
        let score = |held, trials| Score {
            rate: 1,
            held,
            trials,
            not_kept: 0,
            is_generators: false,
        };
        for (held, trials, is_sure) in [
            (4, 4, false),
            (5, 5, true),
            (5, 6, false),
            (7, 8, true),
            (6, 8, false),
        ] {
            assert_eq!(
                score(held, trials).doubt() <= DOUBT_MAX,
                is_sure,
                "{held} of {trials}"
            );
        }
        assert!((score(5, 5).doubt() - 1.0 / 32.0).abs() < 1e-12);
    }

    #[test]
    fn the_curve_has_a_line_for_each_rate() {
        let trials: Vec<Trial> = [1_000, 2_000, 2_000, 40_000]
            .map(|rate| STEADY.trial(rate, 1_000.0, &Random::new(3)))
            .into();
        let curve = curve(&trials);
        assert_eq!(curve.lines().count(), 4, "{curve}");
        assert!(
            curve
                .lines()
                .last()
                .unwrap()
                .starts_with("    40000/s |#####"),
            "{curve}"
        );
        assert_eq!(super::curve(&trials[..1]), "");
    }
}
