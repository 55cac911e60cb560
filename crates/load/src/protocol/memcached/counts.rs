//! What is counted of memcached beside responses: commands, keys and values, as the server counts them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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
    /// Over UDP, of datagrams.
    pub(crate) datagrams: Option<DatagramCounts>,
}

/// What came over UDP. Requests whose answer did not come are failures of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct DatagramCounts {
    /// Datagrams that came, those below among them.
    pub received: u64,
    /// Those of answers that nobody waited for any more.
    pub late: u64,
    /// Those that had come before, or stand behind the end of an answer.
    pub duplicated: u64,
    /// Those of no request.
    pub foreign: u64,
    /// Those that are shorter than the frame they begin with, or longer than any datagram of an answer may be.
    pub truncated: u64,
    /// Those whose frame has what must be 0.
    pub wrong_frame: u64,
    /// Those whose number, or that of all of their answer, cannot be.
    pub wrong_sequence: u64,
    /// Those that came so long before their turn that there was no room for them.
    pub no_room: u64,
}

impl DatagramCounts {
    /// Adds what another core or generator has counted.
    pub(crate) fn add(&mut self, other: &DatagramCounts) {
        self.received += other.received;
        self.late += other.late;
        self.duplicated += other.duplicated;
        self.foreign += other.foreign;
        self.truncated += other.truncated;
        self.wrong_frame += other.wrong_frame;
        self.wrong_sequence += other.wrong_sequence;
        self.no_room += other.no_room;
    }

    /// Those that were of no use, by the names of what they were.
    pub(crate) fn useless(&self) -> [(&'static str, u64); 7] {
        [
            ("late", self.late),
            ("duplicated", self.duplicated),
            ("foreign", self.foreign),
            ("truncated", self.truncated),
            ("wrong frame", self.wrong_frame),
            ("wrong sequence", self.wrong_sequence),
            ("no room", self.no_room),
        ]
    }
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
        if let Some(more) = &other.datagrams {
            self.datagrams.get_or_insert_default().add(more);
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
