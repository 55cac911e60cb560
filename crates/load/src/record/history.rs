//! The seconds of a run, in fixed memory. When it is full, neighbours are joined: an entry covers two, four, eight
//! seconds.

use onrush_measure::histogram::Histogram;

use crate::limits::{HISTORY_BYTES, HISTORY_ENTRIES};
use crate::record::rows::Row;

/// Rows and histograms of the seconds of a run.
#[derive(Clone, Debug)]
pub struct History {
    entries: Vec<Entry>,
    /// Packed histograms: for each entry the response times, then the service times.
    arena: Vec<u8>,
    /// Limit of `arena`, in bytes.
    bytes_max: usize,
    entries_max: usize,
    /// Seconds per entry.
    step: u64,
    /// Seconds in the last entry so far.
    filled: u64,
    scratch: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    row: Row,
    /// Range in the arena: response times from `begin` to `middle`, service times from `middle` to `end`.
    begin: usize,
    middle: usize,
    end: usize,
}

/// One or several seconds of a run.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Start, in seconds since the start of the run.
    pub begin_s: f64,
    /// End, in seconds since the start of the run.
    pub end_s: f64,
    /// Response times, in nanoseconds.
    pub response: Histogram,
    /// Service times, in nanoseconds.
    pub service: Histogram,
}

impl Default for History {
    /// Returns a history without room for entries, for a result that was made by another process.
    fn default() -> History {
        History::with(0, 0)
    }
}

impl History {
    /// Allocates all memory now, so that the memory of a run does not grow.
    pub(crate) fn new() -> History {
        History::with(HISTORY_ENTRIES, HISTORY_BYTES)
    }

    fn with(entries_max: usize, bytes_max: usize) -> History {
        // Written to, so that the kernel allocates the pages: pages of zeros have no memory until they are written.
        let mut arena = vec![0xff; bytes_max];
        arena.clear();
        History {
            entries: Vec::with_capacity(entries_max),
            arena,
            bytes_max,
            entries_max,
            step: 1,
            filled: 0,
            scratch: Vec::new(),
        }
    }

    pub(crate) fn keep(&mut self, row: Row, response: &Histogram, service: &Histogram) {
        while !self.try_keep(row, response, service) {
            // One entry always fits: there is room for hundreds of the largest (limits.rs).
            assert!(self.entries.len() > 1, "room for more than one second");
            self.halve();
        }
    }

    /// Adds a second, to the last entry until it is full. Returns `false` and changes nothing if there is no room.
    fn try_keep(&mut self, row: Row, response: &Histogram, service: &Histogram) -> bool {
        match self.entries.last().copied() {
            Some(last) if self.filled < self.step => {
                let (mut response, mut service) = (response.clone(), service.clone());
                self.unpack(&last, &mut response, &mut service);
                let row = last.row.joined(&row);
                let index = self.entries.len() - 1;
                let kept = self.put(index, last.begin, row, &response, &service);
                self.filled += u64::from(kept);
                kept
            }
            _ => {
                let (index, begin) = (self.entries.len(), self.arena.len());
                let kept = self.put(index, begin, row, response, service);
                self.filled = if kept { 1 } else { self.filled };
                kept
            }
        }
    }

    /// Joins each pair of entries.
    fn halve(&mut self) {
        let count = self.entries.len();
        let arena_end = self.arena.len();
        let mut begin = 0;
        for index in (0..count).step_by(2) {
            let pair = index..(index + 2).min(count);
            let (first, last) = (self.entries[index], self.entries[pair.end - 1]);
            let (mut response, mut service) = (Histogram::new(), Histogram::new());
            for index in pair {
                let entry = self.entries[index];
                self.unpack(&entry, &mut response, &mut service);
            }
            let row = first.row.joined(&last.row);
            // The result is no longer than both were, so it ends before the next pair begins.
            self.put(index / 2, begin, row, &response, &service);
            begin = self.entries[index / 2].end;
            debug_assert!(begin <= last.end && self.arena.len() == arena_end);
        }
        self.entries.truncate(count.div_ceil(2));
        self.arena.truncate(begin);
        if count.is_multiple_of(2) {
            self.filled += self.step;
        }
        self.step *= 2;
    }

