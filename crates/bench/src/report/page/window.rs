//! Common parts of a trial's charts: title, and positions of its samples within the window.

use crate::outcome::{Sample, Trial, VariantOutcome};

pub(super) fn title(variant: &VariantOutcome, trial: &Trial, what: &str) -> String {
    format!("{}, round {}: {what}", variant.name, trial.round)
}

pub(super) fn span(trial: &Trial, sample: &Sample) -> Option<(f64, f64)> {
    let to = sample.t.min(trial.window_s);
    let from = (sample.t - sample.span_s).clamp(0.0, trial.window_s);
    (from < to).then_some((from, to))
}

pub(super) fn seconds_text(t: f64) -> String {
    format!("{t:.1} s")
}
