//! Histogram of latencies in fixed memory.
//!
//! Recording takes a few instructions and never allocates. Callers measure the time, including its start.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

use crate::percentile;

mod encoded;
mod packed;

use self::encoded::{DIGITS, NO_HISTOGRAM};

/// Maximum recorded latency in nanoseconds: one hour, above any timeout of a load run.
pub const VALUE_MAX_NS: u64 = 3_600_000_000_000;

/// A histogram of latencies in nanoseconds, from 1 ns to one hour with three significant digits.
///
/// Values below 2.048 us are exact. The array has 33 powers of two with 1024 counters of 8 bytes each, 270 KiB, but
/// only the powers of two that occur are touched: 8 KiB for latencies between 131 and 262 us. So recording stays within
/// the L2 cache together with the connection's data. Coarser units would halve that and lose the resolution below a
/// microsecond that loopback and cache hits need; 32-bit counters would halve it too and overflow in a long run.
///
/// Each thread has its own histogram; [`merge`](Self::merge) adds them up when they are read.
#[derive(Clone, Debug)]
pub struct Histogram {
    bins: hdrhistogram::Histogram<u64>,
    /// Exact, unlike the bins, which are 0.1 % wide. 128 bits, because 64 bits hold 584 years, which a million waiting
    /// connections accumulate in five hours.
    sum_ns: u128,
    /// Exact; `u64::MAX` while empty.
    min_ns: u64,
    /// Exact, also above [`VALUE_MAX_NS`].
    max_ns: u64,
    saturated: u64,
}

/// One step of [`Histogram::spectrum`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Step {
    /// Upper edge of a bin in nanoseconds.
    pub ns: u64,
    /// Share of all values, 0 to 1, that this step reaches.
    pub share: f64,
    /// Number of values up to `ns`.
    pub count: u64,
}

impl Histogram {
    /// An empty histogram. All memory is allocated here.
    pub fn new() -> Histogram {
        Histogram {
            bins: hdrhistogram::Histogram::new_with_bounds(1, VALUE_MAX_NS, DIGITS)
                .expect("constant bounds are valid"),
            sum_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
            saturated: 0,
        }
    }

