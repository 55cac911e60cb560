//! Rate of a run over time (constant, ramps, steps), and the due time of each request along it. Computed in integers
//! from the request's number instead of the previous due time, so rounding errors do not add up.

use std::num::NonZeroU64;
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;

/// Requests per period over time. The final rate is above zero, so every request has a due time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Profile {
    /// Nanoseconds of the period. A rate of one request per period produces one *unit* per nanosecond; `period` units
    /// are one request.
    period: u64,
    /// In order of time, from 0.
    stretches: Vec<Segment>,
    rate: NonZeroU64,
    /// End of the last stretch, in nanoseconds.
    begin: u64,
    /// Half units due by then.
    before: u128,
}

/// Interval in which the rate is constant or changes linearly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Segment {
    begin: u64,
    length: u64,
    from: u64,
    to: u64,
    /// Half units due before it. A ramp over a whole number of nanoseconds has a whole number of half units.
    before: u128,
}

impl Segment {
    /// Returns the half units due in its first `time` nanoseconds, rounded down.
    fn area(&self, time: u64) -> u128 {
        let time = u128::from(time);
        let steady = 2 * u128::from(self.from) * time;
        let slope = u128::from(self.from.abs_diff(self.to)) * time * time / u128::from(self.length);
        if self.to >= self.from {
            steady + slope
        } else {
            steady - slope
        }
    }

    /// Returns the first nanosecond at which the profile has produced `wanted` half units.
    fn time_of(&self, wanted: u128) -> u64 {
        // The formula is off by rounding only; the loops below correct it.
        let (from, to, length) = (self.from as f64, self.to as f64, self.length as f64);
        let (wanted_, slope) = (wanted as f64 / 2.0, (to - from) / length);
        let root = (from * from + 2.0 * slope * wanted_).max(0.0).sqrt();
        // The form of the quadratic formula that avoids subtracting nearly equal numbers.
        let guess = 2.0 * wanted_ / (from + root).max(f64::MIN_POSITIVE);
        let mut time = (guess as u64).min(self.length);
        while time > 0 && self.area(time - 1) >= wanted {
            time -= 1;
        }
        while self.area(time) < wanted {
            time += 1;
        }
        time
    }
}

#[derive(Clone, Debug, Default)]
struct Builder {
    stretches: Vec<Segment>,
    begin: u64,
    before: u128,
}

impl Builder {
    fn stretch(&mut self, from: u64, to: u64, length: Duration) {
        let length = nanoseconds(length);
        if length == 0 {
            return;
        }
        let stretch = Segment {
            begin: self.begin,
            length,
            from,
            to,
            before: self.before,
        };
        self.begin += length;
        self.before += stretch.area(length);
        self.stretches.push(stretch);
    }

