//! Histograms of a report with the exact means and maxima.

use crate::record::figures::Kind;
use crate::record::times::Times;
use crate::report::Report;

/// Returns the times of a result: its histograms with the exact means and maxima.
///
/// # Errors
/// When the result has no histograms, or one cannot be decoded.
pub(crate) fn times_of(report: &Report) -> Result<Times, String> {
    let histograms = report.histograms.as_ref().ok_or(
        "it has no histograms, so an older onrush wrote it; percentiles alone can be neither merged nor compared",
    )?;
    let mut times = histograms.times()?;
    for kind in Kind::ALL {
        let latency = report.latency_of(kind);
        if let (Some(mean), Some(max)) = (latency.mean, latency.max) {
            let bins = std::mem::take(times.of_mut(kind));
            let max = (max * 1000.0).round() as u64;
            let max = match latency.is_at_least("max") {
                // The maximum includes the longest wait of a request without a response, which is not in these bins.
                true => max.min(bins.max()),
                false => max,
            };
            *times.of_mut(kind) = bins.with_exact(mean * 1000.0, max);
        }
    }
    Ok(times)
}
