//! Latencies in fixed memory: what was recorded, and what may be said about it.
//!
//! Recording is a handful of instructions and never allocates. It does not know what the time is,
//! nor whether a value was measured from the right start: that is the business of whoever records.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

use crate::percentile;

mod encoded;
mod packed;

use self::encoded::{DIGITS, NO_HISTOGRAM};

/// The longest latency told apart from longer ones, in nanoseconds: one hour, beyond any timeout of
/// a load run.
pub const VALUE_MAX_NS: u64 = 3_600_000_000_000;

/// A histogram of latencies in nanoseconds, from 1 ns to one hour with three significant digits.
///
/// Values below 2.048 us are exact. The array holds 33 powers of two with 1024 counters of 8 bytes
/// each, 270 KiB, but only the powers of two that occur are ever touched: 8 KiB for latencies
/// between, say, 131 and 262 us, so recording stays within the second-level cache beside the
/// connection's own data. Coarser units would shrink that to 4 KiB and give away the resolution
/// below a microsecond that a loopback or a cache hit needs; 32-bit counters would shrink it too
/// and overflow in a long run.
///
/// Each thread has its own; [`merge`](Self::merge) joins them when they are read.
#[derive(Clone, Debug)]
pub struct Histogram {
    bins: hdrhistogram::Histogram<u64>,
    /// Exact, because bins are 0.1 % wide. 128 bits: 64 would hold 584 years of latencies, which a
    /// million connections wait in five hours.
    sum_ns: u128,
    /// Exact; `u64::MAX` while empty.
    min_ns: u64,
    /// Exact, also above [`VALUE_MAX_NS`].
    max_ns: u64,
    saturated: u64,
}

/// A step of [`Histogram::spectrum`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Step {
    /// The upper edge of a bin.
    pub ns: u64,
    /// The share of all values, 0 to 1, that it had to reach.
    pub share: f64,
    /// How many values do not exceed it.
    pub count: u64,
}

impl Histogram {
    /// An empty histogram. Allocates all the memory it will ever use.
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

    /// Records one latency in nanoseconds. A value above [`VALUE_MAX_NS`] is counted as that value,
    /// and in [`saturated`](Self::saturated).
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

    /// Records `count` latencies of `ns` nanoseconds; as [`record`](Self::record).
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

    /// Adds everything `other` holds.
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

    /// Forgets everything, keeping the memory.
    pub fn clear(&mut self) {
        self.bins.clear();
        self.sum_ns = 0;
        self.min_ns = u64::MAX;
        self.max_ns = 0;
        self.saturated = 0;
    }

    /// How many latencies were recorded.
    pub fn count(&self) -> u64 {
        self.bins.len()
    }

    /// How many of them were above [`VALUE_MAX_NS`].
    pub fn saturated(&self) -> u64 {
        self.saturated
    }

    /// The smallest latency recorded, exactly, in nanoseconds; 0 when empty.
    pub fn min(&self) -> u64 {
        if self.count() == 0 { 0 } else { self.min_ns }
    }

    /// The largest latency recorded, exactly, in nanoseconds, even above [`VALUE_MAX_NS`]; 0 when
    /// empty.
    pub fn max(&self) -> u64 {
        self.max_ns
    }

    /// The mean, exactly (not of bins), in nanoseconds; 0 when empty.
    pub fn mean(&self) -> f64 {
        if self.count() == 0 {
            0.0
        } else {
            self.sum_ns as f64 / self.count() as f64
        }
    }

    /// The standard deviation, of bins, in nanoseconds; 0 when empty.
    pub fn deviation(&self) -> f64 {
        self.bins.stdev()
    }

    /// The latency in nanoseconds that `percentile` (0 to 100) of the recorded ones do not exceed:
    /// the upper edge of the bin that holds it, so at most 0.1 % above the true value and never
    /// below it. 0 when empty.
    ///
    /// Whether the count supports that percentile at all is [`percentile::supported`]'s answer, not
    /// this one's.
    pub fn value_at(&self, percentile: f64) -> u64 {
        self.value_at_rank(percentile::rank(self.count(), percentile))
    }

    /// The percentiles the count supports, each with its latency in nanoseconds: see
    /// [`percentile::supported`].
    pub fn percentiles(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        self.values_at(percentile::supported(self.count()))
    }

    /// Points of the whole distribution for a curve over a logarithmic axis of `1 / (1 - p)`: ten
    /// per decade from the median up to the highest percentile the count supports.
    pub fn curve(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        self.values_at(percentile::curve(self.count()))
    }

    /// [`value_at`](Self::value_at) each of these, none of which is lower than the one before: one pass over the bins for all.
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

    /// What is said of a value in the same bin as `value`.
    fn edge_of(&self, value: u64) -> u64 {
        let edge = self.bins.highest_equivalent(value);
        edge.clamp(self.min(), self.max_ns)
    }

    /// The whole distribution in steps that halve with the distance to 100 %, `ticks` of them within each half: what
    /// HdrHistogram's tools print and plot. The last step is the largest value, at a share of 1.
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

