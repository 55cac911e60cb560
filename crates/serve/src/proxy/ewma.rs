//! Moving average of a server's latency for `peak_ewma`: peaks count at once and decay with time.

use std::time::Duration;

use onrush_engine::Instant;

/// A peak-sensitive, exponentially weighted moving average over time: a latency above the average replaces it, a lower
/// one draws it down. An observation loses 63 % of its weight within one time constant, however many follow. So a
/// server that stalls counts as slow from its first late response, and recovers only with time. After Finagle's "Peak
/// EWMA" (user guide, "Clients").
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ewma {
    /// In nanoseconds, at the time `observed`. Zero before the first observation.
    average: f64,
    observed: Instant,
}

impl Ewma {
    pub(crate) fn observe(&mut self, latency: Duration, now: Instant, decay: Decay) {
        // An f64 holds 53 bits exactly: 104 days in nanoseconds.
        let latency = latency.as_nanos() as u64 as f64;
        if latency > self.average {
            self.average = latency;
        } else {
            let kept = decay.kept(now.nanoseconds_since(self.observed));
            self.average = self.average * kept + latency * (1.0 - kept);
        }
        self.observed = now;
    }

    /// Average in nanoseconds, 0 if unknown. Without observations it decays to 0 too, so a slow server without requests
    /// is tried again after a few time constants.
    pub(crate) fn value(&self, now: Instant, decay: Decay) -> u64 {
        (self.average * decay.kept(now.nanoseconds_since(self.observed))) as u64
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Decay {
    /// Inverse of the time constant, in 1/ns.
    rate: f64,
}

impl Decay {
    /// Decay to 37 % within the time constant, which must not be zero.
    pub(crate) fn new(time_constant: Duration) -> Self {
        assert!(!time_constant.is_zero(), "averages live for some time");
        Self {
            rate: 1e-9 / time_constant.as_secs_f64(),
        }
    }

    /// Fraction of an average that remains after a time.
    fn kept(self, nanoseconds: u64) -> f64 {
        let exponent = nanoseconds as f64 * self.rate;
        // The usual case, a recently used server: four terms of the series are exact to a millionth, and faster than
        // `exp`.
        if exponent < 0.0625 {
            return 1.0 - exponent * (1.0 - exponent * (0.5 - exponent / 6.0));
        }
        (-exponent).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Observes latencies in milliseconds at given seconds and compares the value at second `at`; time constant 1 s.
    #[track_caller]
    fn check(observations: &[(u64, u64)], at: u64, expected: f64) {
        let time = |second| Instant::from_nanoseconds(second * 1_000_000_000);
        let decay = Decay::new(SECOND);
        let mut ewma = Ewma::default();
        for &(second, milliseconds) in observations {
            ewma.observe(Duration::from_millis(milliseconds), time(second), decay);
        }
        let value = ewma.value(time(at), decay) as f64 / 1e6;
        assert!(
            (value - expected).abs() < 1e-5,
            "{value} and not {expected} after {observations:?}"
        );
    }

    #[test]
    fn ewma_is_zero_before_first_response() {
        check(&[], 7, 0.0);
    }

    #[test]
    fn peak_replaces_average() {
        check(&[(10, 5)], 10, 5.0);
        check(&[(10, 5), (11, 80)], 11, 80.0);
    }

    #[test]
    fn lower_value_decays_average() {
        let e = std::f64::consts::E;
        check(&[(10, 80), (11, 5)], 11, 80.0 / e + 5.0 * (1.0 - 1.0 / e));
        // No time has passed, so the lower value has no weight.
        check(&[(10, 80), (10, 5)], 10, 80.0);
        // Much later, only the new value counts.
        check(&[(10, 80), (60, 5)], 60, 5.0);
    }

    #[test]
    fn average_decays_to_zero() {
        let e = std::f64::consts::E;
        check(&[(10, 80)], 11, 80.0 / e);
        check(&[(10, 80)], 13, 80.0 / e.powi(3));
        check(&[(10, 80)], 60, 0.0);
    }

    #[test]
    fn decay_depends_on_time_only() {
        let at = |milliseconds: u64| Instant::from_nanoseconds(milliseconds * 1_000_000);
        let decay = Decay::new(SECOND);
        let (mut often, mut once) = (Ewma::default(), Ewma::default());
        for ewma in [&mut often, &mut once] {
            ewma.observe(80 * SECOND, at(0), decay);
        }
        (1..=1000).for_each(|step| often.observe(SECOND, at(step), decay));
        once.observe(SECOND, at(1000), decay);
        let [often, once] = [often, once].map(|ewma| ewma.value(at(1000), decay));
        assert!(often.abs_diff(once) < 1000, "{often} and {once}");
    }

    #[test]
    fn decay_error_is_below_one_millionth() {
        let decay = Decay::new(SECOND);
        for nanoseconds in (0..100_000_000).step_by(10_007) {
            let exact = (-(nanoseconds as f64) * 1e-9).exp();
            assert!((decay.kept(nanoseconds) - exact).abs() < 1e-6);
        }
    }

    #[test]
    fn clock_going_backwards_is_ignored() {
        check(&[(10, 80), (9, 5)], 9, 80.0);
    }
}
