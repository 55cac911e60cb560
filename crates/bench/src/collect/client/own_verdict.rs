//! What `onrush load` thinks of its own figures (`verdict` in its files).

use serde::Deserialize;

/// What it thinks of its own figures.
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

/// The reasons for which figures are invalid; those that make them suspect are among its warnings.
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
