//! Conditions under which a run fails, such as `p99 > 5ms` or `errors > 0.1%`: text -> a condition -> an outcome. Pure.
//!
//! ```text
//! condition := metric op value
//! metric    := [time "."] statistic | count
//! time      := response | service | send_lag | first_byte (ttfb) | connect | tls       response when left out
//! statistic := p50 … p99.9999 | mean | min | max
//! count     := errors | timeouts | missed | resent | rps | status.404 | status.5xx
//! op        := > | >= | < | <=
//! value     := a time (5ms), a share (0.1%) or a number (10, 2k)
//! ```

mod statistic;

use std::fmt;

use onrush_measure::units;
use serde::{Deserialize, Serialize};

use crate::figures::{Figures, Kind};
use crate::limits::{HOPELESS_ANSWERS_MIN, RATE_GROWTH_MAX};
use crate::unanswered::Bounds;
use statistic::Statistic;

/// A condition under which the run fails.
#[derive(Clone, PartialEq, Debug)]
pub struct Threshold {
    /// As it was written.
    text: String,
    metric: Metric,
    op: Op,
    /// In nanoseconds, as a share (0 to 1) or as it is: by the metric and its unit.
    value: f64,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Metric {
    Time(Kind, Statistic),
    Counted(Counted, Unit),
    Rate,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Counted {
    Errors,
    Timeouts,
    Missed,
    Resent,
    Status(u16),
    /// `5` is 5xx.
    Class(u16),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unit {
    Share,
    Number,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Op {
    Above,
    AtLeast,
    Below,
    AtMost,
}

/// Why a text is no condition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistake {
    /// From 1, in characters.
    pub column: usize,
    /// What is wrong there.
    pub message: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "column {}: {}", self.column, self.message)
    }
}

impl std::error::Error for Mistake {}

/// What became of a condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// The condition does not hold.
    Passed,
    /// It holds: the run fails.
    Failed,
    /// The run was too small to say, which is no pass.
    Undecided,
}

/// A condition and what became of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// As it was written.
    pub condition: String,
    /// What became of it.
    pub fate: Fate,
    /// What was measured, with its unit, or why nothing can be said.
    pub measured: String,
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fate = match self.fate {
            Fate::Passed => "passed",
            Fate::Failed => "FAILED",
            Fate::Undecided => "UNDECIDED",
        };
        write!(out, "fail if {}: {fate}: {}", self.condition, self.measured)
    }
}

/// How many requests the whole run can come to, for what is said of it before its end.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Extent {
    /// At most so many.
    Requests(u64),
    /// As many as come in this time, in seconds, of which so many have passed.
    Time {
        /// Passed.
        elapsed_s: f64,
        /// In all.
        total_s: f64,
    },
    /// Until somebody stops it.
    Open,
}

impl Threshold {
    /// Reads a condition.
    ///
    /// # Errors
    /// Says what is wrong, and at which column.
    pub fn parse(text: &str) -> Result<Threshold, Mistake> {
        let is_op = |letter: char| matches!(letter, '<' | '>' | '=' | '!');
        let Some(at) = text.find(is_op) else {
            let end = text.trim_end().chars().count() + 1;
            return Err(mistake(
                end,
                "a condition compares: metric, then >, >=, < or <=, then a value, such as p99 > 5ms",
            ));
        };
        let length = text[at..]
            .chars()
            .take_while(|letter| is_op(*letter))
            .count();
        let op = Op::parse(&text[at..at + length]).ok_or_else(|| {
            let found = &text[at..at + length];
            mistake(
                column(text, at),
                format!("{found} is no comparison: use >, >=, < or <="),
            )
        })?;
        let name_at = text.len() - text.trim_start().len();
        let name = text[..at].trim();
        let rest = &text[at + length..];
        let value_at = at + length + (rest.len() - rest.trim_start().len());
        let value = rest.trim();
        let mut metric =
            Metric::parse(name).map_err(|message| mistake(column(text, name_at), message))?;
        let value = metric
            .read_value(value)
            .map_err(|message| mistake(column(text, value_at), message))?;
        Ok(Threshold {
            text: text.trim().to_owned(),
            metric,
            op,
            value,
        })
    }

