//! Histograms of several results.

use super::part::Part;
use crate::record::incomplete_waits::IncompleteWaits;
use crate::record::times::Times;
use crate::report::exact_times::times_of;

pub(super) fn sum_times(parts: &[Part]) -> Result<Times, String> {
    let mut sum = Times::default();
    for part in parts {
        let times = times_of(&part.report)
            .map_err(|reason| format!("{} cannot be merged: {reason}", part.name))?;
        sum.merge(&times);
    }
    Ok(sum)
}

pub(super) fn sum_unanswered(parts: &[Part]) -> Result<IncompleteWaits, String> {
    let mut sum = IncompleteWaits::default();
    for part in parts {
        if let Some(histograms) = &part.report.histograms {
            let waits = histograms.unanswered();
            sum.merge(
                &waits.map_err(|reason| format!("{} cannot be merged: {reason}", part.name))?,
            );
        }
    }
    Ok(sum)
}
