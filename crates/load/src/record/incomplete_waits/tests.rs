//! Percentiles with unanswered requests, compared with distributions of known percentiles.

use onrush_measure::units;

use super::*;
use crate::report::latency::{CONFIDENCE, Interval, Latency};

#[test]
fn percentiles_without_incomplete_requests_are_exact() {
    let times = Histogram::from_iter(1..=1000);
    let found = Censored::new(&times, &Histogram::new()).at(99.0);
    assert_eq!((found.low, found.high), (990.0, 990.0));
    assert!(found.is_known());
}

#[test]
fn incomplete_requests_bound_only_affected_percentiles() {
    // 77 % had a response within 1 us, 23 % had waited for 2 us and more.
    let (times, waits) = (
        Histogram::from_iter(1..=770),
        Histogram::from_iter([2000; 230]),
    );
    let at = |percentile| Censored::new(&times, &waits).at(percentile);
    assert!(at(50.0).is_known() && at(75.0).is_known());
    assert_eq!((at(50.0).low, at(50.0).high), (500.0, 500.0));
    for percentile in [78.0, 90.0, 99.0] {
        assert_eq!(at(percentile).low, 2000.0);
        assert_eq!(at(percentile).high, f64::INFINITY);
    }
}

#[test]
fn curve_has_bounds_of_percentiles() {
    let (times, waits) = (
        Histogram::from_iter(1..=770),
        Histogram::from_iter([2000; 230]),
    );
    let censored = Censored::new(&times, &waits);
    let found = censored.curve();
    assert_eq!(found[0].0, 50.0);
    for (percentile, of_curve) in &found {
        assert_eq!(*of_curve, censored.at(*percentile));
    }
    assert!(found.iter().any(|(_, bounds)| bounds.is_known()));
    assert!(found.iter().any(|(_, bounds)| !bounds.is_known()));
    let known = Censored::new(&times, &Histogram::new()).curve();
    assert!(known.iter().all(|(_, bounds)| bounds.is_known()));
}

#[test]
fn incomplete_request_bounds_maximum() {
    let (times, waits) = (Histogram::from_iter(1..=10_000), Histogram::from_iter([5]));
    let bounded = Latency::bounded(&times, &waits);
    assert!(bounded.is_at_least("max") && !bounded.is_at_least("50"));
    assert_eq!(bounded.max, Some(10.0));
    let known = Latency::bounded(&times, &Histogram::new());
    assert!(!known.is_at_least("max"));
}

#[test]
fn short_incomplete_request_gives_percentile_range() {
    let (times, waits) = (
        Histogram::from_iter(1..=900),
        Histogram::from_iter([0; 100]),
    );
    let found = Censored::new(&times, &waits).at(50.0);
    assert_eq!((found.low, found.high), (400.0, 500.0));
    assert!(!found.is_known());
}

/// Pseudo-random numbers from 0 to 1 (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A distribution by its quantile function, in milliseconds.
type Quantile = fn(f64) -> f64;

fn normal(share: f64) -> f64 {
    match share < 0.5 {
        true => -onrush_measure::blocks::normal_quantile(1.0 - share),
        false => onrush_measure::blocks::normal_quantile(share),
    }
}

const DISTRIBUTIONS: [(&str, Quantile); 12] = [
    ("constant", |_| 5.0),
    ("uniform", |share| 1.0 + 9.0 * share),
    ("exponential", |share| -10.0 * (1.0 - share).ln()),
    ("normal", |share| 50.0 + 5.0 * normal(share)),
    ("log-normal", |share| (1.0 + 0.5 * normal(share)).exp()),
    ("wide log-normal", |share| (1.0 + 1.5 * normal(share)).exp()),
    ("Pareto, shape 1.1", |share| (1.0 - share).powf(-1.0 / 1.1)),
    ("Pareto, shape 3", |share| (1.0 - share).powf(-1.0 / 3.0)),
    ("Weibull, shape 0.5", |share| (1.0 - share).ln().powi(2)),
    ("two values", |share| if share < 0.93 { 2.0 } else { 80.0 }),
    ("two humps", |share| match share < 0.97 {
        true => 1.0 + share / 0.97,
        false => 200.0 + 1000.0 * (share - 0.97),
    }),
    ("stall", |share| match share < 0.98 {
        true => 0.2 - 0.1 * (1.0 - share).ln(),
        false => 500.0 * (share - 0.98) / 0.02 + 1.0,
    }),
];

/// How requests of a run lose their responses.
#[derive(Clone, Copy, Debug)]
enum Loss {
    /// This share takes longer than the timeout.
    TimeOut(f64),
    /// This share never gets a response, and waits until the timeout.
    Never(f64),
    /// This share is cut off by the end of the run, after a random part of its response time.
    Cut(f64),
}

impl Loss {
    /// Time of the request at this share of all requests: `Ok` with a response, `Err` with the wait if there was none.
    fn time_at(self, share: f64, quantile: Quantile, random: &mut Random) -> Result<f64, f64> {
        match self {
            Loss::TimeOut(lost) if share >= 1.0 - lost => Err(quantile(1.0 - lost)),
            Loss::Never(lost) if share >= 1.0 - lost => Err(quantile(0.9999)),
            Loss::Never(lost) => Ok(quantile(share / (1.0 - lost))),
            Loss::Cut(lost) if random.next() < lost => Err(quantile(share) * random.next()),
            Loss::TimeOut(_) | Loss::Cut(_) => Ok(quantile(share)),
        }
    }