    /// The condition as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it says how many errors are too many.
    pub fn is_about_errors(&self) -> bool {
        matches!(
            self.metric,
            Metric::Counted(Counted::Errors | Counted::Timeouts, _)
        )
    }

    /// Whether a run under way knows its figure.
    ///
    /// # Errors
    /// A sentence that says what it knows instead.
    pub fn is_known_early(&self) -> Result<(), String> {
        match self.metric {
            Metric::Counted(Counted::Status(status), _) => Err(format!(
                "single statuses are known only at the end of a run: ask for their class, status.{}xx",
                status / 100
            )),
            Metric::Counted(Counted::Timeouts | Counted::Missed, _) => Err(
                "timeouts and missed requests are known only at the end of a run: ask for errors, or for a percentile"
                    .to_owned(),
            ),
            Metric::Counted(Counted::Errors | Counted::Resent | Counted::Class(_), _)
            | Metric::Time(..)
            | Metric::Rate => Ok(()),
        }
    }

    /// What becomes of it at the end of a run with these figures.
    pub fn judge(&self, figures: &Figures) -> Outcome {
        let outcome = |fate, measured| Outcome {
            condition: self.text.clone(),
            fate,
            measured,
        };
        let Bounds { low, high } = match self.measured(figures) {
            Err(reason) => return outcome(Fate::Undecided, reason),
            Ok(bounds) => bounds,
        };
        let measured = match () {
            () if low == high => self.show(low),
            () if high.is_finite() => format!("{} to {}", self.show(low), self.show(high)),
            () => format!("at least {}", self.show(low)),
        };
        match (
            self.op.holds(low, self.value),
            self.op.holds(high, self.value),
        ) {
            (true, true) => outcome(Fate::Failed, measured),
            (false, false) => outcome(Fate::Passed, measured),
            _ => outcome(
                Fate::Undecided,
                format!("{measured}: more cannot be known, for some requests had no answer"),
            ),
        }
    }

    /// Whether the run fails whatever comes yet.
    pub fn is_hopeless(&self, so_far: &Figures, extent: Extent) -> bool {
        if !matches!(self.op, Op::Above | Op::AtLeast) {
            return false;
        }
        match self.metric {
            // A largest value and a plain count only grow.
            Metric::Time(kind, Statistic::Max) => {
                let times = so_far.times.of(kind);
                times.count() > 0 && self.op.holds(times.max() as f64, self.value)
            }
            Metric::Counted(counted, Unit::Number) => {
                self.op.holds(counted.of(so_far) as f64, self.value)
            }
            Metric::Counted(counted, Unit::Share) => {
                let total = extent.requests_at_most(so_far);
                total.is_some_and(|total| {
                    self.op.holds(counted.of(so_far) as f64 / total, self.value)
                })
            }
            Metric::Time(kind, Statistic::Percentile(percentile)) => {
                // What still waits may yet fail in another way, and is then no part of the times.
                let times = so_far.times.of(kind);
                let above = times.count() - times.count_up_to(self.value as u64);
                // Connections and handshakes are fewer than requests, by how many is not known.
                let is_per_request = !matches!(kind, Kind::Connect | Kind::Tls);
                let total = extent.requests_at_most(so_far).filter(|_| is_per_request);
                total.is_some_and(|total| above as f64 > total * (1.0 - percentile / 100.0))
            }
            Metric::Time(_, Statistic::Mean | Statistic::Min) | Metric::Rate => false,
        }
    }

    /// Where the figure lies; its two bounds are one where every request was answered.
    fn measured(&self, figures: &Figures) -> Result<Bounds, String> {
        let exact = match self.metric {
            Metric::Time(kind, statistic) => {
                let waits = figures.unanswered.of(kind);
                return statistic.of(figures.times.of(kind), waits, kind);
            }
            Metric::Rate => figures.rps,
            Metric::Counted(counted, Unit::Number) => counted.of(figures) as f64,
            Metric::Counted(counted, Unit::Share) => match counted.base(figures) {
                0 => return Err("there were no requests to take a share of".to_owned()),
                base => counted.of(figures) as f64 / base as f64,
            },
        };
        Ok(Bounds {
            low: exact,
            high: exact,
        })
    }

