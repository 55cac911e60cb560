//! Durations as a Prometheus native histogram (see "Native Histograms", section "Data model").
//!
//! The classes of [`Histogram`] are the buckets of schema 3, whose bounds are powers of 2^(1/8) seconds, so counts are
//! exact with two exceptions: durations up to 0.95 us are in the zero bucket, and durations above 256 s are in the
//! bucket up to 279 s.

use super::latency::{BOUNDS_PER_OCTAVE, HIGHEST_OCTAVE, Histogram, LOWEST_OCTAVE};

/// Schema: bounds are powers of 2^(2^-schema).
pub const NATIVE_SCHEMA: i32 = BOUNDS_PER_OCTAVE.ilog2() as i32;

const _: () = assert!(1 << NATIVE_SCHEMA == BOUNDS_PER_OCTAVE);

/// Index of the bucket for durations above all classes.
const BEYOND: i32 = HIGHEST_OCTAVE * BOUNDS_PER_OCTAVE as i32 + 1;

/// The buckets of a native histogram.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NativeBuckets {
    /// Durations of at most 2^[`LOWEST_OCTAVE`] seconds.
    pub zero: u64,
    /// Runs of consecutive buckets: the offset of the first index from the end of the previous run (from 0 for the
    /// first run), and the number of buckets. Bucket `i` counts durations above `2^((i-1)/8)` and up to `2^(i/8)`
    /// seconds.
    pub spans: Vec<(i32, u32)>,
    /// Count of each bucket in these runs, minus the count of the previous bucket.
    pub deltas: Vec<i64>,
}

impl Histogram {
    /// The durations in buckets of schema [`NATIVE_SCHEMA`].
    pub fn native(&self) -> NativeBuckets {
        let mut native = NativeBuckets::default();
        let (mut left, mut end, mut before) = (self.count(), 0, 0);
        let mut put = |index: i32, count: u64| {
            match native.spans.last_mut() {
                Some((_, length)) if index == end => *length += 1,
                _ => native.spans.push((index - end, 1)),
            }
            native.deltas.push(count as i64 - before);
            (end, before) = (index + 1, count as i64);
        };
        for (index, count) in self.classes() {
            left -= count;
            match index {
                index if index == LOWEST_OCTAVE * BOUNDS_PER_OCTAVE as i32 => native.zero = count,
                index => put(index, count),
            }
        }
        if left > 0 {
            put(BEYOND, left);
        }
        native
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::latency::{Latencies, class};
    use proptest::prelude::*;
    use std::time::Duration;

    fn histogram(nanoseconds: &[u64]) -> Histogram {
        let latencies = Latencies::default();
        for &duration in nanoseconds {
            let duration = Duration::from_nanos(duration);
            latencies.observe(class(duration), duration);
        }
        latencies.histogram()
    }

    /// Decodes the buckets as a scraper does: lower and upper bound in seconds, and count.
    fn read(native: &NativeBuckets) -> Vec<(f64, f64, u64)> {
        let bound = |index: i32| (f64::from(index) / f64::from(1 << NATIVE_SCHEMA)).exp2();
        let mut all = vec![(0.0, f64::from(LOWEST_OCTAVE).exp2(), native.zero)];
        let (mut index, mut count) = (0, 0);
        let mut deltas = native.deltas.iter();
        for &(offset, length) in &native.spans {
            index += offset;
            for _ in 0..length {
                count += deltas.next().expect("one for each bucket");
                all.push((bound(index - 1), bound(index), count as u64));
                index += 1;
            }
        }
        assert_eq!(deltas.next(), None);
        all
    }

    #[test]
    fn spans_encode_gaps_between_buckets() {
        // 1 s is the upper bound of bucket 0; 1.05 s is in bucket 1, 2 s in bucket 8.
        let native = histogram(&[
            500,
            1_000_000_000,
            1_050_000_000,
            1_050_000_000,
            2_000_000_000,
        ])
        .native();
        assert_eq!(native.zero, 1);
        assert_eq!(native.spans, [(0, 2), (6, 1)]);
        assert_eq!(native.deltas, [1, 1, -1]);
        let beyond = histogram(&[u64::MAX]).native();
        assert_eq!((beyond.spans, beyond.deltas), (vec![(65, 1)], vec![1]));
        assert_eq!(Histogram::default().native(), NativeBuckets::default());
    }

    proptest! {
        #[test]
        fn durations_are_within_native_histogram_bucket(
            mut durations in prop::collection::vec(prop_oneof![0..5_000_u64, 0..3_000_000_u64, 0..279_000_000_000_u64], 0..60),
            share in 0.0..1.0_f64,
        ) {
            let buckets = read(&histogram(&durations).native());
            let sum: u64 = buckets.iter().map(|(_, _, count)| count).sum();
            prop_assert_eq!(sum, durations.len() as u64);
            prop_assert!(buckets.is_sorted_by(|one, next| one.1 <= next.0));
            for &(below, above, count) in &buckets {
                let within = durations.iter().map(|&it| it as f64 / 1e9);
                let within = within.filter(|&it| (it > below || below == 0.0) && it <= above);
                prop_assert_eq!(within.count() as u64, count, "{} to {} s", below, above);
            }
            // So any quantile is in the same bucket as the exact one; a bucket is 9 % wide.
            durations.sort_unstable();
            let rank = (share * durations.len() as f64) as usize;
            if let Some(&exact) = durations.get(rank) {
                let mut seen = 0;
                let found = buckets.iter().find(|(_, _, count)| {
                    seen += count;
                    seen > rank as u64
                });
                let &(below, above, _) = found.expect("it is in some");
                let exact = exact as f64 / 1e9;
                prop_assert!((exact > below || below == 0.0) && exact <= above);
                prop_assert!(below == 0.0 || below < 0.96e-6 || above / below < 1.0906);
            }
        }
    }
}
