//! Histograms of durations.
//!
//! The class bounds follow Prometheus native histograms with schema 3: eight per doubling, so that a duration is known
//! to 9 %, and every eighth bound is a power of two in seconds.

use std::cell::{Cell, OnceCell};
use std::ops::{AddAssign, SubAssign};
use std::time::Duration;

/// Number of bounds per doubling.
pub const BOUNDS_PER_OCTAVE: usize = 8;

/// Exponent of the lowest bound: 2^-20 s = 0.95 us.
pub const LOWEST_OCTAVE: i32 = -20;

/// Exponent of the highest bound: 2^8 s = 256 s.
pub const HIGHEST_OCTAVE: i32 = 8;

const OCTAVES: usize = (HIGHEST_OCTAVE - LOWEST_OCTAVE) as usize;

const BOUNDS: usize = OCTAVES * BOUNDS_PER_OCTAVE + 1;

/// One class up to each bound, and one above the last.
const CLASSES: usize = BOUNDS + 1;

/// 2^(n/8) in units of 2^-60.
const ROOTS: [u64; BOUNDS_PER_OCTAVE] = [
    1 << 60,
    1_257_269_815_929_830_108,
    1_371_062_456_318_104_877,
    1_495_154_210_581_915_421,
    1_630_477_228_166_597_776,
    1_778_048_025_250_290_523,
    1_938_975_120_585_633_118,
    2_114_467_362_444_183_333,
];

/// Upper bounds of the classes, in nanoseconds.
const NANOSECONDS: [u64; BOUNDS] = nanoseconds();

const fn nanoseconds() -> [u64; BOUNDS] {
    let mut bounds = [0; BOUNDS];
    let mut at = 0;
    while at < BOUNDS {
        let octave = LOWEST_OCTAVE + (at / BOUNDS_PER_OCTAVE) as i32;
        let scaled = ROOTS[at % BOUNDS_PER_OCTAVE] as u128 * 1_000_000_000;
        bounds[at] = (scaled >> (60 - octave)) as u64;
        at += 1;
    }
    bounds
}

/// Lookup by the highest bit of a duration in nanoseconds and the three bits below it: the class of the shortest such
/// duration.
const STARTS: [[u8; 8]; 64] = starts();

const fn starts() -> [[u8; 8]; 64] {
    let mut starts = [[0; 8]; 64];
    let mut bit = 0;
    while bit < 64 {
        let mut eighth = 0;
        while eighth < 8 {
            let shortest = ((8 + eighth as u128) << bit) >> 3;
            let mut class = 0;
            while class < BOUNDS && (NANOSECONDS[class] as u128) < shortest {
                class += 1;
            }
            starts[bit][eighth] = class as u8;
            eighth += 1;
        }
        bit += 1;
    }
    starts
}

#[inline]
pub(crate) fn class(duration: Duration) -> usize {
    let nanoseconds = u64::try_from(duration.as_nanos())
        .unwrap_or(u64::MAX)
        .max(1);
    let bit = nanoseconds.ilog2() as usize;
    let eighth = (u128::from(nanoseconds) << 3 >> bit) as usize & 7;
    let mut class = usize::from(STARTS[bit][eighth]);
    while class < BOUNDS && nanoseconds > NANOSECONDS[class] {
        class += 1;
    }
    class
}

/// Durations of one core, counted by class. Allocates on the first duration.
#[derive(Debug, Default)]
pub(crate) struct Latencies {
    counts: OnceCell<Box<[Cell<u64>; CLASSES]>>,
    sum: Cell<Duration>,
}

impl Latencies {
    #[inline]
    pub(crate) fn observe(&self, class: usize, duration: Duration) {
        let counts = self
            .counts
            .get_or_init(|| Box::new([const { Cell::new(0) }; CLASSES]));
        counts[class].set(counts[class].get() + 1);
        self.sum.set(self.sum.get() + duration);
    }

    pub(crate) fn histogram(&self) -> Histogram {
        let counts = self.counts.get();
        Histogram {
            counts: counts.map_or_else(Vec::new, |counts| counts.iter().map(Cell::get).collect()),
            sum: self.sum.get(),
        }
    }
}

/// Durations by class, of one core or several.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Histogram {
    /// Empty, or one count per class.
    counts: Vec<u64>,
    sum: Duration,
}

impl Histogram {
    /// Number of durations.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Sum of all durations.
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// Cumulative counts: for each power of two in ascending order, the bound in seconds and the number of durations up
    /// to it. Durations above the last bound are not included.
    pub fn octaves(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut sum = 0;
        let mut counts = self.counts.iter();
        (0..=OCTAVES).map(move |octave| {
            let classes = match octave {
                0 => 1,
                _ => BOUNDS_PER_OCTAVE,
            };
            sum += counts.by_ref().take(classes).sum::<u64>();
            (f64::from(LOWEST_OCTAVE + octave as i32).exp2(), sum)
        })
    }