    fn show(&self, value: f64) -> String {
        match self.metric {
            Metric::Time(..) => units::nanoseconds(value),
            Metric::Rate => units::rate(value),
            Metric::Counted(_, Unit::Number) => units::count(value as u64),
            Metric::Counted(_, Unit::Share) => format!("{} %", significant(value * 100.0)),
        }
    }
}

/// Three digits of a share; a share of 0.0004 % is not 0.
fn significant(percent: f64) -> String {
    match percent {
        0.0 => "0".to_owned(),
        ..0.001 => format!("{percent:.1e}"),
        ..1.0 => format!("{percent:.4}"),
        _ => format!("{percent:.2}"),
    }
}

fn mistake(column: usize, message: impl Into<String>) -> Mistake {
    Mistake {
        column,
        message: message.into(),
    }
}

/// The column of a byte, from 1.
fn column(text: &str, at: usize) -> usize {
    text[..at].chars().count() + 1
}

impl Op {
    fn parse(text: &str) -> Option<Op> {
        Some(match text {
            ">" => Op::Above,
            ">=" => Op::AtLeast,
            "<" => Op::Below,
            "<=" => Op::AtMost,
            _ => return None,
        })
    }

    fn holds(self, measured: f64, value: f64) -> bool {
        match self {
            Op::Above => measured > value,
            Op::AtLeast => measured >= value,
            Op::Below => measured < value,
            Op::AtMost => measured <= value,
        }
    }
}

const METRICS: &str = "p50 to p99.9999, mean, min or max, with service., send_lag., first_byte., connect. or tls. before it for other times than the response time; errors, timeouts, missed, resent, rps, status.404 or status.5xx";

impl Metric {
    fn parse(name: &str) -> Result<Metric, String> {
        if name.is_empty() {
            return Err(format!(
                "there is no metric before the comparison: {METRICS}"
            ));
        }
        let unknown = || format!("{name} is no metric: use {METRICS}");
        let counted = |counted| Ok(Metric::Counted(counted, Unit::Number));
        match name {
            "rps" => return Ok(Metric::Rate),
            "errors" => return counted(Counted::Errors),
            "timeouts" => return counted(Counted::Timeouts),
            "missed" => return counted(Counted::Missed),
            "resent" => return counted(Counted::Resent),
            _ => {}
        }
        if let Some(status) = name.strip_prefix("status.") {
            return counted(Counted::status(status).ok_or_else(|| {
                format!("{status} is no status of an answer: use one from 200 to 999 such as 404, or a class such as 5xx")
            })?);
        }
        let (kind, statistic) = name.split_once('.').map_or((None, name), |(kind, rest)| {
            match kind_of(kind) {
                Some(kind) => (Some(kind), rest),
                // The point in p99.9.
                None => (None, name),
            }
        });
        let statistic = Statistic::parse(statistic).ok_or_else(unknown)??;
        Ok(Metric::Time(kind.unwrap_or(Kind::Response), statistic))
    }

    /// The value in the unit of the metric. A count becomes a share when it is compared with one.
    fn read_value(&mut self, text: &str) -> Result<f64, String> {
        match self {
            Metric::Time(..) => time_ns(text),
            Metric::Rate => number(text.strip_suffix("/s").unwrap_or(text).trim_end()),
            Metric::Counted(counted, unit) => match text.strip_suffix('%') {
                None => number(text),
                Some(_) if *counted == Counted::Missed => {
                    Err("missed is a count, such as 0 or 100".to_owned())
                }
                Some(percent) => {
                    *unit = Unit::Share;
                    number(percent.trim_end()).map(|percent| percent / 100.0)
                }
            },
        }
    }
}

fn kind_of(name: &str) -> Option<Kind> {
    match name {
        "ttfb" => Some(Kind::FirstByte),
        "latency" => Some(Kind::Response),
        _ => Kind::ALL.into_iter().find(|kind| kind.name() == name),
    }
}

