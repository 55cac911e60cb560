//! Result of storing all keys before a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Keys stored before a run. They are not part of its counters.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PopulateResult {
    /// Keys to store.
    pub keys: u64,
    /// Keys that the server confirmed.
    pub stored: u64,
    /// Bytes of their values.
    pub value_bytes: u64,
    /// Duration.
    pub duration_s: f64,
    /// Error responses and failures, with their counts.
    pub errors: BTreeMap<String, u64>,
}

impl PopulateResult {
    /// Returns a sentence about the missing keys; `None` if all were stored.
    pub fn failure_message(&self) -> Option<String> {
        let missing = self.keys.saturating_sub(self.stored);
        if missing == 0 && self.errors.is_empty() {
            return None;
        }
        let count = onrush_measure::units::count;
        let errors = self.errors.iter();
        let errors: Vec<String> = errors
            .map(|(what, number)| format!("{what} {}", count(*number)))
            .collect();
        let errors = match errors.is_empty() {
            true => "no response".to_owned(),
            false => errors.join(", "),
        };
        Some(format!(
            "--populate: {} of {} were not stored: {errors}",
            count(missing),
            onrush_measure::units::plural(self.keys, "key"),
        ))
    }

    pub(crate) fn add(&mut self, more: &PopulateResult) {
        self.keys += more.keys;
        self.stored += more.stored;
        self.value_bytes += more.value_bytes;
        self.duration_s = self.duration_s.max(more.duration_s);
        for (what, count) in &more.errors {
            *self.errors.entry(what.clone()).or_default() += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_message_lists_errors() {
        let mut filled = PopulateResult {
            keys: 1000,
            stored: 1000,
            ..PopulateResult::default()
        };
        assert_eq!(filled.failure_message(), None);
        let more = PopulateResult {
            keys: 1000,
            stored: 990,
            errors: [("SERVER_ERROR out of memory storing object".to_owned(), 10)].into(),
            ..PopulateResult::default()
        };
        filled.add(&more);
        let complaint = filled.failure_message().unwrap();
        assert!(
            complaint.contains(
                "10 of 2,000 keys were not stored: SERVER_ERROR out of memory storing object 10"
            ),
            "{complaint}"
        );
    }
}
