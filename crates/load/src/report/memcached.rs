//! Counts of memcached commands, keys and values, in addition to responses.

use std::collections::BTreeMap;
use std::fmt;

use onrush_measure::units;
use serde::{Deserialize, Serialize};

use crate::protocol::{Counts, DatagramCounts};
use crate::requests::memcached::populate_result::PopulateResult;

/// Commands, keys and values of a run, including late answers, which the server has counted, too.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct MemcachedRow {
    /// Answered gets.
    pub gets: u64,
    /// Keys in these gets.
    pub keys_asked: u64,
    /// Keys with a value.
    pub hits: u64,
    /// Keys without a value.
    pub misses: u64,
    /// Answered sets.
    pub sets: u64,
    /// Sets whose value was stored.
    pub stored: u64,
    /// Answered deletes.
    pub deletes: u64,
    /// Deletes whose key existed.
    pub deleted: u64,
    /// Answered increments.
    pub increments: u64,
    /// Increments whose counter existed.
    pub incremented: u64,
    /// Bytes of values received.
    pub value_bytes_read: u64,
    /// Bytes of values stored.
    pub value_bytes_written: u64,
    /// Bytes of requests; bytes of answers are in the report.
    pub bytes_sent: u64,
    /// Keys answered with the value of another key.
    pub wrong_values: u64,
    /// Error lines by text.
    pub errors: BTreeMap<String, u64>,
    /// Counts of datagrams over UDP; `None` over connections.
    #[serde(default)]
    pub datagrams: Option<DatagramCounts>,
    /// Items stored before the run, which no other count includes; `None` without populating.
    pub populated: Option<PopulateResult>,
}

impl MemcachedRow {
    /// Sums the counts of the cores; `None` with other protocols.
    pub(super) fn of<'c>(
        counts: impl Iterator<Item = Option<&'c Counts>>,
        populated: Option<&PopulateResult>,
    ) -> Option<MemcachedRow> {
        let sum = counts.flatten().fold(None, |sum: Option<Counts>, more| {
            let mut sum = sum.unwrap_or_default();
            sum.add(more);
            Some(sum)
        })?;
        Some(MemcachedRow {
            gets: sum.gets,
            keys_asked: sum.keys_asked,
            hits: sum.hits,
            misses: sum.misses,
            sets: sum.sets,
            stored: sum.stored,
            deletes: sum.deletes,
            deleted: sum.deleted,
            increments: sum.increments,
            incremented: sum.incremented,
            value_bytes_read: sum.value_bytes_read,
            value_bytes_written: sum.value_bytes_written,
            bytes_sent: sum.bytes_sent,
            wrong_values: sum.wrong_values,
            errors: sum.errors,
            datagrams: sum.datagrams,
            populated: populated.cloned(),
        })
    }

    pub(crate) fn sum(mut one: MemcachedRow, other: &MemcachedRow) -> MemcachedRow {
        one.gets += other.gets;
        one.keys_asked += other.keys_asked;
        one.hits += other.hits;
        one.misses += other.misses;
        one.sets += other.sets;
        one.stored += other.stored;
        one.deletes += other.deletes;
        one.deleted += other.deleted;
        one.increments += other.increments;
        one.incremented += other.incremented;
        one.value_bytes_read += other.value_bytes_read;
        one.value_bytes_written += other.value_bytes_written;
        one.bytes_sent += other.bytes_sent;
        one.wrong_values += other.wrong_values;
        for (words, count) in &other.errors {
            *one.errors.entry(words.clone()).or_default() += count;
        }
        if let Some(more) = &other.datagrams {
            one.datagrams.get_or_insert_default().add(more);
        }
        if let Some(more) = &other.populated {
            one.populated.get_or_insert_default().add(more);
        }
        one
    }

    pub(super) fn warnings(&self) -> impl Iterator<Item = String> + '_ {
        let errors = self.errors.iter().map(|(words, count)| {
            format!("the server sent {}: {words}", units::plural(*count, "time"))
        });
        let populated = self
            .populated
            .as_ref()
            .and_then(PopulateResult::failure_message);
        populated.into_iter().chain(errors)
    }
}

impl fmt::Display for MemcachedRow {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.gets > 0 {
            let share = self.hits as f64 * 100.0 / (self.hits + self.misses).max(1) as f64;
            write!(
                out,
                "gets         {} of {}: {}, {} ({share:.2} % hits)",
                units::count(self.gets),
                units::plural(self.keys_asked, "key"),
                units::plural(self.hits, "hit"),
                match self.misses {
                    1 => "1 miss".to_owned(),
                    misses => format!("{} misses", units::count(misses)),
                },
            )?;
            match self.wrong_values {
                0 => writeln!(out)?,
                wrong => writeln!(out, "; {} of another key", units::plural(wrong, "value"))?,
            }
        }
        for (what, count, done, of) in [
            ("sets", self.sets, "stored", self.stored),
            ("deletes", self.deletes, "deleted", self.deleted),
            ("increments", self.increments, "done", self.incremented),
        ] {
            if count > 0 {
                let (count, of) = (units::count(count), units::count(of));
                writeln!(out, "{what:<12} {count}: {of} {done}")?;
            }
        }
        writeln!(
            out,
            "values       {} read, {} stored; {} of requests sent",
            units::bytes(self.value_bytes_read as f64),
            units::bytes(self.value_bytes_written as f64),
            units::bytes(self.bytes_sent as f64),
        )?;
        if let Some(datagrams) = &self.datagrams {
            let useless = datagrams.discarded().into_iter();
            let useless = useless.filter(|(_, count)| *count > 0);
            let useless = useless.map(|(name, count)| format!(", {} {name}", units::count(count)));
            let useless: String = useless.collect();
            let received = units::count(datagrams.received);
            writeln!(out, "datagrams    {received} received{useless}")?;
        }
        if let Some(populated) = &self.populated {
            writeln!(
                out,
                "populated    {} of {} before the run, in {:.2} s",
                units::count(populated.stored),
                units::plural(populated.keys, "key"),
                populated.duration_s,
            )?;
        }
        Ok(())
    }
}