    /// Non-empty classes: the index of the upper bound among the powers of 2^(1/8) seconds, and the count. The class
    /// above the last bound is left out.
    pub fn classes(&self) -> impl Iterator<Item = (i32, u64)> {
        let lowest = LOWEST_OCTAVE * BOUNDS_PER_OCTAVE as i32;
        let classes = (lowest..).zip(self.counts.iter().take(BOUNDS));
        classes.filter_map(|(place, &count)| (count > 0).then_some((place, count)))
    }

    /// The quantile for `share` (0 to 1), as the upper bound of its class; `None` for an empty histogram. The class
    /// above the last bound counts as the one before.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let wanted = (share * self.count() as f64).ceil().max(1.0) as u64;
        let mut sum = 0;
        let class = self.counts.iter().position(|&count| {
            sum += count;
            sum >= wanted
        })?;
        Some(Duration::from_nanos(NANOSECONDS[class.min(BOUNDS - 1)]))
    }
}

impl SubAssign<&Histogram> for Histogram {
    /// Leaves the difference to an earlier histogram of the same durations.
    fn sub_assign(&mut self, before: &Histogram) {
        let counts = self.counts.iter_mut().zip(&before.counts);
        counts.for_each(|(count, less)| *count = count.saturating_sub(*less));
        self.sum = self.sum.saturating_sub(before.sum);
    }
}

impl AddAssign<&Histogram> for Histogram {
    fn add_assign(&mut self, other: &Histogram) {
        if self.counts.is_empty() {
            self.counts.clone_from(&other.counts);
        } else {
            let counts = self.counts.iter_mut().zip(&other.counts);
            counts.for_each(|(sum, more)| *sum += more);
        }
        self.sum += other.sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seconds(class: usize) -> f64 {
        (f64::from(LOWEST_OCTAVE) + class as f64 / BOUNDS_PER_OCTAVE as f64).exp2()
    }

    #[test]
    fn bucket_bounds_are_exponential_with_8_per_octave() {
        for (class, &nanoseconds) in NANOSECONDS.iter().enumerate() {
            let exact = seconds(class) * 1e9;
            assert!(
                exact - 1.0 < nanoseconds as f64 + 1e-3 && nanoseconds as f64 <= exact + 1e-3,
                "class {class}: {nanoseconds} ns, {exact}"
            );
        }
    }

    proptest! {
        #[test]
        fn duration_is_counted_in_smallest_fitting_bucket(nanoseconds in prop_oneof![0..2_000_u64, 0..3_000_000_u64, 0..400_000_000_000_u64, any::<u64>()]) {
            let first = NANOSECONDS.iter().position(|&bound| nanoseconds <= bound);
            prop_assert_eq!(class(Duration::from_nanos(nanoseconds)), first.unwrap_or(BOUNDS));
        }

        #[test]
        fn quantile_error_is_at_most_one_bucket(mut durations in prop::collection::vec(2_000..100_000_000_000_u64, 1..50), share in 0.0..1.0_f64) {
            let latencies = Latencies::default();
            for &duration in &durations {
                let duration = Duration::from_nanos(duration);
                latencies.observe(class(duration), duration);
            }
            durations.sort_unstable();
            let place = 1.max((share * durations.len() as f64).ceil() as usize) - 1;
            let exact = durations[place];
            let found = latencies.histogram().quantile(share).expect("there are some");
            let found = found.as_nanos() as u64;
            prop_assert!(exact <= found && found as f64 <= exact as f64 * 1.0906, "{exact} {found}");
        }
    }

    #[test]
    fn octave_counts_match_bucket_counts() {
        let (here, there) = (Latencies::default(), Latencies::default());
        let observe = |latencies: &Latencies, duration| {
            latencies.observe(class(duration), duration);
        };
        for microseconds in [0, 1, 15, 16, 900, 1_000_000, 1_000_001] {
            observe(&here, Duration::from_micros(microseconds));
        }
        observe(&there, Duration::from_secs(1000));
        let mut sum = Histogram::default();
        assert_eq!(sum.quantile(0.5), None);
        for one in [here, there] {
            sum += &one.histogram();
        }
        assert_eq!(sum.count(), 8);
        assert_eq!(sum.sum(), Duration::from_micros(1_002_000_001 + 932));
        let octaves: Vec<(f64, u64)> = sum.octaves().collect();
        assert_eq!(octaves.len(), OCTAVES + 1);
        assert_eq!(octaves[0].1, 1, "0 us, and 1 us is longer than 0.95");
        let second = octaves.iter().find(|(seconds, _)| *seconds == 1.0);
        assert_eq!(second, Some(&(1.0, 6)));
        assert_eq!(octaves.last(), Some(&(256.0, 7)));
        assert_eq!(sum.classes().map(|(_, count)| count).sum::<u64>(), 7);
        assert_eq!(sum.classes().last(), Some((1, 1)), "just above a second");
        assert_eq!(sum.quantile(1.0), Some(Duration::from_secs(256)));
        let (before, mut after) = (sum.clone(), sum.clone());
        after += &before;
        after -= &before;
        assert_eq!(after, sum);
        after -= &before;
        assert_eq!((after.count(), after.quantile(0.5)), (0, None));
    }
}
