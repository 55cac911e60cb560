//! How sure the percentiles of a run are: the blocks of time that it is cut into, and how many independent responses would be
//! as sure as its own. Pure.

use onrush_measure::blocks::{self, Effective};
use onrush_measure::histogram::Histogram;
use onrush_measure::units;
use serde::{Deserialize, Serialize};

use crate::history::{History, Interval};
use crate::report::latency::{CONFIDENCE, Latency};

/// The times of each block of a run.
pub(crate) struct Blocks {
    pub(crate) response: Vec<Histogram>,
    pub(crate) service: Vec<Histogram>,
}

impl Blocks {
    /// Of the seconds that were kept: one a block, or several that are joined.
    pub(crate) fn of(history: &History) -> Blocks {
        let seconds: Vec<Interval> = history
            .intervals()
            .filter(|second| second.response.count() > 0)
            .collect();
        let join = |pick: fn(&Interval) -> &Histogram| {
            blocks::join(&seconds)
                .map(|block| {
                    let mut sum = Histogram::new();
                    block.iter().for_each(|second| sum.merge(pick(second)));
                    sum
                })
                .collect()
        };
        Blocks {
            response: join(|second| &second.response),
            service: join(|second| &second.service),
        }
    }
}

/// How many independent responses would be as sure of a percentile.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct EffectiveRow {
    /// So many.
    pub count: f64,
    /// Degrees of freedom of that estimate: blocks of time, less one.
    pub degrees: u32,
}

impl From<Effective> for EffectiveRow {
    fn from(effective: Effective) -> EffectiveRow {
        EffectiveRow {
            count: effective.count,
            degrees: effective.degrees,
        }
    }
}

impl From<EffectiveRow> for Effective {
    fn from(row: EffectiveRow) -> Effective {
        Effective {
            count: row.count,
            degrees: row.degrees,
        }
    }
}

impl Latency {
    /// These figures of a histogram in nanoseconds with the intervals that its `blocks` give, whose sum it is.
    pub(crate) fn by_blocks(self, latency: &Histogram, blocks: &[Histogram]) -> Latency {
        self.by_effective(latency, |percentile| latency.effective(percentile, blocks))
    }

    /// These figures of a histogram that is the sum of those of `parts`, as sure as the least sure of them. They asked one
    /// target at one time, so what one waited for the others may have waited for, too.
    pub(crate) fn by_parts<'p>(
        self,
        latency: &Histogram,
        parts: impl Iterator<Item = &'p Latency> + Clone,
    ) -> Latency {
        self.by_effective(latency, |percentile| {
            let name = units::percentile(percentile);
            let all: Option<Vec<Effective>> =
                parts.clone().map(|part| part.effective(&name)).collect();
            all?.into_iter().min_by(|a, b| a.count.total_cmp(&b.count))
        })
    }

    fn by_effective(
        mut self,
        latency: &Histogram,
        effective_at: impl Fn(f64) -> Option<Effective>,
    ) -> Latency {
        let mut intervals = Vec::new();
        for (percentile, _) in latency.percentiles() {
            let name = units::percentile(percentile);
            // What requests without a response could change has no interval.
            if self.is_at_least(&name) {
                continue;
            }
            let effective = effective_at(percentile);
            let interval = match effective {
                Some(effective) => latency
                    .interval_by_blocks(percentile, CONFIDENCE, effective)
                    .map(|(low, high)| [low, high].map(units::microseconds)),
                None => self.interval(&name),
            };
            intervals.extend(interval.map(|interval| (name.clone(), interval)));
            self.effective
                .extend(effective.map(|effective| (name, effective.into())));
        }
        self.intervals = intervals;
        self
    }

    /// How many independent responses would be as sure of `percentile`, such as `99.9`, if that is known.
    pub(crate) fn effective(&self, percentile: &str) -> Option<Effective> {
        let mut all = self.effective.iter();
        let found = all.find(|(of, _)| of == percentile);
        found.map(|(_, row)| (*row).into())
    }
}