    /// Records one latency in nanoseconds. A value above [`VALUE_MAX_NS`] is recorded as that value and counted in
    /// [`saturated`](Self::saturated).
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.sum_ns += u128::from(ns);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        if ns > VALUE_MAX_NS {
            self.saturated += 1;
        }
        self.bins.saturating_record(ns.min(VALUE_MAX_NS));
    }

    /// Records `count` latencies of `ns` nanoseconds, as [`record`](Self::record) does.
    #[inline]
    pub fn record_many(&mut self, ns: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.sum_ns += u128::from(ns) * u128::from(count);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        if ns > VALUE_MAX_NS {
            self.saturated += count;
        }
        self.bins.saturating_record_n(ns.min(VALUE_MAX_NS), count);
    }

    /// Adds the values of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        self.bins
            .add(&other.bins)
            .expect("all histograms here have the same bounds");
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.saturated += other.saturated;
    }

    /// Subtracts `part`, whose values must all be in this histogram. Count and mean are exact, minimum and maximum exact to the bin.
    pub fn without(&self, part: &Histogram) -> Histogram {
        let mut rest = self.clone();
        rest.bins
            .subtract(&part.bins)
            .expect("it is a part of this one");
        if rest.bins.is_empty() {
            return Histogram::new();
        }
        rest.sum_ns = self.sum_ns.saturating_sub(part.sum_ns);
        rest.saturated = self.saturated.saturating_sub(part.saturated);
        rest.max_ns = self.max_ns.min(rest.bins.max());
        rest.min_ns = self.min_ns.max(rest.bins.min());
        rest
    }

    /// Removes all values and keeps the memory.
    pub fn clear(&mut self) {
        self.bins.clear();
        self.sum_ns = 0;
        self.min_ns = u64::MAX;
        self.max_ns = 0;
        self.saturated = 0;
    }

    /// Number of recorded latencies.
    pub fn count(&self) -> u64 {
        self.bins.len()
    }

    /// Number of recorded latencies above [`VALUE_MAX_NS`].
    pub fn saturated(&self) -> u64 {
        self.saturated
    }

    /// Smallest recorded latency in nanoseconds, exact; 0 if empty.
    pub fn min(&self) -> u64 {
        if self.count() == 0 { 0 } else { self.min_ns }
    }

    /// Largest recorded latency in nanoseconds, exact even above [`VALUE_MAX_NS`]; 0 if empty.
    pub fn max(&self) -> u64 {
        self.max_ns
    }

    /// Mean in nanoseconds, exact; 0 if empty.
    pub fn mean(&self) -> f64 {
        if self.count() == 0 {
            0.0
        } else {
            self.sum_ns as f64 / self.count() as f64
        }
    }

    /// Standard deviation in nanoseconds, computed from the bins; 0 if empty.
    pub fn deviation(&self) -> f64 {
        self.bins.stdev()
    }

    /// The latency in nanoseconds that `percentile` (0 to 100) of the values do not exceed: the upper edge of its bin,
    /// so at most 0.1 % above the true value and never below it. 0 if empty.
    ///
    /// Does not check whether there are enough values for the percentile; see [`percentile::supported`].
    pub fn value_at(&self, percentile: f64) -> u64 {
        self.value_at_rank(percentile::rank(self.count(), percentile))
    }

    /// The percentiles that the count supports (see [`percentile::supported`]), each with its latency in nanoseconds.
    pub fn percentiles(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        self.values_at(percentile::supported(self.count()))
    }

    /// Points of the distribution for a curve over a logarithmic axis of `1 / (1 - p)`: ten per decade from the median
    /// to the highest percentile that the count supports.
    pub fn curve(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        self.values_at(percentile::curve(self.count()))
    }

    /// [`value_at`](Self::value_at) for ascending percentiles, in one pass over the bins.
    fn values_at(&self, ascending: impl Iterator<Item = f64>) -> impl Iterator<Item = (f64, u64)> {
        let mut bins = self.bins.iter_recorded();
        let (mut seen, mut value) = (0, 0);
        ascending.map(move |percentile| {
            let rank = percentile::rank(self.count(), percentile);
            while seen < rank {
                let Some(step) = bins.next() else {
                    break;
                };
                seen += step.count_at_value();
                value = self.edge_of(step.value_iterated_to());
            }
            (percentile, value)
        })
    }

    /// Upper edge of the bin of `value`, limited to the exact minimum and maximum.
    fn edge_of(&self, value: u64) -> u64 {
        let edge = self.bins.highest_equivalent(value);
        edge.clamp(self.min(), self.max_ns)
    }

    /// The distribution in steps that halve with the distance to 100 %, `ticks` per half, as HdrHistogram's tools print
    /// and plot it. The last step is the maximum at a share of 1.
    pub fn spectrum(&self, ticks: u32) -> impl Iterator<Item = Step> + '_ {
        let mut count = 0;
        self.bins.iter_quantiles(ticks).map(move |step| {
            count += step.count_since_last_iteration();
            Step {
                ns: self.bins.highest_equivalent(step.value_iterated_to()),
                share: step.quantile_iterated_to(),
                count,
            }
        })
    }

    /// Number of powers of two that the bins cover, and number of bins of the first; the others have half as many.
    pub fn shape(&self) -> (u64, u64) {
        let (buckets, bins) = (u64::from(self.bins.buckets()), self.bins.distinct_values());
        (buckets, 2 * bins as u64 / (buckets + 1))
    }

    /// Interval in nanoseconds that contains the true percentile with at least `confidence` (between 0 and 1), for any
    /// distribution; `None` if the count is too small. Assumes independent samples, which the responses of one run are
    /// not: the true uncertainty is larger, see [`EffectiveSampleSize::ranks`](crate::blocks::EffectiveSampleSize::ranks).
    pub fn interval(&self, percentile: f64, confidence: f64) -> Option<(u64, u64)> {
        let (low, high) = percentile::interval_ranks(self.count(), percentile, confidence)?;
        Some((self.value_at_rank(low), self.value_at_rank(high)))
    }

    /// The `rank`-th smallest latency, counted from 1; the smallest for rank 0, the largest for ranks above the count.
    pub fn value_at_rank(&self, rank: u64) -> u64 {
        let mut seen = 0;
        for step in self.bins.iter_recorded() {
            seen += step.count_at_value();
            if seen >= rank {
                return self.edge_of(step.value_iterated_to());
            }
        }
        self.max_ns
    }

    /// Encodes the bins in HdrHistogram's compressed V2 format.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.bins, &mut bytes)
            .expect("writing to a vector cannot fail");
        bytes
    }

    /// [`encode`](Self::encode) in Base64, as used in JSON and logs.
    pub fn to_base64(&self) -> String {
        STANDARD.encode(self.encode())
    }

    /// Decodes the output of [`to_base64`](Self::to_base64); see [`decode`](Self::decode).
    pub fn from_base64(text: &str) -> Result<Histogram, String> {
        let bytes = STANDARD
            .decode(text)
            .map_err(|error| format!("not Base64: {error}"))?;
        Histogram::decode(&bytes)
    }

    /// Sets the exact mean and maximum in nanoseconds, which [`encode`](Self::encode) does not preserve. No effect if
    /// the histogram is empty.
    pub fn with_exact(mut self, mean: f64, max: u64) -> Histogram {
        if self.count() > 0 {
            self.sum_ns = (mean * self.count() as f64).round() as u128;
            self.max_ns = max;
            self.min_ns = self.min_ns.min(max);
        }
        self
    }

    /// The underlying histogram, for writers of other formats.
    pub(crate) fn bins(&self) -> &hdrhistogram::Histogram<u64> {
        &self.bins
    }

    /// Upper edge in nanoseconds and count of each non-empty bin.
    pub fn recorded(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.bins.iter_recorded().map(|step| {
            let edge = self.bins.highest_equivalent(step.value_iterated_to());
            (edge, step.count_at_value())
        })
    }

    /// Number of values up to `ns`, accurate to a bin: values within 0.1 % of `ns` may be on either side.
    pub fn count_up_to(&self, ns: u64) -> u64 {
        self.recorded()
            .take_while(|(edge, _)| *edge <= ns)
            .map(|(_, count)| count)
            .sum()
    }

    /// Decodes the output of [`encode`](Self::encode). Sum, minimum and maximum then come from the bins and are
    /// accurate to 0.1 %. Fails with a message if the bytes are not such a histogram, or if its bounds differ.
    pub fn decode(bytes: &[u8]) -> Result<Histogram, String> {
        let plain = encoded::plain(bytes)?;
        let read: hdrhistogram::Histogram<u64> =
            Deserializer::new()
                .deserialize(&mut &plain[..])
                .map_err(|error| format!("{NO_HISTOGRAM}: {error}"))?;
        let mut histogram = Histogram::new();
        histogram
            .bins
            .add(&read)
            .map_err(|error| format!("an HdrHistogram with values beyond one hour: {error}"))?;
        if !read.is_empty() {
            histogram.min_ns = read.min();
            histogram.max_ns = read.max();
            histogram.sum_ns = (read.mean() * read.len() as f64) as u128;
        }
        Ok(histogram)
    }
}

