//! What is known of a run at the end of one of its seconds.

use std::collections::BTreeMap;

use onrush_measure::second::Second;

use crate::protocol::failure::Failure;
use crate::record::figures::{Checks, Figures};
use crate::record::standing::View;
use crate::record::times::Times;
use crate::record::unanswered::Unanswered;
use crate::report::rows::SecondRow;
use crate::verdict::Verdict;

/// What is known at the end of a second of a run.
pub struct Moment<'a> {
    /// The counters and rates of the second.
    pub second: Second,
    /// The same of each core; one that has ended has rates of 0.
    pub cores: &'a [Second],
    /// The second as the report will have it.
    pub row: SecondRow,
    /// Responses since the start.
    pub responses: u64,
    /// Errors since the start.
    pub errors: u64,
    /// Of these, responses other than expected.
    pub unexpected: u64,
    /// Of these, failures to make a connection.
    pub connect_failures: u64,
    /// Responses since the start by class of status, 1xx to 5xx.
    pub statuses: [u64; 5],
    /// All that was measured since the start.
    pub times: &'a Times,
    /// For how long what has no response has waited.
    pub unanswered: &'a Unanswered,
    pub(crate) view: View<'a>,
}

impl Moment<'_> {
    /// Errors since the start by kind, those that happened.
    pub fn errors_by_kind(&self) -> BTreeMap<String, u64> {
        self.view.standing.errors_by_kind()
    }

    /// The same of all kinds.
    pub(crate) fn all_errors_by_kind(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let kinds = Failure::ALL.into_iter().zip(self.view.standing.failures);
        kinds.map(|(kind, count)| (kind.name(), count))
    }

    /// Requests that are due and not sent yet.
    pub fn waiting(&self) -> u64 {
        self.view.waiting()
    }

    /// What can be said of the run so far. It costs a look at each thread's time, which the thread does not notice.
    pub fn verdict(&self) -> Verdict {
        Verdict::of(&self.view.evidence(self.times))
    }

    /// What conditions are about, so far.
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
            // Their responses may yet come.
            unfinished: 0,
            resent: standing.resent,
            missed: standing.missed,
            checks: Checks::default(),
            statuses: statuses.filter(|(_, count)| *count > 0).collect(),
            rps: self.row.rps,
        }
    }
}
