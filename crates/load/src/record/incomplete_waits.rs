//! Requests without a response. Their times are right-censored: longer than the wait when it ended. Pure.

use onrush_measure::blocks::EffectiveSampleSize;
use onrush_measure::histogram::Histogram;
use onrush_measure::percentile;

use crate::record::figures::Kind;

/// Waits of requests without a response, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct IncompleteWaits {
    /// Since the intended start.
    pub response: Histogram,
    /// Since a connection was free; requests that were never sent are not included.
    pub service: Histogram,
}

impl IncompleteWaits {
    pub(crate) fn record(&mut self, response: u64, service: u64, count: u64) {
        self.response.record_many(response, count);
        self.service.record_many(service, count);
    }

    pub(crate) fn clear(&mut self) {
        self.response.clear();
        self.service.clear();
    }

    /// Adds the waits of another core or run.
    pub fn merge(&mut self, other: &IncompleteWaits) {
        for (sum, more) in [
            (&mut self.response, &other.response),
            (&mut self.service, &other.service),
        ] {
            if more.count() > 0 {
                sum.merge(more);
            }
        }
    }

    /// Waits that bound times of this kind; `None` for connections and send lag.
    pub fn of(&self, kind: Kind) -> Option<&Histogram> {
        match kind {
            Kind::Response => Some(&self.response),
            Kind::Service | Kind::FirstByte => Some(&self.service),
            Kind::SendLag | Kind::Connect | Kind::Tls => None,
        }
    }
}

/// Bounds of a figure, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bounds {
    /// Lower bound.
    pub low: f64,
    /// Upper bound; infinite if there is none.
    pub high: f64,
}

/// Bounds closer than this share are equal: bins are 0.1 % wide.
const BIN_SHARE: f64 = 0.002;

impl Bounds {
    /// Whether both bounds are equal.
    pub fn is_known(self) -> bool {
        self.high <= self.low * (1.0 + BIN_SHARE)
    }
}

/// Times of requests, some of them right-censored: a request without a response takes longer than it had waited, by an
/// unknown amount.
///
/// Figures are order statistics of all requests. The lower bound of the value at a rank takes each wait as the time of its
/// request, the upper bound takes that time as infinite. No assumption links waits and times, so the bounds hold where the
/// Kaplan-Meier estimate (Kaplan & Meier, JASA 53, 1958) does not: a server that stalls makes waits long because times are
/// long. Where every wait exceeds the value, both bounds and Kaplan-Meier's quantile are equal.
#[derive(Clone, Debug)]
pub struct Censored<'a> {
    times: &'a Histogram,
    /// Times and waits together; `None` without waits.
    all: Option<Histogram>,
}

impl<'a> Censored<'a> {
    /// Combines the `times` of responses with the `waits` of requests that got no response.
    pub fn new(times: &'a Histogram, waits: &Histogram) -> Censored<'a> {
        let all = (waits.count() > 0).then(|| {
            let mut all = times.clone();
            all.merge(waits);
            all
        });
        Censored { times, all }
    }

    /// Returns the times with each wait as the time of its request: the lower bound.
    pub fn lower_bound(&self) -> &Histogram {
        self.all.as_ref().unwrap_or(self.times)
    }

    /// Requests, with and without a response.
    pub fn count(&self) -> u64 {
        self.lower_bound().count()
    }

    /// Returns the bounds of a percentile of all requests.
    pub fn at(&self, percentile: f64) -> Bounds {
        self.at_ranks(percentile::rank(self.count(), percentile), None)
    }

    /// Interval that contains the true percentile with `confidence`, for any distribution (order statistics; see
    /// [`percentile::interval_ranks`]). `effective` is the number of independent requests that would give the same certainty,
    /// if it is known. `None` where there are too few requests.
    pub fn interval(
        &self,
        percentile: f64,
        confidence: f64,
        effective: Option<EffectiveSampleSize>,
    ) -> Option<Bounds> {
        let (low, high) = match effective {
            None => percentile::interval_ranks(self.count(), percentile, confidence)?,
            Some(effective) => effective.ranks(self.count(), percentile, confidence)?,
        };
        Some(self.at_ranks(low, Some(high)))
    }

    /// From the smallest possible value at rank `low` to the largest possible value at rank `high` (`None`: at `low`).
    fn at_ranks(&self, low: u64, high: Option<u64>) -> Bounds {
        let high = high.unwrap_or(low);
        Bounds {
            low: self.lower_bound().value_at_rank(low) as f64,
            high: match high <= self.times.count() {
                true => self.times.value_at_rank(high) as f64,
                false => f64::INFINITY,
            },
        }
    }

    /// Returns the bounds of each percentile that the count of requests supports; see [`percentile::curve`].
    pub fn curve(&self) -> Vec<(f64, Bounds)> {
        let listed = percentile::curve(self.count());
        listed
            .map(|percentile| (percentile, self.at(percentile)))
            .collect()
    }
}

#[cfg(test)]
mod tests;