impl FromIterator<u64> for Histogram {
    fn from_iter<I: IntoIterator<Item = u64>>(values: I) -> Histogram {
        let mut histogram = Histogram::new();
        values.into_iter().for_each(|value| histogram.record(value));
        histogram
    }
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_histogram_has_no_percentiles() {
        let empty = Histogram::new();
        assert_eq!(
            (
                empty.count(),
                empty.min(),
                empty.max(),
                empty.value_at(99.0)
            ),
            (0, 0, 0, 0)
        );
        assert_eq!(empty.mean(), 0.0);
        assert_eq!(empty.percentiles().count(), 0);
        assert_eq!(empty.curve().count(), 0);
        assert_eq!(empty.interval(50.0, 0.95), None);
    }

    #[test]
    fn values_below_two_microseconds_are_exact() {
        for value in 0..2048 {
            assert_eq!(Histogram::from_iter([value]).value_at(50.0), value);
            assert_eq!(Histogram::from_iter([value, 2047]).value_at(50.0), value);
        }
    }

    #[test]
    fn percentile_error_is_at_most_one_thousandth() {
        let mut value = 1;
        while value < VALUE_MAX_NS {
            let read = Histogram::from_iter([value, VALUE_MAX_NS]).value_at(50.0);
            assert!(
                read >= value && read as f64 <= value as f64 * 1.001,
                "{value} was read as {read}"
            );
            value += value / 7 + 1;
        }
    }

