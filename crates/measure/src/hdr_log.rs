//! Histograms over time as an HdrHistogram interval log, version 1.3: the text format that HistogramLogProcessor,
//! HistogramLogAnalyzer and their ports in other languages read.

use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogWriterBuilder, IntervalLogWriterError, Tag,
};

use crate::histogram::Histogram;

/// Values are in nanoseconds; the maximum column, meant for people, is in milliseconds, as is the default of the
/// HdrHistogram tools.
const NS_PER_MS: f64 = 1_000_000.0;

/// One line of a log: the histogram of an interval.
#[derive(Clone, Copy, Debug)]
pub struct Interval<'a> {
    /// Time from the start of the run to the start of the interval.
    pub start: Duration,
    /// Length of the interval.
    pub length: Duration,
    /// Name of the measured quantity, such as `response`, without blanks or commas.
    pub tag: &'static str,
    /// The values.
    pub histogram: &'a Histogram,
}

/// Writes a log of `intervals` in the order of their starts. The run started at `began`, a duration since
/// 1970-01-01T00:00:00Z; `title` becomes a comment.
///
/// # Errors
/// Returns an error of `out`.
///
/// # Panics
/// If a tag contains a blank, a comma or a line end.
pub fn write<'a>(
    out: &mut impl Write,
    title: &str,
    began: Duration,
    intervals: impl IntoIterator<Item = Interval<'a>>,
) -> io::Result<()> {
    let began = SystemTime::UNIX_EPOCH + began;
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment(&format!("[{}]", title.replace(['\n', '\r'], " ")))
        .add_comment("[Histogram log format version 1.3]")
        .with_base_time(began)
        .with_start_time(began)
        .with_max_value_divisor(NS_PER_MS)
        .begin_log_with(out, &mut serializer)?;
    for interval in intervals {
        let tag = Tag::new(interval.tag).expect("tags are constants without blanks");
        log.write_histogram(
            interval.histogram.bins(),
            interval.start,
            interval.length,
            Some(tag),
        )
        .map_err(|error| match error {
            IntervalLogWriterError::IoError(error) => error,
            IntervalLogWriterError::SerializeError(error) => io::Error::other(error),
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;

    #[test]
    fn hdr_log_round_trips() {
        let mut histograms = [Histogram::new(), Histogram::new()];
        (1..1000).for_each(|value| histograms[0].record(value * 1000));
        histograms[1].record(1_400_000_000);
        let intervals = histograms.iter().zip(0..).map(|(histogram, at)| Interval {
            start: Duration::from_secs(at),
            length: Duration::from_secs(1),
            tag: "response",
            histogram,
        });
        let mut log = Vec::new();
        write(&mut log, "a\nrun", Duration::from_millis(1_500), intervals)
            .expect("a vector takes every byte");
        let entries: Vec<LogEntry<'_>> = IntervalLogIterator::new(&log)
            .collect::<Result<_, _>>()
            .expect("our own log");
        let [
            LogEntry::StartTime(start),
            LogEntry::BaseTime(base),
            LogEntry::Interval(first),
            LogEntry::Interval(second),
        ] = &entries[..]
        else {
            panic!("{entries:?}");
        };
        assert_eq!(
            (*start, *base),
            (Duration::from_millis(1500), Duration::from_millis(1500))
        );
        assert_eq!(first.tag(), Tag::new("response"));
        assert_eq!(second.start_timestamp(), Duration::from_secs(1));
        assert!((second.max() - 1400.0).abs() < 2.0, "milliseconds");
        for (entry, written) in [first, second].into_iter().zip(&histograms) {
            let read = Histogram::from_base64(entry.encoded_histogram()).expect("our own text");
            assert_eq!(read.count(), written.count());
            assert!(read.recorded().eq(written.recorded()));
        }
    }
}
