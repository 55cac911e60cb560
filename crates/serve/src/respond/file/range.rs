//! Byte ranges of a file: parsing and evaluating `Range` (RFC 9110 14).

use std::ops::Range;

use crate::limits::{RANGE_GAP, RANGES_MAX};

/// Part of a file to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum RangeSelection {
    /// The whole file: the field is malformed, has an unknown unit, or more ranges than the limit.
    Whole,
    /// One non-empty range.
    One(Range<u64>),
    /// Several non-empty, disjoint ranges in the order of the request.
    Several(Vec<Range<u64>>),
    /// 416: no requested range can be satisfied.
    Nothing,
}

/// One range-spec.
enum Spec {
    /// `first-last`, `first-`.
    From(u64, Option<u64>),
    /// `-length`.
    Suffix(u64),
}

impl RangeSelection {
    /// Evaluates a `Range` value for a file of `length` bytes.
    pub(crate) fn of(value: &[u8], length: u64) -> RangeSelection {
        let Some(specs) = strip_unit(value) else {
            return RangeSelection::Whole;
        };
        let mut ranges = Vec::new();
        let mut count = 0;
        for spec in onrush_http::token_list(specs) {
            count += 1;
            let Some(spec) = Spec::parse(spec).filter(|_| count <= RANGES_MAX) else {
                return RangeSelection::Whole;
            };
            match spec.within(length) {
                // The suffix of an empty file: satisfiable (14.1.2), but Content-Range cannot express it.
                Some(range) if range.is_empty() => return RangeSelection::Whole,
                Some(range) => ranges.push(range),
                None => {}
            }
        }
        if count == 0 {
            return RangeSelection::Whole;
        }
        let mut ranges = coalesce(ranges);
        match ranges.len() {
            0 => RangeSelection::Nothing,
            1 => RangeSelection::One(ranges.remove(0)),
            _ => RangeSelection::Several(ranges),
        }
    }
}

/// The ranges after `bytes=`; units are case-insensitive (RFC 9110 14.1).
fn strip_unit(value: &[u8]) -> Option<&[u8]> {
    let (unit, specs) = value.split_at_checked(6)?;
    unit.eq_ignore_ascii_case(b"bytes=").then_some(specs)
}

impl Spec {
    fn parse(text: &[u8]) -> Option<Spec> {
        let dash = memchr::memchr(b'-', text)?;
        let (first, last) = (&text[..dash], &text[dash + 1..]);
        if first.is_empty() {
            return number(last).map(Spec::Suffix);
        }
        let first = number(first)?;
        if last.is_empty() {
            return Some(Spec::From(first, None));
        }
        let last = number(last)?;
        (first <= last).then_some(Spec::From(first, Some(last)))
    }

    /// The byte range; `None` if it cannot be satisfied.
    fn within(&self, length: u64) -> Option<Range<u64>> {
        match *self {
            Spec::From(first, _) if first >= length => None,
            Spec::From(first, last) => {
                let end = last.map_or(length, |last| last.saturating_add(1).min(length));
                Some(first..end)
            }
            Spec::Suffix(0) => None,
            Spec::Suffix(bytes) => Some(length.saturating_sub(bytes)..length),
        }
    }
}

/// Parses digits; saturates on overflow.
fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |number, byte| {
        let digit = char::from(*byte).to_digit(10)?;
        Some(number.saturating_mul(10).saturating_add(u64::from(digit)))
    })
}

