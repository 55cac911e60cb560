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
mod tests {
    use super::*;

    fn threshold(text: &str) -> Threshold {
        Threshold::parse(text).unwrap_or_else(|mistake| panic!("{text}: {mistake}"))
    }

    /// 10,000 answers of 1 us to 10 ms, evenly; 30 errors; 100 of the answers a 503.
    fn figures() -> Figures {
        let mut figures = Figures {
            answers: 10_000,
            errors: 30,
            timeouts: 5,
            statuses: [("200".to_owned(), 9_900), ("503".to_owned(), 100)].into(),
            rps: 5_000.0,
            ..Figures::default()
        };
        for value in 1..=10_000 {
            figures.times.of_mut(Kind::Response).record(value * 1000);
            figures.times.of_mut(Kind::Service).record(value * 500);
        }
        figures
    }

    #[test]
    fn conditions_hold_or_do_not() {
        use Fate::{Failed, Passed, Undecided};
        for (text, fate, measured) in [
            ("p99 > 5ms", Failed, "9.90 ms"),
            ("p99>9.92ms", Passed, "9.90 ms"),
            ("p99.9 > 1s", Passed, "9.99 ms"),
            (
                "p99.99 > 1s",
                Undecided,
                "this percentile needs 100,000 values and there were 10,000",
            ),
            ("service.p99 > 5ms", Passed, "4.95 ms"),
            ("response.mean < 1ms", Passed, "5.00 ms"),
            ("min <= 1us", Failed, "1 us"),
            ("latency.max >= 10ms", Failed, "10 ms"),
            (
                "connect.p50 > 1ms",
                Undecided,
                "there was nothing to measure a connect of",
            ),
            ("errors > 0.1%", Failed, "0.2991 %"),
            ("errors > 0.3 %", Passed, "0.2991 %"),
            ("errors > 30", Passed, "30"),
            ("errors >= 30", Failed, "30"),
            ("timeouts > 0", Failed, "5"),
            ("missed > 0", Passed, "0"),
            ("status.5xx > 1%", Passed, "1.00 %"),
            ("status.503 >= 100", Failed, "100"),
            ("status.404 > 0", Passed, "0"),
            ("rps < 5.1k", Failed, "5 k/s"),
            (" rps < 4000/s ", Passed, "5 k/s"),
        ] {
            let outcome = threshold(text).judge(&figures());
            assert_eq!(
                (outcome.fate, &outcome.measured[..]),
                (fate, measured),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_condition_is_refused_at_its_column() {
        for (text, column, part) in [
            ("", 1, "a condition compares"),
            ("p99", 4, "a condition compares"),
            ("p99 => 5ms", 5, "=> is no comparison"),
            ("p99 == 5ms", 5, "== is no comparison"),
            ("> 5ms", 1, "no metric before"),
            ("  q99 > 5ms", 3, "q99 is no metric"),
            ("wait.p99 > 5ms", 1, "wait.p99 is no metric"),
            ("p100 > 5ms", 1, "between p0 and p100"),
            ("p99 > 5", 7, "5 is no time"),
            ("p99 > ", 7, "nothing is no time"),
            ("p99 > 5m", 7, "5m is no time"),
            ("p99 > 5ks", 7, "5ks is no time"),
            ("errors > 5ms", 10, "5ms is no number"),
            ("errors > -1", 10, "-1 is no number"),
            ("errors > nan", 10, "nan is no number"),
            ("missed > 1%", 10, "missed is a count"),
            (
                "status.99 > 1",
                1,
                "99 is no status of an answer: use one from 200 to 999",
            ),
            ("status.1xx > 1", 1, "1xx is no status of an answer"),
            ("status.1000 > 1", 1, "1000 is no status of an answer"),
            ("status.0xx > 1", 1, "0xx is no status"),
        ] {
            let mistake = Threshold::parse(text).expect_err(text);
            assert_eq!(mistake.column, column, "{text}: {mistake}");
            assert!(mistake.message.contains(part), "{text}: {mistake}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_condition_or_a_mistake_within_it(
            text in "[p0-9.a-z_ ]{0,12}[<>=!]{0,3}[ 0-9.kmsu%/µ]{0,8}|.{0,20}"
        ) {
            match Threshold::parse(&text) {
                Ok(threshold) => {
                    let again = Threshold::parse(threshold.text());
                    proptest::prop_assert_eq!(again, Ok(threshold));
                }
                Err(mistake) => {
                    let columns = 1..=text.chars().count() + 1;
                    proptest::prop_assert!(columns.contains(&mistake.column), "{}", mistake);
                }
            }
        }
    }

    #[test]
    fn only_errors_and_timeouts_are_errors() {
        for (text, is_it) in [
            ("errors > 1%", true),
            ("timeouts > 3", true),
            ("status.5xx > 1%", false),
            ("p99 > 1ms", false),
        ] {
            assert_eq!(threshold(text).is_about_errors(), is_it, "{text}");
        }
    }

    #[test]
    fn a_share_of_nothing_is_undecided() {
        let outcome = threshold("errors > 1%").judge(&Figures::default());
        assert_eq!(outcome.fate, Fate::Undecided);
        let outcome = threshold("errors > 1").judge(&Figures::default());
        assert_eq!(outcome.fate, Fate::Passed);
    }

    #[test]
    fn what_was_never_answered_bounds_what_it_could_change() {
        use Fate::{Failed, Passed, Undecided};
        // 23 % had waited for 60 ms when the run ended.
        let mut figures = figures();
        figures.unanswered.record(60_000_000, 60_000_000, 3_000);
        for (text, fate) in [
            ("p50 > 8ms", Passed),
            ("p99 > 50ms", Failed),
            ("p99 > 70ms", Undecided),
            ("service.p99 > 50ms", Failed),
            ("max > 50ms", Failed),
            ("mean > 500ms", Undecided),
            ("min > 1ms", Passed),
            ("send_lag.p50 > 1s", Undecided),
        ] {
            let outcome = threshold(text).judge(&figures);
            assert_eq!(outcome.fate, fate, "{outcome}");
        }
        let nothing = Figures {
            unfinished: 4,
            ..Figures::default()
        };
        for text in ["errors > 0", "errors > 1%"] {
            assert_eq!(threshold(text).judge(&nothing).fate, Failed, "{text}");
        }
    }

    #[test]
    fn requests_sent_again_are_a_count_and_a_share() {
        let mut figures = figures();
        figures.resent = 20;
        for (text, fate) in [
            ("resent > 0.1%", Fate::Failed),
            ("resent > 1%", Fate::Passed),
            ("resent >= 20", Fate::Failed),
        ] {
            assert_eq!(threshold(text).judge(&figures).fate, fate, "{text}");
        }
    }

    #[test]
    fn a_run_is_hopeless_when_the_rest_cannot_make_up_for_it() {
        // 5,000 of 10,000 answers took longer than 5 ms.
        for (text, requests, hopeless) in [
            ("p99 > 5ms", 100_000, true),
            ("p99 > 5ms", 499_000, true),
            ("p99 > 5ms", 501_000, false),
            ("p99 > 20ms", 10_000, false),
            ("errors > 0.1%", 29_000, true),
            ("errors > 0.1%", 31_000, false),
            ("errors > 29", u64::MAX, true),
            ("max > 9ms", u64::MAX, true),
            ("p99 < 5ms", 10_000, false),
            ("mean > 1us", 10_000, false),
            ("rps < 1m", 10_000, false),
        ] {
            let extent = Extent::Requests(requests);
            let found = threshold(text).is_hopeless(&figures(), extent);
            assert_eq!(found, hopeless, "{text} of {requests}");
        }
    }

    #[test]
    fn a_run_of_a_set_time_is_hopeless_only_if_twice_the_rate_would_not_help() {
        let after = |elapsed_s, total_s| Extent::Time { elapsed_s, total_s };
        let errors = threshold("errors > 0.1%");
        // 30 errors are 0.1 % of 30,000: 10,030 and twice 10,030 in as long again.
        assert!(!errors.is_hopeless(&figures(), after(1.0, 2.0)));
        assert!(errors.is_hopeless(&figures(), after(1.0, 1.9)));
        assert!(!errors.is_hopeless(&figures(), Extent::Open));
        let few = Figures {
            errors: 1,
            ..Figures::default()
        };
        assert!(
            !errors.is_hopeless(&few, after(1.0, 2.0)),
            "one is an accident"
        );
    }
}
