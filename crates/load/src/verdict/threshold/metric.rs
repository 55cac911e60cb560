//! Metric of a condition: a time, a count or a rate.

use onrush_measure::amount;

use super::statistic::Statistic;
use crate::record::figures::{Figures, Kind};
use crate::requests::grpc::code;

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Metric {
    Time(Kind, Statistic),
    Counted(CountMetric, Unit),
    Rate,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CountMetric {
    Errors,
    /// Lost datagrams.
    Loss,
    Timeouts,
    Missed,
    Resent,
    FailedChecks,
    Status(u16),
    /// gRPC status code.
    Code(u16),
    /// First digit: `5` is 5xx.
    Class(u16),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unit {
    Share,
    Number,
}

const METRICS: &str = "p50 to p99.9999, mean, min or max, with service., send_lag., first_byte., connect. or tls. \
    before it for other times than the response time; errors, loss (of datagrams), timeouts, missed, resent, \
    failed_checks, rps, status.404, status.5xx or status.UNAVAILABLE";

impl Metric {
    pub(super) fn parse(name: &str) -> Result<Metric, String> {
        if name.is_empty() {
            return Err(format!("no metric before the comparison: use {METRICS}"));
        }
        let unknown = || format!("{name} is not a metric: use {METRICS}");
        let counted = |counted| Ok(Metric::Counted(counted, Unit::Number));
        match name {
            "rps" => return Ok(Metric::Rate),
            "errors" => return counted(CountMetric::Errors),
            "loss" => return counted(CountMetric::Loss),
            "timeouts" => return counted(CountMetric::Timeouts),
            "missed" => return counted(CountMetric::Missed),
            "failed_checks" => return counted(CountMetric::FailedChecks),
            "resent" => return counted(CountMetric::Resent),
            _ => {}
        }
        if let Some(status) = name.strip_prefix("status.") {
            return counted(CountMetric::status(status).ok_or_else(|| {
                format!("{status} is not a response status: use one from 200 to 999 such as 404, a class such as 5xx, \
                    or a gRPC code such as UNAVAILABLE")
            })?);
        }
        let (kind, statistic) = name.split_once('.').map_or((None, name), |(kind, rest)| {
            match kind_of(kind) {
                Some(kind) => (Some(kind), rest),
                // The point belongs to the percentile, as in p99.9.
                None => (None, name),
            }
        });
        let statistic = Statistic::parse(statistic).ok_or_else(unknown)??;
        Ok(Metric::Time(kind.unwrap_or(Kind::Response), statistic))
    }

    /// Whether journeys and steps have this metric.
    ///
    /// # Errors
    /// The metrics that they have.
    pub(super) fn can_be_of_journeys(self) -> Result<(), &'static str> {
        match self {
            Metric::Time(Kind::Response, _)
            | Metric::Rate
            | Metric::Counted(CountMetric::Errors | CountMetric::FailedChecks, _) => Ok(()),
            Metric::Time(..) => {
                Err("a journey or a step has only its response time, such as p99 or mean")
            }
            Metric::Counted(..) => Err("a journey or a step has errors, failed_checks and rps"),
        }
    }

    /// Parses the value in the unit of the metric. A count compared with a percentage becomes a share.
    pub(super) fn read_value(&mut self, text: &str) -> Result<f64, String> {
        let value = match self {
            Metric::Time(..) => amount::duration(text).map(|time| time.as_nanos() as f64),
            Metric::Rate => amount::per_second(text),
            Metric::Counted(CountMetric::Missed, _) if text.ends_with('%') => {
                return Err("missed is a count, such as 0 or 100".to_owned());
            }
            Metric::Counted(_, unit) if text.ends_with('%') => {
                *unit = Unit::Share;
                amount::percent(text).map(|percent| percent / 100.0)
            }
            Metric::Counted(..) => {
                let number = amount::number(text);
                return number.map_err(|why| format!("{why}, or a share such as 0.1%"));
            }
        };
        value.map_err(|why| why.to_string())
    }
}

fn kind_of(name: &str) -> Option<Kind> {
    match name {
        "ttfb" => Some(Kind::FirstByte),
        "latency" => Some(Kind::Response),
        _ => Kind::ALL.into_iter().find(|kind| kind.name() == name),
    }
}

impl CountMetric {
    fn status(text: &str) -> Option<CountMetric> {
        if let Some(code) = code::of_name(text) {
            return Some(CountMetric::Code(code));
        }
        let class = |digit: &str| digit.parse().ok().filter(|class| (2..=9).contains(class));
        if let Some(digit) = text.strip_suffix("xx") {
            return class(digit).map(CountMetric::Class);
        }
        let status = text.parse().ok()?;
        (200..1000)
            .contains(&status)
            .then_some(CountMetric::Status(status))
    }

    pub(super) fn of(self, figures: &Figures) -> u64 {
        let statuses = &figures.statuses;
        match self {
            // If no response was received at all, requests in flight count as errors, because none can be expected.
            CountMetric::Errors if figures.responses == 0 => figures.errors + figures.unfinished,
            CountMetric::Errors | CountMetric::Loss => figures.errors,
            CountMetric::Resent => figures.resent,
            CountMetric::FailedChecks => figures.checks.failed,
            CountMetric::Timeouts => figures.timeouts,
            CountMetric::Missed => figures.missed,
            CountMetric::Status(status) => {
                let of_http = statuses.get(&status.to_string());
                let of_none = statuses.get(&format!("HTTP {status}"));
                of_http.or(of_none).copied().unwrap_or(0)
            }
            CountMetric::Code(code) => {
                let count = code::name(code).and_then(|name| statuses.get(name));
                count.copied().unwrap_or(0)
            }
            // HTTP statuses belong to the class of their first digit, gRPC codes to that of the equivalent HTTP status.
            CountMetric::Class(class) => {
                let digit = class.to_string();
                let is_one = |name: &str| match code::of_name(name) {
                    Some(code) => u16::from(code::class(code)) == class,
                    None => name.starts_with(&digit),
                };
                let statuses = statuses.iter().filter(|(name, _)| is_one(name));
                statuses.map(|(_, count)| count).sum()
            }
        }
    }

    /// Denominator of the share: responses for statuses, checks for failed checks, attempted requests for the others.
    pub(super) fn base(self, figures: &Figures) -> u64 {
        match self {
            CountMetric::Status(_) | CountMetric::Code(_) | CountMetric::Class(_) => {
                figures.responses
            }
            CountMetric::Errors if figures.responses == 0 => figures.errors + figures.unfinished,
            CountMetric::FailedChecks => figures.checks.passed + figures.checks.failed,
            CountMetric::Errors
            | CountMetric::Loss
            | CountMetric::Timeouts
            | CountMetric::Missed
            | CountMetric::Resent => figures.responses + figures.errors - figures.unexpected,
        }
    }
}

impl CountMetric {
    /// Noun for the denominator of the share.
    pub(super) fn of_what(self) -> &'static str {
        match self {
            CountMetric::FailedChecks => "checks",
            _ => "requests",
        }
    }
}
