//! Conditions under which a run fails, such as `p99 > 5ms` or `errors > 0.1%`: text -> a condition -> an outcome. Pure.
//!
//! ```text
//! condition := metric op value
//! metric    := [time "."] statistic | count
//! time      := response | service | send_lag | first_byte (ttfb) | connect | tls       response when left out
//! statistic := p50 … p99.9999 | mean | min | max
//! count     := errors | loss | timeouts | missed | resent | rps | status.404 | status.5xx
//! op        := > | >= | < | <= | =
//! value     := a time (5ms), a share (0.1%) or a number (10, 2k)
//! ```

mod metric;
mod statistic;

use std::fmt;

use onrush_measure::units;
use serde::{Deserialize, Serialize};

use crate::figures::{Figures, Kind};
use crate::grpc::code;
use crate::limits::{HOPELESS_RESPONSES_MIN, RATE_GROWTH_MAX};
use crate::unanswered::Bounds;
use metric::{Counted, Metric, Unit};
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

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Op {
    Above,
    AtLeast,
    Below,
    AtMost,
    Equal,
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
                "a condition compares: metric, then >, >=, <, <= or =, then a value, such as p99 > 5ms",
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
                format!("{found} is no comparison: use >, >=, <, <= or ="),
            )
        })?;
        let name_at = text.len() - text.trim_start().len();
        let name = text[..at].trim();
        let rest = &text[at + length..];
        let value_at = at + length + (rest.len() - rest.trim_start().len());
        let value = rest.trim();
        let mut metric =
            Metric::parse(name).map_err(|message| mistake(column(text, name_at), message))?;
        if op == Op::Equal && !matches!(metric, Metric::Counted(..)) {
            return Err(mistake(
                column(text, at),
                format!("{name} is hardly ever exactly so much: use <= or >="),
            ));
        }
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

    /// Whether it is about datagrams that were lost, which requests are not.
    pub fn is_about_loss(&self) -> bool {
        matches!(self.metric, Metric::Counted(Counted::Loss, _))
    }

    /// Whether it is about what came or did not, which is not known where nobody says so.
    pub fn is_about_receipt(&self) -> bool {
        match self.metric {
            Metric::Rate => true,
            Metric::Counted(counted, _) => counted != Counted::Missed,
            // Times of what never came are none, which is known to be no pass.
            Metric::Time(..) => false,
        }
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
            Metric::Counted(Counted::Code(code), _) => Err(format!(
                "single codes are known only at the end of a run: ask for the class of their status, status.{}xx",
                code::class(code)
            )),
            Metric::Counted(Counted::Loss, _) => {
                Err("what was lost is known only at the end of a run".to_owned())
            }
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
                format!("{measured}: more cannot be known, for some requests had no response"),
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

    /// Where the figure lies; its two bounds are one where every request got a response.
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
            "=" => Op::Equal,
            _ => return None,
        })
    }

    fn holds(self, measured: f64, value: f64) -> bool {
        match self {
            Op::Above => measured > value,
            Op::AtLeast => measured >= value,
            Op::Below => measured < value,
            Op::AtMost => measured <= value,
            Op::Equal => measured == value,
        }
    }
}

impl Extent {
    /// The most that the run's requests can come to, with a response or failed. For a run of a set time that is an
    /// estimate: the rate would have to multiply for it to be wrong.
    fn requests_at_most(self, so_far: &Figures) -> Option<f64> {
        let finished = (so_far.responses + so_far.errors - so_far.unexpected) as f64;
        match self {
            Extent::Requests(count) => Some(finished.max(count as f64)),
            Extent::Time { elapsed_s, total_s } => {
                let is_enough =
                    elapsed_s > 0.0 && so_far.responses + so_far.errors >= HOPELESS_RESPONSES_MIN;
                let left = (total_s - elapsed_s).max(0.0);
                is_enough.then(|| finished + finished / elapsed_s * left * RATE_GROWTH_MAX)
            }
            Extent::Open => None,
        }
    }
}

#[cfg(test)]
mod tests;