    #[test]
    fn percentile_iterators_match_value_at() {
        let mut histogram = Histogram::new();
        for step in 0..100_000_u64 {
            histogram.record_many(1 + step * step % 7_919_317, 1 + step % 3);
        }
        let all: Vec<(f64, u64)> = histogram.curve().chain(histogram.percentiles()).collect();
        assert!(all.len() > 40, "{}", all.len());
        for (percentile, value) in all {
            assert_eq!(value, histogram.value_at(percentile), "{percentile}");
        }
    }

    #[test]
    fn mean_minimum_and_maximum_are_exact() {
        let of_three = Histogram::from_iter([1_000_001, 2_000_003, 3_000_011]);
        assert_eq!((of_three.min(), of_three.max()), (1_000_001, 3_000_011));
        assert_eq!(of_three.mean(), 2_000_005.0);
        assert_eq!(of_three.value_at(100.0), 3_000_011);
    }

    #[test]
    fn values_above_an_hour_saturate() {
        let of_two = Histogram::from_iter([10, VALUE_MAX_NS * 2]);
        assert_eq!(
            (of_two.count(), of_two.saturated(), of_two.max()),
            (2, 1, VALUE_MAX_NS * 2)
        );
        let read = of_two.value_at(100.0);
        assert!(read >= VALUE_MAX_NS && read as f64 <= VALUE_MAX_NS as f64 * 1.001);
    }

    #[test]
    fn merge_equals_recording_into_one() {
        let (left, right) = (1..500_u64, 400..9_000_u64);
        let mut merged = Histogram::from_iter(left.clone().map(|value| value * 977));
        merged.merge(&Histogram::from_iter(
            right.clone().map(|value| value * 977),
        ));
        let whole = Histogram::from_iter(left.chain(right).map(|value| value * 977));
        assert_eq!(
            (merged.count(), merged.min(), merged.max()),
            (whole.count(), whole.min(), whole.max())
        );
        assert_eq!(merged.mean(), whole.mean());
        assert!(merged.curve().eq(whole.curve()));
        merged.merge(&Histogram::new());
        assert_eq!((merged.min(), merged.max()), (whole.min(), whole.max()));
    }

    #[test]
    fn clear_empties_histogram() {
        let mut cleared = Histogram::from_iter([5, VALUE_MAX_NS + 1]);
        cleared.clear();
        assert_eq!(
            (
                cleared.count(),
                cleared.saturated(),
                cleared.min(),
                cleared.max()
            ),
            (0, 0, 0, 0)
        );
        assert_eq!(cleared.mean(), 0.0);
    }

