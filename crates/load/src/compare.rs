//! Compares two results: the change of each percentile, and whether it exceeds chance. Pure.
//!
//! The requests of one run are not independent. Each percentile of each run therefore has an interval from the blocks
//! of time of the run ([`onrush_measure::blocks`]). The interval of the change follows from the intervals of both
//! sides, on a logarithmic scale (method of variance estimates recovery: Zou & Donner, Statistics in Medicine 27,
//! 2008). All intervals of a comparison hold together with 95 % confidence (Bonferroni), so that equal runs differ in
//! one comparison of twenty, not in one figure of twenty. One run of each side cannot show the variation between runs,
//! so a change below [`SHIFT_SHARE_MIN`] is never reported as a difference.

mod text;

use onrush_measure::blocks::{self, student_quantile};
use onrush_measure::histogram::Histogram;
use onrush_measure::{percentile, units};
use serde::Serialize;

use crate::limits::SHIFT_SHARE_MIN;
use crate::merge::part::Part;
use crate::record::figures::Kind;
use crate::record::incomplete_waits::{Censored, IncompleteWaits};
use crate::record::provenance;
use crate::report::Report;
use crate::report::exact_times::times_of;
use crate::report::histograms::Histograms;
use crate::report::latency::Latency;
use crate::report::rows::SecondRow;
use crate::verdict::reason::State;

/// Confidence that all intervals of a comparison hold.
const CONFIDENCE: f64 = 0.95;

/// Comparison of two results.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// Name of the first result.
    pub a: String,
    /// Name of the second result.
    pub b: String,
    /// Response times by percentile, if both counts support it.
    pub response_us: Vec<FigureChange>,
    /// Service times by percentile.
    pub service_us: Vec<FigureChange>,
    /// Requests per second, from the means of blocks of seconds; `None` if either run is too short.
    pub rps: Option<FigureChange>,
    /// Reasons to doubt the comparison.
    pub cautions: Vec<String>,
}

/// Change of one figure.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FigureChange {
    /// Name of the figure, such as `99.9`.
    pub of: String,
    /// Value in the first run.
    pub a: f64,
    /// Value in the second run.
    pub b: f64,
    /// `b / a - 1`.
    pub change: f64,
    /// Lower bound of the true change.
    pub low: f64,
    /// Upper bound of the true change; the bounds of all figures hold together with 95 % confidence.
    pub high: f64,
    /// Conclusion.
    pub finding: Conclusion,
}

/// Conclusion about a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Conclusion {
    /// The second is lower.
    Lower,
    /// The second is higher.
    Higher,
    /// No difference beyond chance, or beyond the usual variation between runs.
    Same,
}

/// A figure of one run with its interval.
#[derive(Clone, Copy, Debug)]
struct Figure {
    value: f64,
    low: f64,
    high: f64,
}

impl FigureChange {
    /// Computes the change of a figure; `None` if either lower bound is zero.
    fn of(of: &str, a: Figure, b: Figure) -> Option<FigureChange> {
        if [a.low, b.low].into_iter().any(|low| low <= 0.0) {
            return None;
        }
        let apart = |above: f64, below: f64| (above / below).ln();
        let centre = apart(b.value, a.value);
        let down = apart(b.value, b.low).hypot(apart(a.high, a.value));
        let up = apart(b.high, b.value).hypot(apart(a.value, a.low));
        let (low, high) = ((centre - down).exp_m1(), (centre + up).exp_m1());
        let change = centre.exp_m1();
        let finding = match change.abs() >= SHIFT_SHARE_MIN {
            true if low > 0.0 => Conclusion::Higher,
            true if high < 0.0 => Conclusion::Lower,
            _ => Conclusion::Same,
        };
        Some(FigureChange {
            of: of.to_owned(),
            a: a.value,
            b: b.value,
            change,
            low,
            high,
            finding,
        })
    }
}

/// Compares `b` with `a`.
///
/// # Errors
/// When one of them has no histograms.
pub fn compare(a: &Part, b: &Part) -> Result<Comparison, String> {
    let times = |part: &Part| {
        times_of(&part.report)
            .map_err(|reason| format!("{} cannot be compared: {reason}", part.name))
    };
    let waits = |part: &Part| {
        let histograms = part.report.histograms.as_ref();
        let waits = histograms.map_or(Ok(IncompleteWaits::default()), Histograms::unanswered);
        waits.map_err(|reason| format!("{} cannot be compared: {reason}", part.name))
    };
    let (a_times, b_times) = (times(a)?, times(b)?);
    let (a_waits, b_waits) = (waits(a)?, waits(b)?);
    let latency = |part: &Part, kind| match kind {
        Kind::Service => part.report.service_us.clone(),
        _ => part.report.latency_us.clone(),
    };
    let sides = |kind| {
        [(a, &a_times, &a_waits), (b, &b_times, &b_waits)].map(|(part, times, waits)| Side {
            times: times.of(kind).clone(),
            waits: waits.of(kind).cloned().unwrap_or_default(),
            latency: latency(part, kind),
        })
    };
    let (response, service) = (sides(Kind::Response), sides(Kind::Service));
    // One more for the rate.
    let figures = 1 + named(&response).count() + named(&service).count();
    let confidence = 1.0 - (1.0 - CONFIDENCE) / figures as f64;
    Ok(Comparison {
        a: a.name.clone(),
        b: b.name.clone(),
        response_us: shifts(&response, confidence),
        service_us: shifts(&service, confidence),
        rps: rps(&a.report.seconds, &b.report.seconds, confidence),
        cautions: cautions(a, b),
    })
}

