//! Journeys of several results.

use super::part::Part;
use crate::report::journeys::JourneyRow;

/// Adds up the setup steps and the journeys.
///
/// # Errors
/// When parts have different journeys, or a histogram cannot be decoded.
pub(super) fn sum(parts: &[Part]) -> Result<(Option<JourneyRow>, Vec<JourneyRow>), String> {
    let Some((first, others)) = parts.split_first() else {
        return Ok((None, Vec::new()));
    };
    let mut setup = first.report.setup.clone();
    let mut journeys = first.report.journeys.clone();
    for other in others {
        let wrong = |why: &str| {
            format!(
                "{} and {} cannot be merged: {why}; only generators of one load can be merged",
                first.name, other.name
            )
        };
        let report = &other.report;
        if journeys.len() != report.journeys.len() || setup.is_some() != report.setup.is_some() {
            return Err(wrong("they have different journeys"));
        }
        let sums = setup.iter_mut().chain(&mut journeys);
        let more = report.setup.iter().chain(&report.journeys);
        for (sum, more) in sums.zip(more) {
            sum.add(more).map_err(|why| wrong(&why))?;
        }
    }
    Ok((setup, journeys))
}
