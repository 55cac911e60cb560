//! What is counted of memcached beside responses: commands, keys and values, as the server counts them.

use std::collections::BTreeMap;

use super::line;
use crate::limits::{ERROR_BYTES_MAX, ERRORS_NAMED_MAX};

/// What one core has counted, or the sum over several: all answers that came, also those that came shortly behind the end
/// of the run, for the server has counted them, too.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    /// Gets that have an answer.
    pub(crate) gets: u64,
    /// Keys that they asked for. Invariant: = `hits` + `misses`, but for those of gets whose answer was an error.
    pub(crate) keys_asked: u64,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    /// Sets that have an answer.
    pub(crate) sets: u64,
    /// Of these, those whose value was stored.
    pub(crate) stored: u64,
    /// Deletes that have an answer.
    pub(crate) deletes: u64,
    /// Of these, those whose key was there; those of which a quiet server said nothing are not among them.
    pub(crate) deleted: u64,
    /// Increments that have an answer.
    pub(crate) increments: u64,
    /// Of these, those whose counter was there.
    pub(crate) incremented: u64,
    /// Bytes of values that came.
    pub(crate) value_bytes_read: u64,
    /// Bytes of values that were stored.
    pub(crate) value_bytes_written: u64,
    /// Bytes of requests.
    pub(crate) bytes_sent: u64,
    /// Keys whose value was not theirs.
    pub(crate) wrong_values: u64,
    /// Error lines by their words.
    pub(crate) errors: BTreeMap<String, u64>,
}

/// What stands for errors beyond those that are told apart.
const OTHER_ERRORS: &str = "other errors";

impl Counts {
    /// The server said this in the place of an answer.
    pub(super) fn note_error(&mut self, words: &[u8]) {
        let words = line::shown(words, ERROR_BYTES_MAX);
        if let Some(count) = self.errors.get_mut(&words) {
            *count += 1;
            return;
        }
        let name = match self.errors.len() < ERRORS_NAMED_MAX {
            true => words,
            false => OTHER_ERRORS.to_owned(),
        };
        *self.errors.entry(name).or_default() += 1;
    }

    /// Adds what another core has counted.
    pub(crate) fn add(&mut self, other: &Counts) {
        self.gets += other.gets;
        self.keys_asked += other.keys_asked;
        self.hits += other.hits;
        self.misses += other.misses;
        self.sets += other.sets;
        self.stored += other.stored;
        self.deletes += other.deletes;
        self.deleted += other.deleted;
        self.increments += other.increments;
        self.incremented += other.incremented;
        self.value_bytes_read += other.value_bytes_read;
        self.value_bytes_written += other.value_bytes_written;
        self.bytes_sent += other.bytes_sent;
        self.wrong_values += other.wrong_values;
        for (words, count) in &other.errors {
            *self.errors.entry(words.clone()).or_default() += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_apart_up_to_a_bound() {
        let mut counts = Counts::default();
        for number in 0..1000 {
            counts.note_error(format!("SERVER_ERROR {number}").as_bytes());
            counts.note_error(b"ERROR");
        }
        assert_eq!(counts.errors["ERROR"], 1000);
        assert_eq!(counts.errors.len(), ERRORS_NAMED_MAX + 1);
        assert_eq!(counts.errors.values().sum::<u64>(), 2000);
        counts.note_error(&[0xff; 5000]);
        assert!(counts.errors.keys().all(|words| words.len() < 1000));
    }
}