    #[test]
    fn percentiles_of_sequence_equal_ranks() {
        let of_thousand = Histogram::from_iter(1..=1000);
        for (percentile, value) in [
            (0.0, 1),
            (0.1, 1),
            (50.0, 500),
            (90.0, 900),
            (99.9, 999),
            (100.0, 1000),
        ] {
            assert_eq!(of_thousand.value_at(percentile), value, "at {percentile}");
        }
        assert_eq!(of_thousand.percentiles().last(), Some((99.0, 990)));
    }

    #[test]
    fn standard_deviation_is_exact() {
        assert_eq!(
            Histogram::from_iter([100, 200, 300, 400]).deviation(),
            12_500_f64.sqrt()
        );
        assert_eq!(
            (
                Histogram::from_iter([5; 9]).deviation(),
                Histogram::new().deviation()
            ),
            (0.0, 0.0)
        );
    }

    #[test]
    fn spectrum_steps_halve_and_end_at_maximum() {
        let of_thousand = Histogram::from_iter(1..=1000);
        let steps: Vec<Step> = of_thousand.spectrum(2).collect();
        let shares: Vec<f64> = steps.iter().map(|step| step.share).collect();
        assert_eq!(shares[..6], [0.0, 0.25, 0.5, 0.625, 0.75, 0.8125]);
        let (first, last) = (steps[0], steps[steps.len() - 1]);
        assert_eq!((first.ns, first.count), (1, 1));
        assert_eq!((last.ns, last.share, last.count), (1000, 1.0, 1000));
        assert!(steps.iter().all(|step| step.count == step.ns));
        assert_eq!(Histogram::new().spectrum(5).count(), 0);
    }

    #[test]
    fn histogram_range_covers_one_hour() {
        let (buckets, first) = Histogram::new().shape();
        assert_eq!(first, 2048);
        assert!(first << (buckets - 1) > VALUE_MAX_NS && first << (buckets - 2) <= VALUE_MAX_NS);
    }

    #[test]
    fn percentile_interval_narrows_with_count() {
        let few = Histogram::from_iter((1..=100).map(|value| value * 10))
            .interval(50.0, 0.95)
            .expect("100 values");
        let many = Histogram::from_iter(1..=1000)
            .interval(50.0, 0.95)
            .expect("1000 values");
        assert!(few.0 < 500 && 500 < few.1 && many.0 < 500 && 500 < many.1);
        assert!(many.1 - many.0 < few.1 - few.0);
        assert_eq!(Histogram::from_iter(1..=100).interval(99.9, 0.95), None);
    }

    #[test]
    fn count_up_to_includes_bound() {
        let of_thousand = Histogram::from_iter(1..=1000);
        for (bound, count) in [(0, 0), (1, 1), (500, 500), (1000, 1000), (9999, 1000)] {
            assert_eq!(of_thousand.count_up_to(bound), count, "up to {bound}");
        }
        assert_eq!(of_thousand.recorded().count(), 1000);
    }

    #[test]
    fn encoded_histogram_round_trips() {
        let before = Histogram::from_iter((1..3000).map(|value| value * value * 131));
        let after = Histogram::decode(&before.encode()).expect("our own bytes");
        assert_eq!(after.count(), before.count());
        assert_eq!(after.value_at(90.0), before.value_at(90.0));
        assert!((after.mean() / before.mean() - 1.0).abs() < 0.001);
        assert!(Histogram::decode(b"something else").is_err());
        let text = before.to_base64();
        let exact = Histogram::from_base64(&text)
            .expect("our own text")
            .with_exact(before.mean(), before.max());
        assert!(exact.curve().eq(before.curve()));
        assert_eq!((exact.mean(), exact.max()), (before.mean(), before.max()));
        assert!(Histogram::from_base64("no, not this").is_err());
        assert_eq!(
            Histogram::decode(&Histogram::new().encode())
                .expect("our own bytes")
                .max(),
            0
        );
    }
}
