//! `verdict` in the results of `onrush load`.

use serde::Deserialize;

#[derive(Deserialize, Default)]
pub(super) struct VerdictJson {
    #[serde(default)]
    reasons: Vec<ReasonJson>,
}

#[derive(Deserialize)]
struct ReasonJson {
    state: String,
    what: String,
    measured: String,
    bound: String,
}

/// Reasons that make the figures invalid. Suspect ones are among the warnings.
pub(super) fn distrust(verdict: &VerdictJson) -> Vec<String> {
    let reasons = verdict.reasons.iter();
    let invalid = reasons.filter(|reason| reason.state == "invalid");
    invalid
        .map(|reason| {
            format!(
                "{}: {} (bound: {})",
                reason.what, reason.measured, reason.bound
            )
        })
        .collect()
}
