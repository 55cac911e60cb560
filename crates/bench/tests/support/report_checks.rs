//! Properties of arbitrary bytes as the output of a client, for property tests and fuzzing.

use onrush_bench::collect::client::{ClientReport, read};
use onrush_bench::scenario::Results;

/// For every client, the report has valid numbers, or there is an error.
pub(crate) fn any(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for results in Results::ALL {
        match read(results, &text) {
            Ok(report) => can_be_measured(&report),
            Err(why) => assert!(why.starts_with("expected "), "{why}"),
        }
    }
}

fn can_be_measured(report: &ClientReport) {
    let latency = report.latency.iter();
    let latencies = latency.flat_map(|latency| {
        let percentiles = latency.percentiles.iter().map(|value| value.us);
        latency
            .mean
            .into_iter()
            .chain(latency.max)
            .chain(percentiles)
    });
    let rows = report.seconds.iter().flat_map(|row| [row.t, row.rps]);
    let numbers = [report.duration_s, report.rps].into_iter();
    for number in numbers
        .chain(report.bytes_per_s)
        .chain(latencies)
        .chain(rows)
    {
        assert!(number.is_finite() && number >= 0.0, "{number}: {report:?}");
    }
}
