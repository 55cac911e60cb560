//! Confidence intervals of percentiles, computed from the variation between blocks of time. No I/O.

use onrush_measure::blocks::{self, Block, EffectiveSampleSize};
use onrush_measure::histogram::Histogram;
use onrush_measure::{percentile, units};
use serde::{Deserialize, Serialize};

use crate::record::history::{History, Interval};
use crate::record::incomplete_waits::Censored;
use crate::record::rows::Row;
use crate::report::latency::{CONFIDENCE, Latency};

/// Requests of a run by block of time.
pub(crate) struct Blocks {
    pub(crate) response: Vec<BlockTimes>,
    pub(crate) service: Vec<BlockTimes>,
}

/// Requests that ended in one block.
#[derive(Default)]
pub(crate) struct BlockTimes {
    times: Histogram,
    /// Number of requests without a response.
    failed: u64,
}

impl BlockTimes {
    pub(crate) fn add(&mut self, times: &Histogram, failed: u64) {
        self.times.merge(times);
        self.failed += failed;
    }

    /// Number of requests that took at most `value`. A request without a response counts as slower than all others.
    fn up_to(&self, value: u64) -> Block {
        Block {
            below: self.times.count_up_to(value),
            count: self.times.count() + self.failed,
        }
    }
}

impl Blocks {
    /// Returns the blocks of a history: one per second, or several seconds joined.
    pub(crate) fn of(history: &History) -> Blocks {
        let seconds = history.intervals().zip(history.rows().map(Row::failed));
        // Skip the seconds before the first measured response.
        let seconds = seconds.skip_while(|(second, _)| second.response.count() == 0);
        let seconds: Vec<(Interval, u64)> = seconds
            .filter(|(second, failed)| second.response.count() + failed > 0)
            .collect();
        let join = |pick: fn(&Interval) -> &Histogram| {
            let blocks = blocks::join(&seconds).map(|block| {
                let mut sum = BlockTimes::default();
                for (second, failed) in block {
                    sum.add(pick(second), *failed);
                }
                sum
            });
            blocks.collect()
        };
        Blocks {
            response: join(|second| &second.response),
            service: join(|second| &second.service),
        }
    }
}

/// Number of independent responses that would give a percentile the same confidence interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct EffectiveRow {
    /// Number of responses.
    pub count: f64,
    /// Degrees of freedom of the estimate: blocks of time minus one.
    pub degrees: u32,
}

impl From<EffectiveSampleSize> for EffectiveRow {
    fn from(effective: EffectiveSampleSize) -> EffectiveRow {
        EffectiveRow {
            count: effective.count,
            degrees: effective.degrees,
        }
    }
}

impl From<EffectiveRow> for EffectiveSampleSize {
    fn from(row: EffectiveRow) -> EffectiveSampleSize {
        EffectiveSampleSize {
            count: row.count,
            degrees: row.degrees,
        }
    }
}

impl Latency {
    /// Adds intervals computed from the `blocks` of the requests in `censored`.
    pub(crate) fn by_blocks(self, censored: &Censored<'_>, blocks: &[BlockTimes]) -> Latency {
        self.by_effective(censored, |percentile| {
            let value = censored.at(percentile).low as u64;
            let blocks = blocks.iter().map(|block| block.up_to(value));
            blocks::effective_count(&blocks.collect::<Vec<Block>>())
        })
    }

    /// Adds intervals to the figures of a sum of `parts`, with the certainty of the least certain part. The parts
    /// loaded one target at the same time, so a delay of one part may have delayed the others.
    pub(crate) fn by_parts<'p>(
        self,
        censored: &Censored<'_>,
        parts: impl Iterator<Item = &'p Latency> + Clone,
    ) -> Latency {
        self.by_effective(censored, |percentile| {
            let name = units::percentile(percentile);
            let all: Option<Vec<EffectiveSampleSize>> =
                parts.clone().map(|part| part.effective(&name)).collect();
            all?.into_iter().min_by(|a, b| a.count.total_cmp(&b.count))
        })
    }

    fn by_effective(
        mut self,
        censored: &Censored<'_>,
        effective_at: impl Fn(f64) -> Option<EffectiveSampleSize>,
    ) -> Latency {
        self.intervals.clear();
        if self.percentiles.is_empty() {
            return self;
        }
        for percentile in percentile::supported(censored.count()) {
            let name = units::percentile(percentile);
            let effective = effective_at(percentile);
            if let Some(interval) = censored.interval(percentile, CONFIDENCE, effective) {
                self.intervals.push((name.clone(), interval.into()));
            }
            self.effective
                .extend(effective.map(|effective| (name, effective.into())));
        }
        self
    }

    /// Number of independent responses that would give `percentile`, such as `99.9`, the same confidence interval;
    /// `None` if unknown.
    pub(crate) fn effective(&self, percentile: &str) -> Option<EffectiveSampleSize> {
        let mut all = self.effective.iter();
        let found = all.find(|(of, _)| of == percentile);
        found.map(|(_, row)| (*row).into())
    }
}
