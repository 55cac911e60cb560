//! Counts of responses by status, or by its equivalent in other protocols.

use super::Record;
use crate::requests::response::Outcome;

impl Record {
    /// Responses by outcome name, without outcomes that did not occur.
    pub(crate) fn outcome_counts(&self) -> impl Iterator<Item = (String, u64)> + '_ {
        let named = (0..).zip(&self.said).filter(|(_, count)| **count > 0);
        named.map(|(number, count)| ((self.outcomes.name)(number), *count))
    }

    pub(crate) fn class_names(&self) -> [&'static str; 5] {
        self.outcomes.classes
    }

    pub(crate) fn refusals(&self) -> u64 {
        self.count_outcomes(self.outcomes.is_refusal)
    }

    /// Responses that no healthy server sends.
    pub(crate) fn failed_responses(&self) -> u64 {
        self.count_outcomes(self.outcomes.is_failure)
    }

    /// Responses known to be false, such as values of other keys.
    pub(crate) fn false_responses(&self) -> u64 {
        self.count_outcomes(self.outcomes.is_mismatched)
    }

    /// Counts responses with this outcome to requests that list no expected outcomes.
    #[inline]
    pub(crate) fn count_unaccepted(&mut self, (outcome, count): (Outcome, u64)) {
        if (self.outcomes.is_unexpected)(outcome.number) {
            self.unaccepted += count;
        }
    }

    fn count_outcomes(&self, is_one: fn(u16) -> bool) -> u64 {
        let said = (0..).zip(&self.said);
        let said = said.filter(|(number, _)| is_one(*number));
        said.map(|(_, count)| count).sum()
    }
}
