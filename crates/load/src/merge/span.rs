//! Time span of several results.

use super::part::Part;

/// Span from the first start to the last end of all parts, in seconds.
pub(super) struct Span {
    pub(super) began: f64,
    pub(super) last_start: f64,
    pub(super) ended: f64,
    /// From the last start to the first end.
    pub(super) together: f64,
}

impl Span {
    pub(super) fn of(parts: &[Part]) -> Result<Span, String> {
        let mut span = Span {
            began: f64::INFINITY,
            last_start: f64::NEG_INFINITY,
            ended: f64::NEG_INFINITY,
            together: 0.0,
        };
        let mut first_end = f64::INFINITY;
        for part in parts {
            let began = part.report.began_unix_s.ok_or_else(|| {
                format!("{} cannot be merged: it has no start time, so it was stopped before the start, or an older \
                    onrush wrote it", part.name)
            })?;
            let ended = began + part.report.duration_s;
            span.began = span.began.min(began);
            span.ended = span.ended.max(ended);
            span.last_start = span.last_start.max(began);
            first_end = first_end.min(ended);
        }
        if first_end <= span.last_start {
            return Err("cannot merge: one run ended before another began, so they were not one load (or the clocks of \
                their machines differ). To compare the runs: onrush load compare".to_owned());
        }
        span.together = first_end - span.last_start;
        Ok(span)
    }

    pub(super) fn length(&self) -> f64 {
        self.ended - self.began
    }
}

// Rounds to milliseconds.

pub(super) fn round_to_thousandths(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
