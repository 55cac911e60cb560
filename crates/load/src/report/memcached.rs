//! What a result has of memcached beside responses: commands, keys and values, as the server counts them.

use std::collections::BTreeMap;
use std::fmt;

use onrush_measure::units;
use serde::{Deserialize, Serialize};

use crate::protocol::{Counts, DatagramCounts};
use crate::requests::memcached::filled::Filled;

/// Commands, keys and values of a run: of all answers that came, those shortly behind its end among them, for the server has
/// counted them, too.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct MemcachedRow {
    /// Gets that have an answer.
    pub gets: u64,
    /// Keys that they asked for.
    pub keys_asked: u64,
    /// Of these, those with a value.
    pub hits: u64,
    /// Of these, those without.
    pub misses: u64,
    /// Sets that have an answer.
    pub sets: u64,
    /// Of these, those whose value was stored.
    pub stored: u64,
    /// Deletes that have an answer.
    pub deletes: u64,
    /// Of these, those whose key was there.
    pub deleted: u64,
    /// Increments that have an answer.
    pub increments: u64,
    /// Of these, those whose counter was there.
    pub incremented: u64,
    /// Bytes of values that came.
    pub value_bytes_read: u64,
    /// Bytes of values that were stored.
    pub value_bytes_written: u64,
    /// Bytes of requests; those of answers are the result's.
    pub bytes_sent: u64,
    /// Keys whose value was another's.
    pub wrong_values: u64,
    /// Error lines by their words.
    pub errors: BTreeMap<String, u64>,
    /// Over UDP, what came; none over connections.
    #[serde(default)]
    pub datagrams: Option<DatagramCounts>,
    /// What was stored before the run, and is in no other number; none where nothing was to be.
    pub populated: Option<Filled>,
}

impl MemcachedRow {
    /// What the cores of a run have counted; none where they speak something else.
    pub(super) fn of<'c>(
        counts: impl Iterator<Item = Option<&'c Counts>>,
        populated: Option<&Filled>,
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

    /// The sum of two generators' rows.
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

    /// What a reader must know before believing the figures.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> + '_ {
        let errors = self.errors.iter().map(|(words, count)| {
            format!("the server said {}: {words}", units::plural(*count, "time"))
        });
        let populated = self.populated.as_ref().and_then(Filled::complaint);
        populated.into_iter().chain(errors)
    }
}

/// Lines for people; every line ends.
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
            let useless = datagrams.useless().into_iter();
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
