//! The figures of one kind of times.

use onrush_measure::histogram::Histogram;
use onrush_measure::{percentile, units};
use serde::{Deserialize, Serialize};

use super::number::rounded;
use crate::certainty::EffectiveRow;
use crate::ordered;
use crate::unanswered::bounds;

/// How surely the intervals of percentiles hold the true ones.
pub const CONFIDENCE: f64 = 0.95;

/// Latencies in microseconds; none without responses.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Latency {
    /// The mean, exact.
    pub mean: Option<f64>,
    /// The largest, exact.
    pub max: Option<f64>,
    /// Which of these figures are only known to be at least so much, by the names of percentiles and `max`: there are
    /// requests without a response, and theirs may be larger.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_least: Vec<String>,
    /// By percentile (`"99.9"`), as far as the count of responses supports them.
    #[serde(with = "ordered")]
    pub percentiles: Vec<(String, f64)>,
    /// For the same percentiles, between which two latencies the true one lies with a probability of
    /// [`CONFIDENCE`]: by the blocks of time behind `effective` where that has the percentile, else as if the responses were
    /// independent of each other.
    #[serde(with = "ordered", default)]
    pub intervals: Vec<(String, [f64; 2])>,
    /// For the same percentiles, how many independent responses would be as sure of it; see
    /// [`onrush_measure::blocks`]. Empty for runs that were too short to say.
    #[serde(with = "ordered", default, skip_serializing_if = "Vec::is_empty")]
    pub effective: Vec<(String, EffectiveRow)>,
}

impl Latency {
    /// The figures of a histogram in nanoseconds.
    pub(crate) fn of(latency: &Histogram) -> Latency {
        let known = latency.count() > 0;
        Latency {
            at_least: Vec::new(),
            mean: known.then(|| rounded(latency.mean() / 1000.0)),
            max: known.then(|| units::microseconds(latency.max())),
            percentiles: latency
                .percentiles()
                .map(|(percentile, ns)| (units::percentile(percentile), units::microseconds(ns)))
                .collect(),
            intervals: percentile::supported(latency.count())
                .filter_map(|percentile| {
                    let (low, high) = latency.interval(percentile, CONFIDENCE)?;
                    let bounds = [low, high].map(units::microseconds);
                    Some((units::percentile(percentile), bounds))
                })
                .collect(),
            effective: Vec::new(),
        }
    }

    /// The same where requests without a response had waited for `waits`: a percentile that they could change is the least
    /// it can be, and has no interval.
    pub(crate) fn bounded(latency: &Histogram, waits: &Histogram) -> Latency {
        let mut figures = Latency::of(latency);
        if waits.count() == 0 || latency.count() == 0 {
            return figures;
        }
        let listed: Vec<f64> = latency
            .percentiles()
            .map(|(percentile, _)| percentile)
            .collect();
        for (place, percentile) in listed.into_iter().enumerate() {
            let bounds = bounds(latency, waits, percentile);
            if bounds.is_known() {
                continue;
            }
            let (name, us) = &mut figures.percentiles[place];
            *us = bounds.low / 1000.0;
            figures.intervals.retain(|(of, _)| of != name);
            figures.at_least.push(name.clone());
        }
        // Each of them may take longer than all responses did, whatever it had waited so far.
        figures.max = Some(units::microseconds(waits.max().max(latency.max())));
        figures.at_least.push("max".to_owned());
        figures
    }

    /// Whether a figure, a percentile or `max`, is only known to be at least so much.
    pub fn is_at_least(&self, name: &str) -> bool {
        self.at_least.iter().any(|of| of == name)
    }

    /// The latency at `percentile`, such as `99.9`, where the count supports it.
    pub fn percentile(&self, percentile: &str) -> Option<f64> {
        let mut all = self.percentiles.iter();
        let found = all.find(|(of, _)| of == percentile);
        found.map(|(_, us)| *us)
    }

    /// See [`intervals`](Self::intervals).
    pub fn interval(&self, percentile: &str) -> Option<[f64; 2]> {
        let mut intervals = self.intervals.iter();
        let found = intervals.find(|(of, _)| of == percentile);
        found.map(|(_, interval)| *interval)
    }
}
