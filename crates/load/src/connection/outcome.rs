//! The measurements of one core after its part of a run.

use std::time::Duration;

use onrush_measure::second::Tally;

use crate::connection::core_run::End;
use crate::protocol::Counts;
use crate::record::Record;

/// What one core comes to.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Its times are those since the last whole second.
    pub(crate) record: Record,
    pub(crate) end: End,
    /// Requests that were due and never sent.
    pub(crate) missed: u64,
    /// What had been counted when responses began to be measured, and how long the run had taken then.
    pub(crate) before: (Tally, Duration),
    /// How long the run had taken when the last response came; none without one.
    pub(crate) answered_until: Option<Duration>,
    /// The responses of each connection.
    pub(crate) responses: Vec<u64>,
    /// What its protocol counts beside them.
    pub(crate) counts: Option<Counts>,
}