impl Counted {
    fn status(text: &str) -> Option<Counted> {
        let class = |digit: &str| digit.parse().ok().filter(|class| (2..=9).contains(class));
        if let Some(digit) = text.strip_suffix("xx") {
            return class(digit).map(Counted::Class);
        }
        let status = text.parse().ok()?;
        (200..1000)
            .contains(&status)
            .then_some(Counted::Status(status))
    }

    fn of(self, figures: &Figures) -> u64 {
        let statuses = &figures.statuses;
        match self {
            // Where nothing was answered, nobody can say that what is open would have been.
            Counted::Errors if figures.answers == 0 => figures.errors + figures.unfinished,
            Counted::Errors => figures.errors,
            Counted::Resent => figures.resent,
            Counted::Timeouts => figures.timeouts,
            Counted::Missed => figures.missed,
            Counted::Status(status) => statuses.get(&status.to_string()).copied().unwrap_or(0),
            // A class goes by its first digit, as its statuses do.
            Counted::Class(class) => {
                let digit = class.to_string();
                let statuses = statuses.iter().filter(|(name, _)| name.starts_with(&digit));
                statuses.map(|(_, count)| count).sum()
            }
        }
    }

    /// What its share is a share of: answers for statuses, everything that was tried for the others.
    fn base(self, figures: &Figures) -> u64 {
        match self {
            Counted::Status(_) | Counted::Class(_) => figures.answers,
            Counted::Errors if figures.answers == 0 => figures.errors + figures.unfinished,
            Counted::Errors | Counted::Timeouts | Counted::Missed | Counted::Resent => {
                figures.answers + figures.errors - figures.unexpected
            }
        }
    }
}

impl Extent {
    /// The most that the run's requests can come to, answered or failed. For a run of a set time that is an estimate:
    /// the rate would have to multiply for it to be wrong.
    fn requests_at_most(self, so_far: &Figures) -> Option<f64> {
        let finished = (so_far.answers + so_far.errors - so_far.unexpected) as f64;
        match self {
            Extent::Requests(count) => Some(finished.max(count as f64)),
            Extent::Time { elapsed_s, total_s } => {
                let is_enough =
                    elapsed_s > 0.0 && so_far.answers + so_far.errors >= HOPELESS_ANSWERS_MIN;
                let left = (total_s - elapsed_s).max(0.0);
                is_enough.then(|| finished + finished / elapsed_s * left * RATE_GROWTH_MAX)
            }
            Extent::Open => None,
        }
    }
}

fn number(text: &str) -> Result<f64, String> {
    let (digits, factor) = match text.strip_suffix(['k', 'm']) {
        Some(digits) if text.ends_with('k') => (digits, 1e3),
        Some(digits) => (digits, 1e6),
        None => (text, 1.0),
    };
    let is_plain = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    match digits.parse::<f64>() {
        Ok(number) if is_plain(digits) => Ok(number * factor),
        _ => Err(format!(
            "{} is no number: write one such as 10, 2k or 0.1%",
            shown(text)
        )),
    }
}

fn time_ns(text: &str) -> Result<f64, String> {
    const UNITS: [(&str, f64); 5] = [
        ("ns", 1.0),
        ("us", 1e3),
        ("µs", 1e3),
        ("ms", 1e6),
        ("s", 1e9),
    ];
    let expected = || {
        format!(
            "{} is no time: write one with its unit, such as 5ms, 250us or 1.5s",
            shown(text)
        )
    };
    let (digits, factor) = UNITS
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?.trim_end(), factor)))
        .ok_or_else(expected)?;
    let value = number(digits).map_err(|_| expected())?;
    // 5m would be five million seconds here, and five minutes to everybody else.
    match digits.ends_with(['k', 'm']) {
        true => Err(expected()),
        false => Ok(value * factor),
    }
}

fn shown(text: &str) -> &str {
    match text {
        "" => "nothing",
        _ => text,
    }
}

#[cfg(test)]
mod tests;
