//! Compact encoding of a histogram, to keep thousands of seconds in memory.
//!
//! ```text
//! count, minimum, maximum, saturated, sum (two halves), then for each non-empty bin:
//! number of bins skipped since the previous one, count
//! ```
//! All numbers are little-endian base-128 varints. The sum of two packed histograms never takes more bytes than both
//! together: gaps only shrink, and the varint of a sum is not longer than both of its parts.

use super::{Histogram, VALUE_MAX_NS};

/// Values below have a bin each; each power of two above has half as many bins (three significant digits).
const EXACT: u64 = 2048;

/// Index of the bin of `value`.
fn bin_of(value: u64) -> u64 {
    let shift = value.max(EXACT).ilog2() - EXACT.ilog2() + u32::from(value >= EXACT);
    u64::from(shift) * (EXACT / 2) + (value >> shift)
}

/// Smallest value of a bin.
fn value_of(bin: u64) -> u64 {
    if bin < EXACT {
        return bin;
    }
    let shift = bin / (EXACT / 2) - 1;
    (bin - shift * (EXACT / 2)) << shift
}

impl Histogram {
    /// Appends the encoded histogram to `bytes`.
    pub fn pack(&self, bytes: &mut Vec<u8>) {
        let sum = [self.sum_ns as u64, (self.sum_ns >> 64) as u64];
        for number in [self.count(), self.min(), self.max_ns, self.saturated] {
            write(number, bytes);
        }
        sum.into_iter().for_each(|half| write(half, bytes));
        let mut next = 0;
        for step in self.bins.iter_recorded() {
            let bin = bin_of(step.value_iterated_to());
            write(bin - next, bytes);
            write(step.count_at_value(), bytes);
            next = bin + 1;
        }
    }

    /// Adds an encoded histogram, without loss. Returns `None` if the bytes are malformed; a part may have been added
    /// by then.
    pub fn unpack(&mut self, mut bytes: &[u8]) -> Option<()> {
        let bytes = &mut bytes;
        let [count, min, max, saturated] = [read(bytes)?, read(bytes)?, read(bytes)?, read(bytes)?];
        let [low, high] = [read(bytes)?, read(bytes)?];
        if count > 0 {
            self.min_ns = self.min_ns.min(min);
        }
        self.max_ns = self.max_ns.max(max);
        self.saturated += saturated;
        self.sum_ns += u128::from(low) | u128::from(high) << 64;
        let mut next = 0u64;
        while !bytes.is_empty() {
            let bin = next.checked_add(read(bytes)?)?;
            if bin > bin_of(VALUE_MAX_NS) {
                return None;
            }
            self.bins.saturating_record_n(value_of(bin), read(bytes)?);
            next = bin + 1;
        }
        Some(())
    }
}

fn write(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn read(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packed(histogram: &Histogram) -> Vec<u8> {
        let mut bytes = Vec::new();
        histogram.pack(&mut bytes);
        bytes
    }

    fn values() -> impl Strategy<Value = Vec<u64>> {
        let value = (0u32..44, any::<u64>()).prop_map(|(bits, random)| random & ((1 << bits) - 1));
        prop::collection::vec(value, 0..200)
    }

    #[test]
    fn bins_are_contiguous() {
        for bin in 0..bin_of(VALUE_MAX_NS) {
            assert_eq!(bin_of(value_of(bin)), bin);
            assert_eq!(bin_of(value_of(bin + 1) - 1), bin);
        }
    }

    #[test]
    fn invalid_packed_bytes_are_refused() {
        for bytes in [&b""[..], b"\0\0", &[0xff; 40], &[0, 0, 0, 0, 0, 0, 1]] {
            assert_eq!(Histogram::new().unpack(bytes), None, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn packed_histograms_round_trip_and_add(values in values(), more in values()) {
            let [one, other] = [&values, &more].map(|values| Histogram::from_iter(values.iter().copied()));
            let mut sum = Histogram::new();
            prop_assert_eq!(sum.unpack(&packed(&one)), Some(()));
            prop_assert_eq!(sum.unpack(&packed(&other)), Some(()));
            let mut expected = one;
            expected.merge(&other);
            prop_assert_eq!(sum.bins == expected.bins, true);
            prop_assert_eq!(
                (sum.count(), sum.min(), sum.max(), sum.saturated(), sum.sum_ns),
                (
                    expected.count(),
                    expected.min(),
                    expected.max(),
                    expected.saturated(),
                    expected.sum_ns
                )
            );
        }

        #[test]
        fn packed_sum_is_not_larger_than_parts(values in values(), more in values()) {
            let [one, other] = [&values, &more].map(|values| Histogram::from_iter(values.iter().copied()));
            let parts = packed(&one).len() + packed(&other).len();
            let mut sum = one;
            sum.merge(&other);
            prop_assert!(packed(&sum).len() <= parts);
        }
    }
}
