//! Counters of memcached besides responses: commands, keys and values, counted as the server counts them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::line;
use crate::limits::{ERROR_BYTES_MAX, ERRORS_NAMED_MAX};

/// Counters of one core, or their sum. They include responses received shortly after the end of the run, since the
/// server has counted these as well.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    /// Number of gets with a response.
    pub(crate) gets: u64,
    /// Number of keys in the gets with a response. Invariant: equals `hits` + `misses`, except for gets with an error.
    pub(crate) keys_asked: u64,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    /// Sets with a response.
    pub(crate) sets: u64,
    /// Sets whose value was stored.
    pub(crate) stored: u64,
    /// Deletes with a response.
    pub(crate) deletes: u64,
    /// Deletes of existing keys, without quiet deletes that had no response.
    pub(crate) deleted: u64,
    /// Increments with a response.
    pub(crate) increments: u64,
    /// Increments of existing counters.
    pub(crate) incremented: u64,
    pub(crate) value_bytes_read: u64,
    pub(crate) value_bytes_written: u64,
    pub(crate) bytes_sent: u64,
    /// Values that do not belong to their keys.
    pub(crate) wrong_values: u64,
    /// Error lines by their text.
    pub(crate) errors: BTreeMap<String, u64>,
    /// Counters of datagrams, over UDP.
    pub(crate) datagrams: Option<DatagramCounts>,
}

/// Datagrams received over UDP. A request without a response counts as a failure of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct DatagramCounts {
    /// All received datagrams, including the kinds below.
    pub received: u64,
    /// Datagrams of responses to requests that had timed out.
    pub late: u64,
    /// Duplicates, or datagrams after the end of a response.
    pub duplicated: u64,
    /// Datagrams that belong to no request.
    pub foreign: u64,
    /// Datagrams shorter than the frame header, or longer than any datagram of a response.
    pub truncated: u64,
    /// Datagrams with a nonzero reserved field in the frame header.
    pub wrong_frame: u64,
    /// Datagrams with an impossible sequence number or total.
    pub wrong_sequence: u64,
    /// Early datagrams for which there was no room.
    pub no_room: u64,
}

impl DatagramCounts {
    /// Adds the counters of another core or generator.
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

    /// Returns the discarded datagrams by reason.
    pub(crate) fn discarded(&self) -> [(&'static str, u64); 7] {
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

/// Name of errors beyond the maximum number of distinct errors.
const OTHER_ERRORS: &str = "other errors";

impl Counts {
    /// Counts an error line of the server.
    pub(super) fn note_error(&mut self, words: &[u8]) {
        let words = line::printable(words, ERROR_BYTES_MAX);
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
    fn distinct_error_messages_are_bounded() {
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
