//! Output of wrk2: that of wrk plus a rate, corrected latencies and more percentiles.

use super::report::{ClientReport, counted_from};
use super::wrk;
use crate::scenario::LatencyFrom;

/// wrk2 prints this when it restarts its measurement, 10 s after the start.
const CALIBRATED: &str = "Thread calibration:";

pub(super) fn read(text: &str) -> Result<ClientReport, String> {
    let mut report = wrk::totals(text)?;
    report.latency = counted_from(LatencyFrom::Due, report.latency);
    report.notes.push(
        "latencies of wrk2 are measured from the scheduled start of a request (corrected for coordinated omission)".to_owned(),
    );
    if text.contains(CALIBRATED) {
        let words = "latencies of wrk2 exclude the first 10 s, in which it calibrates itself";
        report.notes.push(words.to_owned());
    }
    Ok(report)
}