    fn then(self, rate: NonZeroU64) -> Profile {
        Profile {
            period: SECOND,
            stretches: self.stretches,
            rate,
            begin: self.begin,
            before: self.before,
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Rates in equal steps, each held for the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stairs {
    /// Rate of the first step.
    pub from: NonZeroU64,
    /// Limit of the rates, which the last step does not exceed.
    pub to: NonZeroU64,
    /// Difference between the rates of two steps.
    pub step: NonZeroU64,
    /// Duration of a step.
    pub hold: Duration,
}

impl Stairs {
    /// Returns the rates of the steps, in order.
    pub fn rates(&self) -> impl Iterator<Item = NonZeroU64> + use<> {
        let Stairs { from, to, step, .. } = *self;
        let steps = from.get().abs_diff(to.get()) / step.get();
        (0..=steps).filter_map(move |number| {
            let change = number * step.get();
            NonZeroU64::new(if to >= from {
                from.get() + change
            } else {
                from.get() - change
            })
        })
    }

    /// Returns the duration of all steps.
    pub fn duration(&self) -> Duration {
        let steps = u32::try_from(self.rates().count()).unwrap_or(u32::MAX);
        self.hold.saturating_mul(steps)
    }
}

impl Profile {
    /// Constant rate.
    pub fn steady(rate: NonZeroU64) -> Profile {
        Builder::default().then(rate)
    }

    /// Rises linearly from zero to `rate` within `time`, then stays constant.
    pub fn ramp(rate: NonZeroU64, time: Duration) -> Profile {
        let mut builder = Builder::default();
        builder.stretch(0, rate.get(), time);
        builder.then(rate)
    }

    /// Rises from zero to `rate` within `time` in ten steps, each rising for a quarter of its length and then constant;
    /// the soft start of h1load.
    pub fn soft_start(rate: NonZeroU64, time: Duration) -> Profile {
        const STAIRS: u64 = 10;
        let mut builder = Builder::default();
        let part = |part: u64| u64::try_from(u128::from(rate.get()) * u128::from(part) / 10);
        let at = |stair| part(stair).unwrap_or(rate.get());
        let (slope, stair) = (time / 40, time / 10);
        for number in 0..STAIRS {
            builder.stretch(at(number), at(number + 1), slope);
            builder.stretch(at(number + 1), at(number + 1), stair - slope);
        }
        builder.then(rate)
    }

    /// Follows the steps, then keeps the rate of the last one.
    pub fn stairs(stairs: &Stairs) -> Profile {
        let mut builder = Builder::default();
        let mut last = stairs.from;
        for rate in stairs.rates() {
            builder.stretch(rate.get(), rate.get(), stairs.hold);
            last = rate;
        }
        builder.then(last)
    }

    /// Returns the same profile with its rates per `period` instead of per second. A zero period counts as one
    /// nanosecond.
    pub fn per(self, period: Duration) -> Profile {
        Profile {
            period: nanoseconds(period).max(1),
            ..self
        }
    }

    /// Returns the due time of request `number`, counted from 0, in nanoseconds since the start.
    pub fn time_of(&self, number: u64) -> u64 {
        self.time_of_part(number, 0)
    }

    /// Returns the due time of `number` requests plus `part` billionths of one.
    pub(super) fn time_of_part(&self, number: u64, part: u64) -> u64 {
        let period = u128::from(self.period);
        let part = u128::from(part) * period / u128::from(SECOND);
        let wanted = 2 * (u128::from(number) * period + part);
        if wanted > self.before || self.stretches.is_empty() {
            let rest = wanted - self.before;
            let time = rest.div_ceil(2 * u128::from(self.rate.get()));
            return u64::try_from(time).map_or(u64::MAX, |time| time.saturating_add(self.begin));
        }
        let after = self
            .stretches
            .partition_point(|stretch| stretch.before < wanted);
        let stretch = &self.stretches[after.saturating_sub(1)];
        stretch.begin + stretch.time_of(wanted - stretch.before)
    }

    /// Returns the number of requests due before `time`.
    pub fn count_before(&self, time: Duration) -> u64 {
        let time = nanoseconds(time);
        let (mut low, mut high) = (0, u64::MAX / 2);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.time_of(middle) < time {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Returns the final rate in requests per second.
    pub fn rate_per_second(&self) -> f64 {
        self.rate.get() as f64 * SECOND as f64 / self.period as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rate(rate: u64) -> NonZeroU64 {
        NonZeroU64::new(rate).unwrap()
    }

    const SECOND_: Duration = Duration::from_secs(1);

    #[test]
    fn steady_rate_does_not_drift() {
        let profile = Profile::steady(rate(3));
        assert_eq!(profile.time_of(0), 0);
        assert_eq!(profile.time_of(3_000_000), 1_000_000 * SECOND);
        assert_eq!(profile.count_before(Duration::from_secs(1000)), 3000);
    }

    #[test]
    fn rate_per_minute_is_evenly_spaced() {
        let profile = Profile::steady(rate(90)).per(SECOND_ * 60);
        assert_eq!(profile.count_before(SECOND_ * 60), 90);
        assert_eq!(
            [profile.time_of(3), profile.time_of(90)],
            [2 * SECOND, 60 * SECOND]
        );
        assert_eq!(profile.time_of_part(0, SECOND / 2), SECOND / 3 + 1);
        assert_eq!(profile.rate_per_second(), 1.5);
        let whole = Profile::steady(rate(6000)).per(SECOND_ * 60);
        let same = Profile::steady(rate(100));
        assert!((0..1000).all(|number| whole.time_of(number) == same.time_of(number)));
        let ramp = Profile::ramp(rate(3600), SECOND_ * 10).per(SECOND_ * 3600);
        assert_eq!(ramp.count_before(SECOND_ * 10), 5);
    }

    #[test]
    fn ramp_sends_half_of_full_rate() {
        let profile = Profile::ramp(rate(1000), SECOND_ * 10);
        assert_eq!(profile.count_before(SECOND_ * 10), 5000);
        // Half of the time yields a quarter of the ramp's requests.
        assert_eq!(profile.count_before(SECOND_ * 5), 1250);
        assert_eq!(profile.count_before(SECOND_ * 11), 6000);
    }

    #[test]
    fn step_profile_adds_step_rates() {
        let up = Stairs {
            from: rate(100),
            to: rate(350),
            step: rate(100),
            hold: SECOND_ * 2,
        };
        assert!(up.rates().map(NonZeroU64::get).eq([100, 200, 300]));
        let profile = Profile::stairs(&up);
        assert_eq!(up.duration(), SECOND_ * 6);
        for (seconds, count) in [(2, 200), (4, 600), (6, 1200), (7, 1500)] {
            assert_eq!(profile.count_before(SECOND_ * seconds), count);
        }
        let down = Stairs {
            from: rate(300),
            to: rate(100),
            ..up
        };
        assert!(down.rates().map(NonZeroU64::get).eq([300, 200, 100]));
    }

    #[test]
    fn soft_start_has_ten_steps_with_ramps() {
        let profile = Profile::soft_start(rate(1000), SECOND_ * 10);
        // Each step adds 100 per second on a ramp of 0.25 s, which yields half as much as the full rate.
        let until = |stairs: u64| (1..=stairs).map(|stair| stair * 100).sum::<u64>();
        for stairs in 1..=10 {
            let expected = until(stairs) as f64 - stairs as f64 * 12.5;
            let count = profile.count_before(SECOND_ * stairs as u32) as f64;
            assert!((count - expected).abs() <= 1.0, "{stairs}: {count}");
        }
    }

    /// Profiles with rising, falling and constant stretches.
    fn profile() -> impl Strategy<Value = Profile> {
        let stretch = (0u64..5_000_000, 0u64..5_000_000, 1u64..20_000_000_000);
        let stretches = prop::collection::vec(stretch, 0..5);
        (stretches, 1u64..5_000_000).prop_map(|(stretches, last)| {
            let mut builder = Builder::default();
            for (from, to, length) in stretches {
                builder.stretch(from, to, Duration::from_nanos(length));
            }
            builder.then(rate(last))
        })
    }

    proptest! {
        #[test]
        fn requests_are_due_in_order_and_not_early(
            profile in profile(),
            number in 0u64..100_000_000,
        ) {
            let time = profile.time_of(number);
            prop_assert!(profile.time_of(number + 1) >= time);
            let wanted = 2 * u128::from(number) * u128::from(SECOND);
            let area = |time: u64| {
                let stretch = profile.stretches.iter().rfind(|stretch| stretch.begin <= time);
                match stretch {
                    Some(stretch) if time < stretch.begin + stretch.length => {
                        stretch.before + stretch.area(time - stretch.begin)
                    }
                    _ => profile.before + 2 * u128::from(profile.rate.get()) * u128::from(time - profile.begin),
                }
            };
            prop_assert!(area(time) >= wanted);
            prop_assert!(time == 0 || area(time - 1) < wanted);
        }
    }
}
