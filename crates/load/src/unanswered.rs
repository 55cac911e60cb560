//! Requests without a response, and what is known of their times all the same: they are longer than what had passed when
//! they were last looked at (right-censored). A percentile of all requests lies between that of the responses and these
//! waits, taken as if the response had come just then, and that in which they last for ever. Pure.

use onrush_measure::histogram::Histogram;
use onrush_measure::percentile;

use crate::figures::Kind;

/// How long requests without a response had waited, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Unanswered {
    /// Since their intended start.
    pub response: Histogram,
    /// Since a connection was free for them; those that were never sent are not among them.
    pub service: Histogram,
}

impl Unanswered {
    /// `count` requests have waited for so long.
    pub(crate) fn record(&mut self, response: u64, service: u64, count: u64) {
        self.response.record_many(response, count);
        self.service.record_many(service, count);
    }

    /// Forgets everything, keeping the memory.
    pub(crate) fn clear(&mut self) {
        self.response.clear();
        self.service.clear();
    }

    /// Adds what others have waited.
    pub fn merge(&mut self, other: &Unanswered) {
        for (sum, more) in [
            (&mut self.response, &other.response),
            (&mut self.service, &other.service),
        ] {
            if more.count() > 0 {
                sum.merge(more);
            }
        }
    }

    /// The waits that bound times of this kind; none for those of connections.
    pub fn of(&self, kind: Kind) -> Option<&Histogram> {
        match kind {
            Kind::Response => Some(&self.response),
            Kind::Service | Kind::FirstByte => Some(&self.service),
            Kind::SendLag | Kind::Connect | Kind::Tls => None,
        }
    }
}

/// Between which values a figure lies, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bounds {
    /// At least.
    pub low: f64,
    /// At most; infinite where nothing bounds it.
    pub high: f64,
}

/// Two values closer than this share are one: bins are 0.1 % wide.
const BIN_SHARE: f64 = 0.002;

impl Bounds {
    /// Whether more than the lower one is known.
    pub fn is_known(self) -> bool {
        self.high <= self.low * (1.0 + BIN_SHARE)
    }
}

/// Where `percentile` of all requests lies, those with a response after `times` and those without, that have waited for
/// `waits`.
pub fn bounds(times: &Histogram, waits: &Histogram, percentile: f64) -> Bounds {
    if waits.count() == 0 {
        let known = times.value_at(percentile) as f64;
        return Bounds {
            low: known,
            high: known,
        };
    }
    let mut all = times.clone();
    all.merge(waits);
    bounds_in(times, &all, percentile)
}

/// The same for every percentile of a curve, as far as the count of responses supports it; see
/// [`percentile::curve`].
pub fn curve(times: &Histogram, waits: &Histogram) -> Vec<(f64, Bounds)> {
    let mut all = times.clone();
    all.merge(waits);
    let listed = percentile::curve(times.count());
    listed
        .map(|percentile| (percentile, bounds_in(times, &all, percentile)))
        .collect()
}

/// The bounds where `all` are the times of responses and the waits of the others.
fn bounds_in(times: &Histogram, all: &Histogram, percentile: f64) -> Bounds {
    let rank = percentile::rank(all.count(), percentile);
    let high = match rank <= times.count() {
        true => times.value_at_rank(rank) as f64,
        false => f64::INFINITY,
    };
    Bounds {
        low: all.value_at_rank(rank) as f64,
        high,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_requests_that_all_have_a_response_are_known() {
        let times = Histogram::from_iter(1..=1000);
        let found = bounds(&times, &Histogram::new(), 99.0);
        assert_eq!((found.low, found.high), (990.0, 990.0));
        assert!(found.is_known());
    }

    #[test]
    fn waits_bound_every_percentile_that_they_could_change_and_no_other() {
        // 77 % had a response within 1 us, 23 % had waited for 2 us and more.
        let (times, waits) = (
            Histogram::from_iter(1..=770),
            Histogram::from_iter([2000; 230]),
        );
        let at = |percentile| bounds(&times, &waits, percentile);
        assert!(at(50.0).is_known() && at(75.0).is_known());
        assert_eq!((at(50.0).low, at(50.0).high), (500.0, 500.0));
        for percentile in [78.0, 90.0, 99.0] {
            assert_eq!(at(percentile).low, 2000.0);
            assert_eq!(at(percentile).high, f64::INFINITY);
        }
    }

    #[test]
    fn a_curve_is_bounded_where_its_percentiles_are() {
        let (times, waits) = (
            Histogram::from_iter(1..=770),
            Histogram::from_iter([2000; 230]),
        );
        let found = curve(&times, &waits);
        assert_eq!(found[0].0, 50.0);
        for (percentile, of_curve) in &found {
            assert_eq!(*of_curve, bounds(&times, &waits, *percentile));
        }
        assert!(found.iter().any(|(_, bounds)| bounds.is_known()));
        assert!(found.iter().any(|(_, bounds)| !bounds.is_known()));
        let known = curve(&times, &Histogram::new());
        assert!(known.iter().all(|(_, bounds)| bounds.is_known()));
    }

    #[test]
    fn any_request_without_a_response_may_be_the_slowest() {
        let (times, waits) = (Histogram::from_iter(1..=10_000), Histogram::from_iter([5]));
        let bounded = crate::report::latency::Latency::bounded(&times, &waits);
        assert!(bounded.is_at_least("max") && !bounded.is_at_least("50"));
        assert_eq!(bounded.max, Some(10.0));
        let known = crate::report::latency::Latency::bounded(&times, &Histogram::new());
        assert!(!known.is_at_least("max"));
    }

    #[test]
    fn a_wait_that_was_shorter_than_most_responses_bounds_from_both_sides() {
        let (times, waits) = (
            Histogram::from_iter(1..=900),
            Histogram::from_iter([0; 100]),
        );
        let found = bounds(&times, &waits, 50.0);
        assert_eq!((found.low, found.high), (400.0, 500.0));
        assert!(!found.is_known());
    }
}