/// Times of one kind of one run.
struct Side {
    times: Histogram,
    waits: Histogram,
    latency: Latency,
}

impl Side {
    fn censored(&self) -> Censored<'_> {
        Censored::new(&self.times, &self.waits)
    }

    /// Returns `None` if requests without a response leave the value or its interval unbounded.
    fn figure(&self, percentile: f64, confidence: f64) -> Option<Figure> {
        let effective = self.latency.effective(&units::percentile(percentile))?;
        let censored = self.censored();
        let interval = censored.interval(percentile, confidence, Some(effective))?;
        let value = censored.at(percentile);
        let is_known = value.is_known() && interval.high.is_finite();
        let us = |ns: f64| units::microseconds(ns as u64);
        is_known.then(|| Figure {
            value: us(value.low),
            low: us(interval.low),
            high: us(interval.high),
        })
    }
}

/// Percentiles that both counts support.
fn named([a, b]: &[Side; 2]) -> impl Iterator<Item = f64> {
    percentile::supported(a.censored().count().min(b.censored().count()))
}

fn shifts(sides: &[Side; 2], confidence: f64) -> Vec<FigureChange> {
    named(sides)
        .filter_map(|percentile| {
            let [a, b] = sides
                .each_ref()
                .map(|side| side.figure(percentile, confidence));
            FigureChange::of(&units::percentile(percentile), a?, b?)
        })
        .collect()
}

/// Compares the rates, from the means of blocks of whole seconds, without the first and the last.
fn rps(a: &[SecondRow], b: &[SecondRow], confidence: f64) -> Option<FigureChange> {
    let figure = |rows: &[SecondRow]| {
        let whole = rows.get(1..rows.len().checked_sub(1)?)?;
        let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
        let means: Vec<f64> = blocks::join(whole)
            .map(|block| mean(&block.iter().map(|row| row.rps).collect::<Vec<f64>>()))
            .collect();
        if means.len() < blocks::BLOCKS_MIN {
            return None;
        }
        let value = mean(&means);
        let (count, degrees) = (means.len() as f64, means.len() as u32 - 1);
        let squares: f64 = means.iter().map(|it| (it - value).powi(2)).sum();
        let error = (squares / (count - 1.0) / count).sqrt();
        let reach = student_quantile(0.5 + confidence / 2.0, degrees) * error;
        Some(Figure {
            value,
            low: value - reach,
            high: value + reach,
        })
    };
    FigureChange::of("rps", figure(a)?, figure(b)?)
}

fn cautions(a: &Part, b: &Part) -> Vec<String> {
    let mut cautions = Vec::new();
    for part in [a, b] {
        let latency = &part.report.latency_us;
        if latency.effective.is_empty() && !latency.percentiles.is_empty() {
            cautions.push(format!(
                "{} has no variation between seconds: it was shorter than {} seconds, or an older onrush wrote it; no \
                 difference can be detected",
                part.name,
                blocks::BLOCKS_MIN
            ));
        }
        let verdict = &part.report.verdict;
        if verdict.state != State::Valid {
            let reasons: Vec<&str> = verdict
                .reasons
                .iter()
                .map(|reason| &reason.what[..])
                .collect();
            cautions.push(format!(
                "{} is {}: {}",
                part.name,
                verdict.state,
                reasons.join("; ")
            ));
        }
        let tried = part.report.requests + part.report.errors;
        if part.report.errors > 0 {
            cautions.push(format!(
                "{} had {} in {}",
                part.name,
                units::plural(part.report.errors, "error"),
                units::plural(tried, "request")
            ));
        }
        let open: Vec<&str> = part
            .report
            .latency_us
            .at_least
            .iter()
            .map(String::as_str)
            .filter(|name| *name != "max")
            .collect();
        if !open.is_empty() {
            cautions.push(format!(
                "{} has only lower bounds of response times at {} %, because some requests had no response: these are \
                 not compared",
                part.name,
                open.join(", ")
            ));
        }
    }
    cautions.extend(differences(&a.report, &b.report));
    cautions
}

/// Differences of the options, which also affect the figures.
fn differences(a: &Report, b: &Report) -> Vec<String> {
    let rate = |report: &Report| match report.options.rate {
        Some(rate) => format!("{} per second", units::plural(rate, "request")),
        None => "a closed loop".to_owned(),
    };
    let pairs = [
        ("target", a.target.clone(), b.target.clone()),
        (
            "connections",
            a.options.connections.to_string(),
            b.options.connections.to_string(),
        ),
        (
            "threads",
            a.options.threads.to_string(),
            b.options.threads.to_string(),
        ),
        ("pace", rate(a), rate(b)),
        ("method", a.options.method.clone(), b.options.method.clone()),
        (
            "pipeline",
            a.options.pipeline.to_string(),
            b.options.pipeline.to_string(),
        ),
        (
            "streams",
            a.options.streams_text(),
            b.options.streams_text(),
        ),
        ("driver", a.options.io.clone(), b.options.io.clone()),
    ];
    pairs
        .into_iter()
        .filter(|(_, one, other)| one != other)
        .map(|(what, one, other)| format!("the options differ: {what} {one} and {other}"))
        .collect()
}

impl Comparison {
    /// Whether no figure differs.
    pub fn is_same(&self) -> bool {
        let shifts = self
            .response_us
            .iter()
            .chain(&self.service_us)
            .chain(&self.rps);
        shifts
            .into_iter()
            .all(|shift| shift.finding == Conclusion::Same)
    }

    /// Returns the comparison as JSON.
    pub fn to_json(&self) -> String {
        provenance::to_json(self)
    }
}

#[cfg(test)]
mod tests;
