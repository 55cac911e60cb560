//! Combines readings of the cores' counters into one row per second of the run. Pure.

use std::collections::VecDeque;
use std::time::Duration;

use onrush_measure::second::{Second, Tally};

use crate::limits::LAST_ROW_MIN;
use crate::pace::stop::Progress;
use crate::record::live_counters::LiveCounters;

/// One core's counters at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reading {
    /// Time since the start of the run.
    pub(crate) elapsed: Duration,
    pub(crate) tally: Tally,
    pub(crate) progress: Progress,
    pub(crate) standing: LiveCounters,
}

/// Sums over all cores at the end of a second and at the end of the one before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) before: Tally,
    pub(crate) elapsed_before: Duration,
    pub(crate) now: Tally,
    pub(crate) elapsed: Duration,
    pub(crate) progress: Progress,
}

impl Row {
    pub(crate) fn second(&self) -> Second {
        Second::between(&self.before, self.elapsed_before, &self.now, self.elapsed)
    }

    /// Requests that ended without a response during the row.
    pub(crate) fn failed(&self) -> u64 {
        let failed = |tally: &Tally| tally.requests - tally.last_bytes;
        failed(&self.now).saturating_sub(failed(&self.before))
    }

    pub(crate) fn joined(&self, last: &Row) -> Row {
        Row {
            before: self.before,
            elapsed_before: self.elapsed_before,
            ..*last
        }
    }
}

/// Collects readings until every core has one for the same second.
#[derive(Debug)]
pub(crate) struct RowCollector {
    cores: Vec<Core>,
    /// Each core's second of the last row.
    seconds: Vec<Second>,
    before: Tally,
    elapsed_before: Duration,
    /// Sum over all cores at the end of the last row.
    standing: LiveCounters,
}

#[derive(Clone, Debug, Default)]
struct Core {
    /// Readings of seconds that have no row yet.
    readings: VecDeque<Reading>,
    /// Last reading of a core that has ended; used for all later seconds.
    end: Option<Reading>,
    /// Reading in the last row.
    before: Option<Reading>,
}

impl RowCollector {
    pub(crate) fn new(cores: usize) -> RowCollector {
        RowCollector {
            cores: vec![Core::default(); cores],
            seconds: Vec::with_capacity(cores),
            before: Tally::default(),
            elapsed_before: Duration::ZERO,
            standing: LiveCounters::default(),
        }
    }

    pub(crate) fn standing(&self) -> &LiveCounters {
        &self.standing
    }

    /// Adds the reading of a core at the end of its next second.
    pub(crate) fn read(&mut self, core: usize, reading: Reading) {
        self.cores[core].readings.push_back(reading);
    }

    pub(crate) fn ended(&mut self, core: usize, reading: Reading) {
        self.cores[core].end = Some(reading);
    }

    pub(crate) fn next(&mut self) -> Option<Row> {
        let is_known = |core: &Core| !core.readings.is_empty() || core.end.is_some();
        let is_over = |core: &Core| core.readings.is_empty();
        if !self.cores.iter().all(is_known) || self.cores.iter().all(is_over) {
            return None;
        }
        let readings: Vec<Reading> = self
            .cores
            .iter_mut()
            .filter_map(|core| core.readings.pop_front().or(core.end))
            .collect();
        Some(self.row(&readings))
    }

    /// Returns the row after the last whole second, once all cores have ended and all rows were taken. A row without
    /// events is returned if it lasts at least [`LAST_ROW_MIN`]; anything shorter is the rest of a turn.
    pub(crate) fn last(&mut self) -> Option<Row> {
        let readings: Vec<Reading> = self.cores.iter().filter_map(|core| core.end).collect();
        let now: Tally = readings.iter().map(|reading| reading.tally).sum();
        let elapsed = readings.iter().map(|reading| reading.elapsed).max()?;
        let is_row = now != self.before || elapsed >= self.elapsed_before + LAST_ROW_MIN;
        is_row.then(|| self.row(&readings))
    }

