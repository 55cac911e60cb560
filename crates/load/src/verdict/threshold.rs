//! Conditions under which a run fails, such as `p99 > 5ms` or `errors > 0.1%`: parser and evaluation. Pure.
//!
//! ```text
//! condition := metric [scope] op value
//! metric    := [time "."] statistic | count
//! scope     := {journey:NAME} | {step:NAME} | {journey:NAME,step:NAME}
//! time      := response | service | send_lag | first_byte (ttfb) | connect | tls       response when left out
//! statistic := p50 … p99.9999 | mean | min | max
//! count     := errors | loss | timeouts | missed | resent | failed_checks | rps | status.404 | status.5xx
//! op        := > | >= | < | <= | =
//! value     := a time (5ms), a share (0.1%) or a number (10, 2k)
//! ```

mod extent;
mod journeys;
mod metric;
mod outcome;
mod scope;
mod statistic;

use std::fmt;

use onrush_measure::units;

use crate::record::figures::{Figures, Kind};
use crate::record::incomplete_waits::Bounds;
use crate::requests::grpc::code;
pub use extent::RunExtent;
use metric::{CountMetric, Metric, Unit};
pub use outcome::{JudgedThreshold, ThresholdOutcome};
pub use scope::{Scope, ScopeIndex};
use statistic::Statistic;

/// A condition under which the run fails.
#[derive(Clone, PartialEq, Debug)]
pub struct Threshold {
    /// The condition as given.
    text: String,
    metric: Metric,
    /// Journey or step; `None` for all requests.
    scope: Option<Scope>,
    op: Op,
    /// In nanoseconds, as a share (0 to 1) or as a number, depending on the metric and its unit.
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

/// Syntax error in a condition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConditionError {
    /// Column, from 1, in characters.
    pub column: usize,
    /// Description of the error.
    pub message: String,
}

impl fmt::Display for ConditionError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "column {}: {}", self.column, self.message)
    }
}

impl std::error::Error for ConditionError {}

impl Threshold {
    /// Parses a condition.
    ///
    /// # Errors
    /// The error and its column.
    pub fn parse(text: &str) -> Result<Threshold, ConditionError> {
        let is_op = |letter: char| matches!(letter, '<' | '>' | '=' | '!');
        // A name in braces may contain any character.
        let braces = text
            .find('{')
            .zip(text.find('}'))
            .filter(|(from, to)| from < to);
        let scanned = braces.map_or(0, |(_, to)| to);
        let Some(at) = text[scanned..].find(is_op).map(|at| scanned + at) else {
            let end = text.trim_end().chars().count() + 1;
            return Err(mistake(
                end,
                "a condition needs a metric, then >, >=, <, <= or =, then a value, such as p99 > 5ms",
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
                format!("{found} is not a comparison: use >, >=, <, <= or ="),
            )
        })?;
        let name_at = text.len() - text.trim_start().len();
        let name = text[..at].trim();
        let (name, scope) =
            split_scope(name).map_err(|message| mistake(column(text, name_at), message))?;
        let rest = &text[at + length..];
        let value_at = at + length + (rest.len() - rest.trim_start().len());
        let value = rest.trim();
        let mut metric =
            Metric::parse(name).map_err(|message| mistake(column(text, name_at), message))?;
        if let Some(scope) = &scope {
            metric.can_be_of_journeys().map_err(|why| {
                mistake(
                    column(text, name_at),
                    format!("{scope} has no {name}: {why}"),
                )
            })?;
        }
        if op == Op::Equal && !matches!(metric, Metric::Counted(..)) {
            return Err(mistake(
                column(text, at),
                format!("{name} hardly ever equals an exact value: use <= or >="),
            ));
        }
        let value = metric
            .read_value(value)
            .map_err(|message| mistake(column(text, value_at), message))?;
        Ok(Threshold {
            text: text.trim().to_owned(),
            metric,
            scope,
            op,
            value,
        })
    }

    /// Journey or step of the condition; `None` for all requests.
    pub fn scope(&self) -> Option<&Scope> {
        self.scope.as_ref()
    }

    /// Whether the metric counts checks, which only steps of journeys have.
    pub fn is_about_checks(&self) -> bool {
        matches!(self.metric, Metric::Counted(CountMetric::FailedChecks, _))
    }

    /// The probable intention of the user, if the condition fails runs with low latencies.
    pub fn hint(&self) -> Option<String> {
        let meant = match self.op {
            Op::Below => ">=",
            Op::AtMost => ">",
            Op::Above | Op::AtLeast | Op::Equal => return None,
        };
        let written = if self.op == Op::Below { "<" } else { "<=" };
        let is_more_worse = !matches!(self.metric, Metric::Rate);
        is_more_worse.then(|| {
            format!(
                "{:?} fails the run when the condition holds: to fail runs that exceed the bound, write {:?}",
                self.text,
                self.text.replacen(written, meant, 1)
            )
        })
    }

    /// The condition as given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the condition limits the errors of the whole run.
    pub fn is_about_errors(&self) -> bool {
        let is_counted = matches!(
            self.metric,
            Metric::Counted(CountMetric::Errors | CountMetric::Timeouts, _)
        );
        is_counted && self.scope.is_none()
    }

    /// Whether the metric counts lost datagrams, which only runs of test packets have.
    pub fn is_about_loss(&self) -> bool {
        matches!(self.metric, Metric::Counted(CountMetric::Loss, _))
    }