/// Joins ranges that overlap or nearly touch, so that no byte is sent twice (RFC 9110 14.2, 15.3.7.2). A joined range
/// takes the position of its first part in the request.
fn coalesce(ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let mut sorted: Vec<(usize, Range<u64>)> = ranges.into_iter().enumerate().collect();
    sorted.sort_by_key(|(_, range)| range.start);
    let mut joined: Vec<(usize, Range<u64>)> = Vec::with_capacity(sorted.len());
    for (order, range) in sorted {
        match joined.last_mut() {
            Some((first, before)) if range.start <= before.end.saturating_add(RANGE_GAP) => {
                before.end = before.end.max(range.end);
                *first = order.min(*first);
            }
            _ => joined.push((order, range)),
        }
    }
    joined.sort_by_key(|(order, _)| *order);
    joined.into_iter().map(|(_, range)| range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_match_rfc_examples() {
        use RangeSelection::{Nothing, One, Whole};
        // The examples of RFC 9110 14.1.2 are for 10,000 bytes.
        for (value, length, wanted) in [
            ("bytes=0-499", 10_000, One(0..500)),
            ("bytes=500-999", 10_000, One(500..1000)),
            ("bytes=-500", 10_000, One(9500..10_000)),
            ("bytes=9500-", 10_000, One(9500..10_000)),
            ("bytes=0-0", 10_000, One(0..1)),
            ("bytes=0-", 10_000, One(0..10_000)),
            ("bytes=9999-20000", 10_000, One(9999..10_000)),
            ("bytes=-20000", 10_000, One(0..10_000)),
            ("Bytes=1-2", 10_000, One(1..3)),
            ("bytes= 1-2 ", 10_000, One(1..3)),
            ("bytes=,, 1-2 ,", 10_000, One(1..3)),
            ("bytes=0-18446744073709551615", 10, One(0..10)),
            ("bytes=0-99999999999999999999999", 10, One(0..10)),
            ("bytes=10000-", 10_000, Nothing),
            ("bytes=10000-10001", 10_000, Nothing),
            ("bytes=99999999999999999999999-", 10_000, Nothing),
            ("bytes=-0", 10_000, Nothing),
            ("bytes=0-", 0, Nothing),
            ("bytes=0-0", 0, Nothing),
            ("bytes=-5", 0, Whole),
            ("bytes=5-20000,30000-", 10_000, One(5..10_000)),
            // Malformed: ignored.
            ("bytes=", 10_000, Whole),
            ("bytes=,", 10_000, Whole),
            ("bytes", 10_000, Whole),
            ("bytes 0-1", 10_000, Whole),
            ("bytes =0-1", 10_000, Whole),
            ("bytes=a-b", 10_000, Whole),
            ("bytes=1", 10_000, Whole),
            ("bytes=-", 10_000, Whole),
            ("bytes=2-1", 10_000, Whole),
            ("bytes=0-1,2-1", 10_000, Whole),
            ("bytes=1-2-3", 10_000, Whole),
            ("bytes=+1-2", 10_000, Whole),
            ("bytes=1 - 2", 10_000, Whole),
            ("bytes=--1", 10_000, Whole),
            ("seconds=0-1", 10_000, Whole),
            ("", 10_000, Whole),
        ] {
            assert_eq!(
                RangeSelection::of(value.as_bytes(), length),
                wanted,
                "{value}"
            );
        }
    }

    #[test]
    fn adjacent_ranges_are_joined_in_request_order() {
        use RangeSelection::{One, Several};
        for (value, wanted) in [
            ("bytes=0-0,-1", Several(vec![0..1, 9999..10_000])),
            ("bytes=-1,0-0", Several(vec![9999..10_000, 0..1])),
            ("bytes= 0-999, 4500-5499, -1000", {
                Several(vec![0..1000, 4500..5500, 9000..10_000])
            }),
            ("bytes=500-600,601-999", One(500..1000)),
            ("bytes=500-700,601-999", One(500..1000)),
            ("bytes=5000-5009,0-9,5005-6000", {
                Several(vec![5000..6001, 0..10])
            }),
            ("bytes=0-9,20-29", One(0..30)),
            ("bytes=0-,0-,0-,0-", One(0..10_000)),
            ("bytes=8000-9000,1-2,7000-8500,20000-", {
                Several(vec![7000..9001, 1..3])
            }),
        ] {
            assert_eq!(
                RangeSelection::of(value.as_bytes(), 10_000),
                wanted,
                "{value}"
            );
        }
    }

    #[test]
    fn too_many_ranges_get_whole_file() {
        let ranges = |count: usize| {
            let specs: Vec<String> = (0..count)
                .map(|i| format!("{}-{}", i * 1000, i * 1000))
                .collect();
            RangeSelection::of(format!("bytes={}", specs.join(",")).as_bytes(), u64::MAX)
        };
        let RangeSelection::Several(most) = ranges(RANGES_MAX) else {
            panic!("as many as we serve are served");
        };
        assert_eq!(most.len(), RANGES_MAX);
        assert_eq!(ranges(RANGES_MAX + 1), RangeSelection::Whole);
    }

    proptest::proptest! {
        #[test]
        fn ranges_are_disjoint_and_within_file(
            specs in "(Bytes|bytes)=[-0-9, x]{0,60}",
            length in proptest::prop_oneof![0..200u64, proptest::prelude::any::<u64>()],
        ) {
            let mut ranges = match RangeSelection::of(specs.as_bytes(), length) {
                RangeSelection::Whole | RangeSelection::Nothing => Vec::new(),
                RangeSelection::One(range) => vec![range],
                RangeSelection::Several(ranges) => {
                    assert!(ranges.len() > 1);
                    ranges
                }
            };
            ranges.sort_by_key(|range| range.start);
            assert!(ranges.iter().all(|range| range.start < range.end && range.end <= length));
            assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
        }
    }
}
