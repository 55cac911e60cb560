//! Response times by status class, merged from several generators.

use onrush_measure::histogram::Histogram;

use super::part::Part;
use crate::report::classes::ClassRow;

/// Adds up the response times of each class. Returns nothing if a part of an earlier version has no classes.
///
/// # Errors
/// When a histogram cannot be decoded.
pub(super) fn sum(parts: &[Part]) -> Result<Vec<ClassRow>, String> {
    let is_split = |part: &Part| part.report.requests == 0 || !part.report.by_class.is_empty();
    if !parts.iter().all(is_split) {
        return Ok(Vec::new());
    }
    let mut sums: Vec<(&str, Histogram)> = Vec::new();
    for part in parts {
        for row in &part.report.by_class {
            let times = Histogram::from_base64(&row.histogram)
                .map_err(|reason| format!("{}: by_class {}: {reason}", part.name, row.class))?;
            match sums.iter_mut().find(|(class, _)| *class == row.class) {
                Some((_, sum)) => sum.merge(&times),
                None => sums.push((&row.class, times)),
            }
        }
    }
    sums.sort_by_key(|(class, _)| *class);
    let rows = sums.iter();
    Ok(rows
        .map(|(class, times)| ClassRow::new(class, times))
        .collect())
}
