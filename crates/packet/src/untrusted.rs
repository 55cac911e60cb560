//! Checks for arbitrary input, shared by tests and fuzz targets.

use crate::header::{HEADER_BYTES, Header};
use crate::memcached::Frame;
use crate::report::{Report, read_report_request};
use crate::tally::Counter;

/// Decodes any datagram and encodes it again.
///
/// # Panics
/// If the result differs from the input.
pub fn datagram(input: &[u8]) {
    if let Some(header) = Header::read(input) {
        assert_eq!(header.bytes(), input[..HEADER_BYTES], "a header");
    }
    if let Some(report) = Report::read(input) {
        assert_eq!(Report::read(&report.bytes()), Some(report), "a report");
    }
    if let Some((flow, _)) = read_report_request(input) {
        let header = Header::read(input).expect("a question has a header");
        assert_eq!(header.flow, flow, "a question");
    }
    if let Ok((frame, payload)) = Frame::read(input) {
        let again = [&frame.bytes()[..], payload].concat();
        assert_eq!(again, input, "a frame of memcached");
    }
}

/// Counts datagrams with any sequence numbers, four bytes each.
///
/// # Panics
/// If a datagram is not counted as exactly one of received, duplicated and too late.
pub fn arrivals(input: &[u8]) {
    let mut counter = Counter::default();
    let (numbers, _) = input.as_chunks::<4>();
    for (at, number) in (0_u64..).zip(numbers) {
        let header = Header {
            kind: crate::header::Kind::Data,
            flow: crate::header::Flow { run: 1, number: 1 },
            sequence: u32::from_be_bytes(*number),
            sent: at,
        };
        counter.record(&header, HEADER_BYTES, at);
        let tally = counter.tally();
        assert_eq!(tally.received + tally.duplicated + tally.too_late, at + 1);
        assert!(tally.reordered <= tally.received);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::header::MARK;

    proptest! {
        #[test]
        fn arbitrary_datagrams_round_trip_or_fail(
            kind in 0x10_u8..0x15,
            rest in proptest::collection::vec(any::<u8>(), 0..120),
        ) {
            datagram(&rest);
            datagram(&[&[MARK, kind][..], &rest].concat());
        }

        #[test]
        fn each_datagram_has_one_outcome(
            numbers in proptest::collection::vec(
                prop_oneof![any::<u32>(), 0_u32..50, 65_500_u32..65_600],
                0..200,
            ),
        ) {
            let bytes = numbers.iter().flat_map(|number| number.to_be_bytes());
            arrivals(&bytes.collect::<Vec<u8>>());
        }
    }
}
