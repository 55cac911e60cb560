//! Percentile, mean, minimum or maximum of possibly right-censored times. Pure.

use onrush_measure::histogram::Histogram;
use onrush_measure::{percentile, units};

use crate::record::figures::Kind;
use crate::record::incomplete_waits::{Bounds, Censored};

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Statistic {
    Percentile(f64),
    Mean,
    Min,
    Max,
}

impl Statistic {
    /// Returns `None` if the name is not a statistic, and an error if its percentile is out of range.
    pub(super) fn parse(name: &str) -> Option<Result<Statistic, String>> {
        match name {
            "mean" => return Some(Ok(Statistic::Mean)),
            "min" => return Some(Ok(Statistic::Min)),
            "max" => return Some(Ok(Statistic::Max)),
            _ => {}
        }
        let percentile: f64 = name.strip_prefix('p')?.parse().ok()?;
        let is_between = percentile > 0.0 && percentile < 100.0;
        Some(if is_between {
            Ok(Statistic::Percentile(percentile))
        } else {
            Err(
                "a percentile must be between p0 and p100; use min and max for those two"
                    .to_owned(),
            )
        })
    }

    /// Returns the bounds of the statistic in nanoseconds; `waits` is for requests without a response.
    ///
    /// # Errors
    /// When there are too few values, including the waits.
    pub(super) fn of(
        self,
        times: &Histogram,
        waits: Option<&Histogram>,
        kind: Kind,
    ) -> Result<Bounds, String> {
        let waits = waits.filter(|waits| waits.count() > 0);
        let count = times.count() + waits.map_or(0, Histogram::count);
        if count == 0 {
            return Err(format!("there were no values of the {}", kind.title()));
        }
        if let Statistic::Percentile(percentile) = self {
            let needed = percentile::count_for(percentile);
            if count < needed {
                return Err(format!(
                    "this percentile needs {} and there were {}",
                    units::plural(needed, "value"),
                    units::count(count)
                ));
            }
        }
        Ok(match waits {
            None => {
                let exact = self.exact(times);
                Bounds {
                    low: exact,
                    high: exact,
                }
            }
            Some(waits) => self.bounds(times, waits),
        })
    }

    fn exact(self, times: &Histogram) -> f64 {
        match self {
            Statistic::Mean => times.mean(),
            Statistic::Min => times.min() as f64,
            Statistic::Max => times.max() as f64,
            Statistic::Percentile(percentile) => times.value_at(percentile) as f64,
        }
    }

    /// Bounds from the `times` of responses and the `waits` of at least one request without a response.
    fn bounds(self, times: &Histogram, waits: &Histogram) -> Bounds {
        let both = [times, waits].into_iter().filter(|part| part.count() > 0);
        let low = match self {
            Statistic::Percentile(percentile) => {
                return Censored::new(times, waits).at(percentile);
            }
            // No wait is known to end earlier than the fastest response.
            Statistic::Min if times.count() > 0 => {
                let exact = self.exact(times);
                return Bounds {
                    low: exact,
                    high: exact,
                };
            }
            Statistic::Min => waits.min() as f64,
            Statistic::Max => both.map(|part| part.max() as f64).fold(0.0, f64::max),
            Statistic::Mean => {
                let sum: f64 = both.map(|part| part.mean() * part.count() as f64).sum();
                sum / (times.count() + waits.count()) as f64
            }
        };
        Bounds {
            low,
            high: f64::INFINITY,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_requests_count_without_responses() {
        let waits = Histogram::from_iter([700; 200]);
        for statistic in [
            Statistic::Percentile(50.0),
            Statistic::Percentile(90.0),
            Statistic::Mean,
            Statistic::Min,
            Statistic::Max,
        ] {
            let found = statistic.of(&Histogram::new(), Some(&waits), Kind::Response);
            let Bounds { low, high } = found.expect("there are enough");
            assert!((low - 700.0).abs() < 1.0, "{statistic:?}: {low}");
            assert!(high.is_infinite(), "{statistic:?}: {high}");
        }
    }

    #[test]
    fn incomplete_requests_count_towards_percentile_minimum() {
        let (times, waits) = (
            Histogram::from_iter(1..=60),
            Histogram::from_iter([2000; 60]),
        );
        let of = |waits| Statistic::Percentile(90.0).of(&times, waits, Kind::Response);
        assert!(of(None).is_err_and(|said| said.contains("needs 100 values and there were 60")));
        assert_eq!(of(Some(&waits)).expect("there are enough").low, 2000.0);
        let nothing = Statistic::Max.of(&Histogram::new(), None, Kind::Tls);
        assert!(nothing.is_err_and(|said| said.contains("there were no values")));
    }
}