    /// Whether the metric needs to know which datagrams arrived; unknown if the peer neither returns nor reports them.
    pub fn needs_receipt_counts(&self) -> bool {
        match self.metric {
            Metric::Rate => true,
            Metric::Counted(counted, _) => counted != CountMetric::Missed,
            // Without received datagrams no times are recorded, so the condition is undecided, which is not a pass.
            Metric::Time(..) => false,
        }
    }

    /// Whether the figure is known during a run.
    ///
    /// # Errors
    /// The figure to use instead.
    pub fn check_known_during_run(&self) -> Result<(), String> {
        if let Some(scope) = &self.scope {
            return Err(format!(
                "metrics of {scope} are known only at the end of a run: leave it out"
            ));
        }
        match self.metric {
            Metric::Counted(CountMetric::Status(status), _) => Err(format!(
                "single statuses are known only at the end of a run: use their class, status.{}xx",
                status / 100
            )),
            Metric::Counted(CountMetric::Code(code), _) => Err(format!(
                "single codes are known only at the end of a run: use the class of their status, status.{}xx",
                code::class(code)
            )),
            Metric::Counted(CountMetric::FailedChecks, _) => {
                Err("failed checks are known only at the end of a run".to_owned())
            }
            Metric::Counted(CountMetric::Loss, _) => {
                Err("losses are known only at the end of a run".to_owned())
            }
            Metric::Counted(CountMetric::Timeouts | CountMetric::Missed, _) => Err(
                "timeouts and missed requests are known only at the end of a run: use errors, or a percentile"
                    .to_owned(),
            ),
            Metric::Counted(CountMetric::Errors | CountMetric::Resent | CountMetric::Class(_), _)
            | Metric::Time(..)
            | Metric::Rate => Ok(()),
        }
    }

    pub(crate) fn undecided(&self, reason: String) -> JudgedThreshold {
        self.outcome(ThresholdOutcome::Undecided, reason)
    }

    fn outcome(&self, fate: ThresholdOutcome, measured: String) -> JudgedThreshold {
        JudgedThreshold {
            condition: self.text.clone(),
            fate,
            measured,
        }
    }

    /// Judges the condition at the end of a run; `figures` must be of its scope.
    pub fn judge(&self, figures: &Figures) -> JudgedThreshold {
        let outcome = |fate, measured| self.outcome(fate, measured);
        let Bounds { low, high } = match self.measured(figures) {
            Err(reason) => return outcome(ThresholdOutcome::Undecided, reason),
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
            (true, true) => outcome(ThresholdOutcome::Failed, measured),
            (false, false) => outcome(ThresholdOutcome::Passed, measured),
            _ => outcome(
                ThresholdOutcome::Undecided,
                format!("{measured}: a lower bound, because some requests had no response"),
            ),
        }
    }

    /// Whether `figures` contain the figure, with enough values.
    pub(crate) fn is_measured(&self, figures: &Figures) -> bool {
        self.measured(figures).is_ok()
    }

    /// Whether the run will fail regardless of the rest of it.
    pub fn must_fail(&self, so_far: &Figures, extent: RunExtent) -> bool {
        if !matches!(self.op, Op::Above | Op::AtLeast) || self.scope.is_some() {
            return false;
        }
        match self.metric {
            // A maximum and a plain count only grow.
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
                // A request in flight may yet fail in another way, and is then not part of the times.
                let times = so_far.times.of(kind);
                let above = times.count() - times.count_up_to(self.value as u64);
                // Connections and handshakes are fewer than requests, by an unknown number.
                let is_per_request = !matches!(kind, Kind::Connect | Kind::Tls);
                let total = extent.requests_at_most(so_far).filter(|_| is_per_request);
                total.is_some_and(|total| above as f64 > total * (1.0 - percentile / 100.0))
            }
            Metric::Time(_, Statistic::Mean | Statistic::Min) | Metric::Rate => false,
        }
    }

    /// Returns the bounds of the figure, which are equal if every request got a response.
    fn measured(&self, figures: &Figures) -> Result<Bounds, String> {
        let exact = match self.metric {
            Metric::Time(kind, statistic) => {
                let waits = figures.unanswered.of(kind);
                return statistic.of(figures.times.of(kind), waits, kind);
            }
            Metric::Rate => figures.rps,
            Metric::Counted(counted, Unit::Number) => counted.of(figures) as f64,
            Metric::Counted(counted, Unit::Share) => match counted.base(figures) {
                0 => {
                    return Err(format!(
                        "there were no {} to compute a share of",
                        counted.of_what()
                    ));
                }
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

/// Formats a share with three significant digits, so that 0.0004 % is not shown as 0.
fn significant(percent: f64) -> String {
    match percent {
        0.0 => "0".to_owned(),
        ..0.001 => format!("{percent:.1e}"),
        ..1.0 => format!("{percent:.4}"),
        _ => format!("{percent:.2}"),
    }
}

/// Splits a metric from the scope in braces after it.
fn split_scope(name: &str) -> Result<(&str, Option<Scope>), String> {
    let Some((metric, rest)) = name.split_once('{') else {
        return Ok((name, None));
    };
    let inside = rest
        .strip_suffix('}')
        .ok_or_else(|| format!("{name}: the brace is not closed before the comparison"))?;
    Ok((metric.trim_end(), Some(Scope::parse(inside)?)))
}

fn mistake(column: usize, message: impl Into<String>) -> ConditionError {
    ConditionError {
        column,
        message: message.into(),
    }
}

/// Column of a byte offset, from 1.
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

#[cfg(test)]
mod tests;
