//! Reports to and from JSON.

use super::Report;
use crate::limits::{KINDS_SHOWN_MAX, STEPS_MAX};
use crate::record::provenance;

impl Report {
    /// Reads the JSON of [`to_json`](Self::to_json).
    ///
    /// # Errors
    /// When a value is missing or invalid, with its position.
    pub fn from_json(text: &str) -> Result<Report, String> {
        let report: Report = serde_json::from_str(text)
            .map_err(|error| format!("not JSON output of onrush load --json: {error}"))?;
        // Each entry has a histogram, which is small in the file and large in memory.
        if report.by_request.len() > KINDS_SHOWN_MAX {
            return Err(format!(
                "by_request has {} entries: expected {KINDS_SHOWN_MAX} at most, as onrush load --json writes them",
                report.by_request.len()
            ));
        }
        let journeys = report.setup.iter().chain(&report.journeys);
        let rows: usize = journeys.map(|journey| 1 + journey.steps.len()).sum();
        // A journey has at least one step.
        if rows > 2 * STEPS_MAX + 1 {
            return Err(format!(
                "journeys have {rows} rows: expected {STEPS_MAX} steps at most, as onrush load --json writes them"
            ));
        }
        Ok(report)
    }

    /// Returns the report as JSON; its schema is `docs/load-result.schema.json`.
    pub fn to_json(&self) -> String {
        provenance::to_json(self)
    }
}
