//! Combines the histograms that the cores send once a second.

use std::collections::VecDeque;

use onrush_measure::second::Second;

use crate::record::incomplete_waits::IncompleteWaits;
use crate::record::live_counters::RunView;
use crate::record::rows::Row;
use crate::record::times::Times;
use crate::report::rows::SecondRow;
use crate::report::snapshot::Snapshot;
use crate::run::part::SecondBatch;

/// Histograms of the cores by second, and of the whole run.
pub(crate) struct Seconds {
    /// Seconds of each core that belong to no row yet.
    cores: Vec<VecDeque<Option<SecondBatch>>>,
    /// Histograms of the current row.
    pub(crate) second: Times,
    pub(crate) whole: Times,
    /// Last reported waits of each core, and its waits at the end.
    waits: Vec<Waits>,
    unanswered: IncompleteWaits,
}

#[derive(Clone, Default)]
struct Waits {
    last: IncompleteWaits,
    end: Option<Box<IncompleteWaits>>,
}

impl Seconds {
    pub(crate) fn new(cores: usize) -> Seconds {
        Seconds {
            cores: (0..cores).map(|_| VecDeque::new()).collect(),
            second: Times::default(),
            whole: Times::default(),
            waits: vec![Waits::default(); cores],
            unanswered: IncompleteWaits::default(),
        }
    }

    /// Returns the state at the end of `row`, the row taken last.
    pub(crate) fn moment<'a>(
        &'a self,
        row: &Row,
        cores: &'a [Second],
        view: RunView<'a>,
    ) -> Snapshot<'a> {
        Snapshot {
            second: row.second(),
            cores,
            row: SecondRow::of(row, &self.second.response, &self.second.service),
            responses: row.now.last_bytes,
            errors: row.now.errors,
            unexpected: row.now.unexpected,
            connect_failures: row.progress.connect_failures,
            statuses: row.now.statuses,
            times: &self.whole,
            unanswered: &self.unanswered,
            view,
        }
    }

    pub(crate) fn add(&mut self, core: usize, measured: Option<SecondBatch>) {
        self.cores[core].push_back(measured);
    }

    pub(crate) fn ended(&mut self, core: usize, unanswered: Box<IncompleteWaits>) {
        self.waits[core].end = Some(unanswered);
    }

    /// Takes the next second, once each running core has added its own.
    pub(crate) fn next(&mut self) {
        self.second.clear();
        self.unanswered.clear();
        for (core, waits) in self.cores.iter_mut().zip(&mut self.waits) {
            match core.pop_front() {
                Some(Some(SecondBatch { mut told, back })) => {
                    self.second.merge(&told.times);
                    told.times.clear();
                    std::mem::swap(&mut waits.last, &mut told.unanswered);
                    // The core may have ended and dropped the receiver.
                    let _ = back.send(told);
                }
                // Joined with the next second; the last reported waits remain valid.
                Some(None) => {}
                None => waits.ends(),
            }
            self.unanswered.merge(&waits.last);
        }
        self.whole.merge(&self.second);
    }

    /// Takes the histograms that the cores recorded since their last whole second.
    pub(crate) fn last<'a>(&mut self, times: impl Iterator<Item = &'a mut Box<Times>>) {
        self.second.clear();
        times.for_each(|times| self.second.merge(times));
        self.whole.merge(&self.second);
        self.unanswered.clear();
        for waits in &mut self.waits {
            waits.ends();
            self.unanswered.merge(&waits.last);
        }
    }
}

impl Waits {
    /// Replaces the last waits by those at the end.
    fn ends(&mut self) {
        if let Some(end) = self.end.take() {
            self.last = *end;
        }
    }
}
