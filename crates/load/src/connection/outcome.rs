//! Result of one core after its part of a run.

use std::time::Duration;

use onrush_measure::second::Tally;

use crate::connection::core_run::CoreEnd;
use crate::protocol::Counts;
use crate::record::Record;

#[derive(Debug)]
pub(crate) struct Outcome {
    /// Its times are those since the last full second.
    pub(crate) record: Record,
    pub(crate) end: CoreEnd,
    pub(crate) missed: u64,
    /// Counters at the start of the measurement, and the time since the start of the run.
    pub(crate) before: (Tally, Duration),
    /// Time of the last response since the start; `None` without one.
    pub(crate) answered_until: Option<Duration>,
    pub(crate) responses: Vec<u64>,
    pub(crate) counts: Option<Counts>,
}
