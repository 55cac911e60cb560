//! What charts of one trial have in common: its name, and where its samples lie in its window.

use crate::outcome::{Sample, Trial, VariantOutcome};

/// The title of a chart of one trial.
pub(super) fn title(variant: &VariantOutcome, trial: &Trial, what: &str) -> String {
    format!("{}, round {}: {what}", variant.name, trial.round)
}

/// The span of a sample within its window.
pub(super) fn span(trial: &Trial, sample: &Sample) -> Option<(f64, f64)> {
    let to = sample.t.min(trial.window_s);
    let from = (sample.t - sample.span_s).clamp(0.0, trial.window_s);
    (from < to).then_some((from, to))
}

/// The text of a moment.
pub(super) fn seconds_text(t: f64) -> String {
    format!("{t:.1} s")
}