    /// True value at a share of all requests in milliseconds; infinite if the request never ends.
    fn truth(self, share: f64, quantile: Quantile) -> f64 {
        match self {
            Loss::TimeOut(_) | Loss::Cut(_) => quantile(share),
            Loss::Never(lost) if share > 1.0 - lost => f64::INFINITY,
            Loss::Never(lost) => quantile(share / (1.0 - lost)),
        }
    }
}

/// 0 to 30 % of requests lost, in each way.
fn losses() -> impl Iterator<Item = Loss> {
    let shares = [0.009, 0.12, 0.3].into_iter();
    let some = shares.flat_map(|lost| [Loss::TimeOut(lost), Loss::Never(lost), Loss::Cut(lost)]);
    std::iter::once(Loss::TimeOut(0.0)).chain(some)
}

const RUNS: usize = 100;

/// Requests per run: as many as p99 needs.
const REQUESTS: u64 = 1_000;

/// Number of requests below a percentile in each run. The number is binomial; run `i` of 100 has the quantile (i + 0.5) / 100,
/// so that the runs together are neither lucky nor unlucky.
fn below(percentile: f64) -> Vec<u64> {
    let (count, share) = (REQUESTS as f64, percentile / 100.0);
    // The probability of 0 underflows, so weights are relative to the probability of the mean, about the most likely outcome.
    let mut weights = vec![1.0];
    for below in (count * share) as u64..REQUESTS {
        let last = weights[weights.len() - 1];
        let odds = share / (1.0 - share);
        weights.push(last * (count - below as f64) / (below as f64 + 1.0) * odds);
    }
    let mut weight = 1.0;
    for below in (1..=(count * share) as u64).rev() {
        weight *= below as f64 * (1.0 - share) / ((count - below as f64 + 1.0) * share);
        weights.insert(0, weight);
    }
    let sum: f64 = weights.iter().sum();
    let (mut outcome, mut reached) = (0, weights[0] / sum);
    let runs = (0..RUNS).map(|run| {
        while reached < (run as f64 + 0.5) / RUNS as f64 {
            outcome += 1;
            reached += weights[outcome] / sum;
        }
        outcome as u64
    });
    runs.collect()
}

/// Whether the interval of a percentile, or its bound, holds the true value in a run with `below` requests below it.
fn holds(quantile: Quantile, loss: Loss, percentile: f64, below: u64, seed: u64) -> bool {
    let (mut random, at) = (Random(seed * 7919), percentile / 100.0);
    let (mut times, mut waits) = (Histogram::new(), Histogram::new());
    for request in 0..REQUESTS {
        let share = match request < below {
            true => random.next() * at,
            false => at + random.next() * (1.0 - at),
        };
        match loss.time_at(share, quantile, &mut random) {
            Ok(ms) => times.record((ms * 1e6) as u64),
            Err(ms) => waits.record((ms * 1e6) as u64),
        }
    }
    let censored = Censored::new(&times, &waits);
    let interval = censored.interval(percentile, CONFIDENCE, None);
    if seed == 1 {
        let printed = Latency::bounded(&times, &waits).interval(&units::percentile(percentile));
        assert_eq!(printed, interval.map(Interval::from));
    }
    let truth = loss.truth(at, quantile) * 1e6;
    let interval = interval.unwrap_or_else(|| censored.at(percentile));
    interval.low * 0.999 <= truth && truth <= interval.high * 1.001
}

#[test]
#[ignore = "slow: make test-all"]
fn censored_percentile_intervals_cover_true_value() {
    let mut table = String::new();
    for percentile in [50.0, 75.0, 90.0, 95.0, 99.0] {
        let below = below(percentile);
        for loss in losses() {
            let held = DISTRIBUTIONS.map(|(name, quantile)| {
                let runs = (1..).zip(&below);
                let holds =
                    |(seed, below): &(u64, &u64)| holds(quantile, loss, percentile, **below, *seed);
                let held = runs.filter(holds).count();
                assert!(held >= 95, "p{percentile} of {name}, {loss:?}: {held}");
                held
            });
            table += &format!("p{percentile:<3} {loss:?}: {held:?}\n");
        }
    }
    println!("{table}");
}

#[test]
fn percentile_includes_timed_out_requests() {
    // 0.9 % of requests never got a response: p99 is the 990th of 1,000, not the 982nd of the 991 with a response.
    let times = Histogram::from_iter((1..=991).map(|ms| ms * 1_000_000));
    let waits = Histogram::from_iter([2_000_000_000; 9]);
    let latency = Latency::bounded(&times, &waits);
    let p99 = latency.percentile("99").expect("there are enough");
    assert!((p99 / 990_000.0 - 1.0).abs() < 0.001, "{p99}");
    assert!(!latency.is_at_least("99"));
    // With 1,000 requests, nine of them without a time, p99 has no upper bound.
    assert!(matches!(latency.interval("99"), Some(Interval(_, None))));
    assert!(matches!(latency.interval("50"), Some(Interval(_, Some(_)))));
}