    pub(crate) fn cores(&self) -> &[Second] {
        &self.seconds
    }

    fn row(&mut self, readings: &[Reading]) -> Row {
        self.seconds.clear();
        for (core, now) in self.cores.iter_mut().zip(readings) {
            let before = core.before.replace(*now);
            let (tally, elapsed) =
                before.map_or_else(Default::default, |it| (it.tally, it.elapsed));
            let second = Second::between(&tally, elapsed, &now.tally, now.elapsed);
            self.seconds.push(second);
        }
        let mut row = Row {
            before: self.before,
            elapsed_before: self.elapsed_before,
            now: Tally::default(),
            elapsed: Duration::ZERO,
            progress: Progress::default(),
        };
        self.standing = LiveCounters::default();
        for reading in readings {
            self.standing += reading.standing;
            row.now += reading.tally;
            row.elapsed = row.elapsed.max(reading.elapsed);
            row.progress += reading.progress;
        }
        self.before = row.now;
        self.elapsed_before = row.elapsed;
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(milliseconds: u64, responses: u64) -> Reading {
        Reading {
            elapsed: Duration::from_millis(milliseconds),
            tally: Tally {
                requests: responses,
                last_bytes: responses,
                ..Tally::default()
            },
            progress: Progress {
                responses,
                ..Progress::default()
            },
            standing: LiveCounters {
                sent: responses,
                ..LiveCounters::default()
            },
        }
    }

    #[test]
    fn row_requires_reading_from_each_core() {
        let mut rows = RowCollector::new(2);
        rows.read(0, reading(1000, 10));
        rows.read(0, reading(2000, 30));
        assert!(rows.next().is_none());
        rows.read(1, reading(1001, 5));
        let row = rows.next().unwrap();
        assert_eq!((row.now.requests, row.progress.responses), (15, 15));
        assert_eq!(rows.standing().sent, 15);
        assert_eq!(row.elapsed, Duration::from_millis(1001));
        let rates = rows.cores().iter().map(|second| second.rps.round());
        assert_eq!(rates.collect::<Vec<_>>(), [10.0, 5.0]);
        assert!(rows.next().is_none());
    }

    #[test]
    fn finished_core_keeps_last_counters() {
        let mut rows = RowCollector::new(2);
        rows.ended(1, reading(300, 7));
        rows.read(0, reading(1000, 10));
        rows.read(0, reading(2000, 20));
        assert_eq!(rows.next().unwrap().now.requests, 17);
        let second = rows.next().unwrap();
        assert_eq!((second.before.requests, second.now.requests), (17, 27));
        assert_eq!([rows.cores()[0].rps, rows.cores()[1].rps], [10.0, 0.0]);
        assert!(rows.next().is_none());
    }

    #[test]
    fn last_row_follows_last_whole_second() {
        let mut rows = RowCollector::new(1);
        rows.read(0, reading(1000, 10));
        rows.next().unwrap();
        rows.ended(0, reading(1400, 12));
        let row = rows.last().unwrap();
        assert_eq!((row.before.requests, row.now.requests), (10, 12));
        assert!(rows.last().is_none(), "nothing came after it");
    }

    #[test]
    fn idle_last_interval_has_row_unless_short() {
        for (end, is_row) in [(2000, true), (1100, true), (1099, false), (1000, false)] {
            let mut rows = RowCollector::new(2);
            for core in 0..2 {
                rows.read(core, reading(1000, 10));
                rows.ended(core, reading(end, 10));
            }
            rows.next().unwrap();
            let last = rows.last();
            assert_eq!(last.is_some(), is_row, "{end}");
            if let Some(row) = last {
                assert_eq!(row.elapsed, Duration::from_millis(end));
                assert_eq!(row.second().rps, 0.0);
            }
        }
    }
}