    /// Writes or appends entry `index`, with its histograms from `begin` on. Returns `false` if there is no room.
    fn put(
        &mut self,
        index: usize,
        begin: usize,
        row: Row,
        response: &Histogram,
        service: &Histogram,
    ) -> bool {
        self.scratch.clear();
        response.pack(&mut self.scratch);
        let middle = begin + self.scratch.len();
        service.pack(&mut self.scratch);
        let end = begin + self.scratch.len();
        if end > self.bytes_max || index == self.entries_max {
            return false;
        }
        let is_last = index + 1 >= self.entries.len();
        if is_last {
            self.arena.resize(end, 0);
        }
        self.arena[begin..end].copy_from_slice(&self.scratch);
        let entry = Entry {
            row,
            begin,
            middle,
            end,
        };
        match self.entries.get_mut(index) {
            Some(place) => *place = entry,
            None => self.entries.push(entry),
        }
        true
    }

    fn unpack(&self, entry: &Entry, response: &mut Histogram, service: &mut Histogram) {
        let of_response = response.unpack(&self.arena[entry.begin..entry.middle]);
        let of_service = service.unpack(&self.arena[entry.middle..entry.end]);
        assert!(
            of_response.is_some() && of_service.is_some(),
            "packed above"
        );
    }

    /// Seconds per entry; the last entry may have fewer.
    pub fn step(&self) -> u64 {
        self.step
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.entries.iter().map(|entry| &entry.row)
    }

    /// Returns each entry with its latencies.
    pub fn intervals(&self) -> impl Iterator<Item = Interval> + '_ {
        self.entries.iter().map(|entry| {
            let mut interval = Interval {
                begin_s: entry.row.elapsed_before.as_secs_f64(),
                end_s: entry.row.elapsed.as_secs_f64(),
                response: Histogram::new(),
                service: Histogram::new(),
            };
            self.unpack(entry, &mut interval.response, &mut interval.service);
            interval
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::stop::Progress;
    use onrush_measure::second::Tally;
    use std::time::Duration;

    /// Row of second `number`, with one response.
    fn row(number: u64) -> Row {
        let tally = |responses| Tally {
            last_bytes: responses,
            ..Tally::default()
        };
        Row {
            before: tally(number),
            elapsed_before: Duration::from_secs(number),
            now: tally(number + 1),
            elapsed: Duration::from_secs(number + 1),
            progress: Progress::default(),
        }
    }

    fn histogram(value: u64) -> Histogram {
        let mut histogram = Histogram::new();
        histogram.record(value);
        histogram
    }

    /// History whose second `n` has one response of `n` and one service time of `2 n` microseconds, with `n` modulo 8.
    fn history(seconds: u64, entries_max: usize, bytes_max: usize) -> History {
        let mut history = History::with(entries_max, bytes_max);
        for number in 0..seconds {
            let value = number % 8 * 1000;
            let (response, service) = (histogram(value), histogram(value * 2));
            history.keep(row(number), &response, &service);
        }
        history
    }

    #[test]
    fn history_has_entry_per_second() {
        let history = history(5, 8, 10_000);
        assert_eq!(history.step(), 1);
        for (number, interval) in (0..).zip(history.intervals()) {
            assert_eq!(interval.begin_s, number as f64);
            assert_eq!(interval.response.max(), number * 1000);
            assert_eq!(interval.service.max(), number * 2000);
        }
        assert_eq!(history.rows().count(), 5);
    }

    #[test]
    fn history_of_long_run_is_bounded() {
        for (entries_max, bytes_max) in [(8, 1 << 20), (1000, 300), (7, 400)] {
            for seconds in 1..200 {
                let history = history(seconds, entries_max, bytes_max);
                assert!(
                    history.arena.capacity() == bytes_max && history.entries.len() <= entries_max
                );
                let mut end = 0.0;
                let mut response = Histogram::new();
                for interval in history.intervals() {
                    assert_eq!(interval.begin_s, end, "no gaps");
                    let length = interval.end_s - interval.begin_s;
                    assert_eq!(interval.response.count() as f64, length);
                    assert_eq!(interval.service.count() as f64, length);
                    let is_last = interval.end_s == seconds as f64;
                    assert!(length == history.step() as f64 || is_last, "{length}");
                    end = interval.end_s;
                    response.merge(&interval.response);
                }
                assert_eq!(end, seconds as f64);
                assert_eq!(
                    (response.count(), response.max()),
                    (seconds, (seconds - 1).min(7) * 1000)
                );
            }
        }
    }
}
