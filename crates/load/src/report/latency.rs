//! Figures of one kind of time.

use onrush_measure::histogram::Histogram;
use onrush_measure::{percentile, units};
use serde::{Deserialize, Serialize};

use super::rounding::rounded;
use crate::limits::ordered;
use crate::record::incomplete_waits::{Bounds, Censored};
use crate::report::confidence_interval::EffectiveRow;

/// Confidence of the intervals of percentiles.
pub const CONFIDENCE: f64 = 0.95;

/// Latencies in microseconds; empty without responses.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Latency {
    /// Exact mean.
    pub mean: Option<f64>,
    /// Exact maximum.
    pub max: Option<f64>,
    /// Names of figures (percentiles, `max`) that are lower bounds, because requests without a response may be slower.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_least: Vec<String>,
    /// Values by percentile (`"99.9"`) of all requests, if the count of requests supports the percentile.
    #[serde(with = "ordered")]
    pub percentiles: Vec<(String, f64)>,
    /// For the same percentiles, the interval that contains the true latency with a probability of [`CONFIDENCE`],
    /// computed from blocks of time if `effective` has the percentile, otherwise as if the requests were independent.
    #[serde(with = "ordered", default)]
    pub intervals: Vec<(String, Interval)>,
    /// For the same percentiles, the number of independent responses with the same confidence interval; see
    /// [`onrush_measure::blocks`]. Empty for runs that were too short to estimate it.
    #[serde(with = "ordered", default, skip_serializing_if = "Vec::is_empty")]
    pub effective: Vec<(String, EffectiveRow)>,
}

/// Interval that contains the true latency, in microseconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Interval(
    /// Lower bound.
    pub f64,
    /// Upper bound; `None` if there is none because of requests without a response.
    pub Option<f64>,
);

impl From<Bounds> for Interval {
    fn from(bounds: Bounds) -> Interval {
        let high = bounds.high.is_finite().then(|| microseconds(bounds.high));
        Interval(microseconds(bounds.low), high)
    }
}

impl Interval {
    /// Returns the interval as text; `time` formats microseconds.
    pub(crate) fn text(self, time: impl Fn(f64) -> String) -> String {
        match self {
            Interval(low, Some(high)) => format!("{} to {}", time(low), time(high)),
            Interval(low, None) => format!("≥ {}", time(low)),
        }
    }
}

fn microseconds(ns: f64) -> f64 {
    units::microseconds(ns as u64)
}

impl Latency {
    pub(crate) fn of(latency: &Histogram) -> Latency {
        Latency::bounded(latency, &Histogram::new())
    }

    /// Returns the figures of all requests: responses, and requests without a response with their `waits`. [`Censored`]
    /// gives percentiles and intervals; the mean is that of the responses.
    pub(crate) fn bounded(latency: &Histogram, waits: &Histogram) -> Latency {
        if latency.count() == 0 {
            return Latency::default();
        }
        let censored = Censored::new(latency, waits);
        let mut figures = Latency {
            mean: Some(rounded(latency.mean() / 1000.0)),
            max: Some(units::microseconds(latency.max())),
            ..Latency::default()
        };
        for percentile in percentile::supported(censored.count()) {
            let name = units::percentile(percentile);
            let bounds = censored.at(percentile);
            if let Some(interval) = censored.interval(percentile, CONFIDENCE, None) {
                figures.intervals.push((name.clone(), interval.into()));
            }
            if !bounds.is_known() {
                figures.at_least.push(name.clone());
            }
            figures.percentiles.push((name, microseconds(bounds.low)));
        }
        if waits.count() > 0 {
            // A request without a response may take longer than all responses.
            figures.max = Some(units::microseconds(waits.max().max(latency.max())));
            figures.at_least.push("max".to_owned());
        }
        figures
    }

    /// Whether only a lower bound of a figure, a percentile or `max`, is known.
    pub fn is_at_least(&self, name: &str) -> bool {
        self.at_least.iter().any(|of| of == name)
    }

    /// Formats the figure `name`, with `≥` if it is a lower bound; `time` formats microseconds, `none` is for a missing
    /// figure.
    pub(crate) fn text(&self, name: &str, none: &str, time: impl Fn(f64) -> String) -> String {
        let figure = match name {
            "mean" => self.mean,
            "max" => self.max,
            _ => self.percentile(name),
        };
        match figure {
            None => none.to_owned(),
            Some(us) if self.is_at_least(name) => format!("≥ {}", time(us)),
            Some(us) => time(us),
        }
    }

    /// Latency at `percentile`, such as `99.9`, if the count supports it.
    pub fn percentile(&self, percentile: &str) -> Option<f64> {
        let mut all = self.percentiles.iter();
        let found = all.find(|(of, _)| of == percentile);
        found.map(|(_, us)| *us)
    }

    /// See [`intervals`](Self::intervals).
    pub fn interval(&self, percentile: &str) -> Option<Interval> {
        let mut intervals = self.intervals.iter();
        let found = intervals.find(|(of, _)| of == percentile);
        found.map(|(_, interval)| *interval)
    }
}
