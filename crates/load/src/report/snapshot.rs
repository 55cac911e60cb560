//! State of a run at the end of one of its seconds.

use std::collections::BTreeMap;

use onrush_measure::second::Second;

use crate::protocol::failure::Failure;
use crate::record::figures::{Checks, Figures};
use crate::record::incomplete_waits::IncompleteWaits;
use crate::record::live_counters::RunView;
use crate::record::times::Times;
use crate::report::rows::SecondRow;
use crate::verdict::Verdict;

/// State of a run at the end of a second.
pub struct Snapshot<'a> {
    /// Counters and rates of the second.
    pub second: Second,
    /// Counters and rates of each core; the rates of a core that has ended are 0.
    pub cores: &'a [Second],
    /// The second as in the report.
    pub row: SecondRow,
    /// Responses since the start.
    pub responses: u64,
    /// Errors since the start.
    pub errors: u64,
    /// Unexpected responses among the errors.
    pub unexpected: u64,
    /// Failures to connect among the errors.
    pub connect_failures: u64,
    /// Responses since the start by status class, 1xx to 5xx.
    pub statuses: [u64; 5],
    /// Histograms since the start.
    pub times: &'a Times,
    /// Waits of requests without a response.
    pub unanswered: &'a IncompleteWaits,
    pub(crate) view: RunView<'a>,
}

impl Snapshot<'_> {
    /// Number of errors of each kind since the start of the run, without kinds that had none.
    pub fn errors_by_kind(&self) -> BTreeMap<String, u64> {
        self.view.standing.errors_by_kind()
    }

    /// Number of errors of each kind since the start of the run, including kinds without errors.
    pub(crate) fn all_errors_by_kind(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let kinds = Failure::ALL.into_iter().zip(self.view.standing.failures);
        kinds.map(|(kind, count)| (kind.name(), count))
    }

    /// Requests due and not yet sent.
    pub fn waiting(&self) -> u64 {
        self.view.waiting()
    }

    /// Verdict on the run so far. Reads the CPU times of each thread from outside, which does not disturb the thread.
    pub fn verdict(&self) -> Verdict {
        Verdict::of(&self.view.evidence(self.times))
    }

    /// Figures so far that thresholds are judged by.
    pub fn figures(&self) -> Figures {
        let classes = self.view.plan.protocol.outcomes().classes;
        let statuses = classes.map(str::to_owned).into_iter().zip(self.statuses);
        let standing = self.view.standing;
        Figures {
            times: self.times.clone(),
            responses: self.responses,
            errors: self.errors,
            unexpected: self.unexpected,
            timeouts: standing.failures_of(Failure::Timeout),
            unanswered: self.unanswered.clone(),
            // Their responses may still arrive.
            unfinished: 0,
            resent: standing.resent,
            missed: standing.missed,
            checks: Checks::default(),
            statuses: statuses.filter(|(_, count)| *count > 0).collect(),
            rps: self.row.rps,
        }
    }
}