    /// How many powers of two the bins cover, and into how many bins the first is divided; the others have half as many.
    pub fn shape(&self) -> (u64, u64) {
        let (buckets, bins) = (u64::from(self.bins.buckets()), self.bins.distinct_values());
        (buckets, 2 * bins as u64 / (buckets + 1))
    }

    /// The latencies, in nanoseconds, between which the true percentile lies with at least
    /// `confidence` (between 0 and 1), whatever the distribution; `None` where the count is too
    /// small to say. It assumes independent samples, which the responses of one run are not: the true
    /// uncertainty is larger, see [`Effective::ranks`](crate::blocks::Effective::ranks).
    pub fn interval(&self, percentile: f64, confidence: f64) -> Option<(u64, u64)> {
        let (low, high) = percentile::interval_ranks(self.count(), percentile, confidence)?;
        Some((self.value_at_rank(low), self.value_at_rank(high)))
    }

    /// The value of the `rank`-th smallest latency, counted from 1; the smallest for 0, the largest
    /// beyond the count.
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

    /// The bins in the field's interchange format (HdrHistogram V2, compressed), which other tools
    /// read.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.bins, &mut bytes)
            .expect("a vector takes every byte");
        bytes
    }

    /// [`encode`](Self::encode) as text, in Base64: the form in which histograms stand in JSON and in logs.
    pub fn to_base64(&self) -> String {
        STANDARD.encode(self.encode())
    }

    /// Reads what [`to_base64`](Self::to_base64) wrote; as [`decode`](Self::decode).
    pub fn from_base64(text: &str) -> Result<Histogram, String> {
        let bytes = STANDARD
            .decode(text)
            .map_err(|error| format!("not Base64: {error}"))?;
        Histogram::decode(&bytes)
    }

    /// The same bins with the mean and the largest value that are known from elsewhere, since
    /// [`encode`](Self::encode) keeps neither exactly. Both in nanoseconds; they count only when there are values.
    pub fn with_exact(mut self, mean: f64, max: u64) -> Histogram {
        if self.count() > 0 {
            self.sum_ns = (mean * self.count() as f64).round() as u128;
            self.max_ns = max;
            self.min_ns = self.min_ns.min(max);
        }
        self
    }

    /// The bins as the field's tools know them, for what writes them in other formats.
    pub(crate) fn bins(&self) -> &hdrhistogram::Histogram<u64> {
        &self.bins
    }

    /// The bins that hold something: each bin's largest value in nanoseconds and how many it holds.
    pub fn recorded(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.bins.iter_recorded().map(|step| {
            let edge = self.bins.highest_equivalent(step.value_iterated_to());
            (edge, step.count_at_value())
        })
    }

    /// How many values `ns` is not below, to the bin: 0.1 % of `ns` may fall on either side.
    pub fn count_up_to(&self, ns: u64) -> u64 {
        self.recorded()
            .take_while(|(edge, _)| *edge <= ns)
            .map(|(_, count)| count)
            .sum()
    }

    /// Reads what [`encode`](Self::encode) wrote. Sum, smallest and largest are then those of the
    /// bins, so within 0.1 %. Fails, saying why, when the bytes are something else or the histogram
    /// has other bounds.
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
    /// The values, each recorded once.
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
    fn an_empty_histogram_says_zero_and_supports_no_percentile() {
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
    fn percentiles_are_never_below_the_true_value_and_at_most_a_thousandth_above() {
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
    fn many_percentiles_are_what_each_of_them_is() {
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
    fn values_above_an_hour_saturate_are_counted_and_still_show_in_the_maximum() {
        let of_two = Histogram::from_iter([10, VALUE_MAX_NS * 2]);
        assert_eq!(
            (of_two.count(), of_two.saturated(), of_two.max()),
            (2, 1, VALUE_MAX_NS * 2)
        );
        let read = of_two.value_at(100.0);
        assert!(read >= VALUE_MAX_NS && read as f64 <= VALUE_MAX_NS as f64 * 1.001);
    }

    #[test]
    fn merging_is_the_same_as_recording_into_one() {
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
    fn clearing_leaves_an_empty_histogram() {
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
    fn percentiles_of_one_to_thousand_are_their_own_ranks() {
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
    fn the_deviation_is_that_of_the_values() {
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
    fn the_spectrum_comes_nearer_to_all_values_in_halving_steps_and_ends_with_the_largest() {
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
    fn the_shape_holds_an_hour_with_three_digits() {
        let (buckets, first) = Histogram::new().shape();
        assert_eq!(first, 2048);
        assert!(first << (buckets - 1) > VALUE_MAX_NS && first << (buckets - 2) <= VALUE_MAX_NS);
    }

    #[test]
    fn the_interval_holds_the_percentile_and_narrows_with_the_count() {
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
    fn values_up_to_a_bound_are_counted_to_the_bin() {
        let of_thousand = Histogram::from_iter(1..=1000);
        for (bound, count) in [(0, 0), (1, 1), (500, 500), (1000, 1000), (9999, 1000)] {
            assert_eq!(of_thousand.count_up_to(bound), count, "up to {bound}");
        }
        assert_eq!(of_thousand.recorded().count(), 1000);
    }

    #[test]
    fn what_was_encoded_decodes_to_the_same_bins() {
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
