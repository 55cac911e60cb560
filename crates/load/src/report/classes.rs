//! Response times by status class: the mean of fast errors and slow successes describes neither.

use std::fmt;

use onrush_measure::histogram::Histogram;
use onrush_measure::units;
use serde::{Deserialize, Serialize};

use super::latency::Latency;
use crate::record::Record;

/// Responses of one class.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ClassRow {
    /// Name, such as `2xx`; `other` for statuses outside of the named classes.
    pub class: String,
    /// Responses whose times were measured.
    pub responses: u64,
    /// From the intended start to the last byte.
    pub latency_us: Latency,
    /// The same times as a histogram; see [`Histograms`](super::histograms::Histograms).
    pub histogram: String,
}

impl ClassRow {
    pub(crate) fn new(class: &str, times: &Histogram) -> ClassRow {
        ClassRow {
            class: class.to_owned(),
            responses: times.count(),
            latency_us: Latency::of(times),
            histogram: times.to_base64(),
        }
    }
}

/// Returns the classes that occurred; `times` covers all responses.
pub(super) fn rows(record: &Record, times: &Histogram) -> Vec<ClassRow> {
    let names = record.class_names().into_iter().chain(["other"]);
    let split = record.classes.split(times);
    let classes = names.zip(&split).filter(|(_, of)| of.count() > 0);
    classes.map(|(name, of)| ClassRow::new(name, of)).collect()
}

/// Writes one line per class, if there are several.
pub(super) fn write(out: &mut fmt::Formatter<'_>, rows: &[ClassRow]) -> fmt::Result {
    if rows.len() < 2 {
        return Ok(());
    }
    writeln!(
        out,
        "by class      responses      mean       p50       p99       max"
    )?;
    for row in rows {
        let time = |name: &str| {
            let latency = &row.latency_us;
            latency.text(name, "-", |us| units::nanoseconds(us * 1000.0))
        };
        writeln!(
            out,
            "  {:<12} {:>8} {:>9} {:>9} {:>9} {:>9}",
            row.class,
            units::count(row.responses),
            time("mean"),
            time("50"),
            time("99"),
            time("max"),
        )?;
    }
    Ok(())
}
