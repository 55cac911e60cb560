//! Rate-limited log lines about failed requests.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;

use onrush_engine::{Core, Instant};

use crate::limits::{LOG_LINES_PER_SECOND, LOG_SUBJECTS_MAX, LOSS_WARNING_INTERVAL};

/// Rate limiter of one core for log lines.
#[derive(Debug, Default)]
pub(crate) struct Log {
    second: Cell<u64>,
    lines: Cell<u32>,
    suppressed: Cell<u64>,
    /// Indexed by [`Loss`].
    losses: [Lost; 2],
    /// Subjects of persistent failures that have been logged, the latest last.
    lasting: RefCell<VecDeque<Box<str>>>,
}

/// Kind of data that is lost when a queue is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Loss {
    /// An access log line.
    Line,
    /// A span for the trace collector.
    Span,
}

#[derive(Debug, Default)]
struct Lost {
    /// Losses since the last message.
    count: Cell<u64>,
    said: Cell<Option<Instant>>,
}

impl Log {
    /// Warns of a loss, then at most once per [`LOSS_WARNING_INTERVAL`]. Does not use the budget of failed requests.
    pub(crate) fn loss(&self, core: &Core, loss: Loss) {
        let Some(count) = self.losses[loss as usize].told(core.now()) else {
            return;
        };
        match loss {
            Loss::Line => {
                tracing::warn!("the access log cannot keep up: lines of {count} requests were lost")
            }
            Loss::Span => tracing::warn!(
                "the queue of the trace collector is full: spans of {count} requests were lost"
            ),
        }
    }

    /// Warns of a failed request, unless the limit of lines per second is reached.
    pub(crate) fn failure(&self, core: &Core, what: fmt::Arguments<'_>) {
        if !self.admits(core.now()) {
            self.suppressed.set(self.suppressed.get() + 1);
            return;
        }
        match self.suppressed.take() {
            0 => tracing::warn!("{what}"),
            suppressed => tracing::warn!("{what} (and {suppressed} more such lines before it)"),
        }
    }

    /// Warns of a persistent failure, such as missing permissions: once per `subject`. The last [`LOG_SUBJECTS_MAX`]
    /// subjects are remembered.
    pub(crate) fn persistent_failure(&self, core: &Core, subject: &str, what: fmt::Arguments<'_>) {
        if self.is_new(subject) {
            self.failure(core, what);
        }
    }

    fn is_new(&self, subject: &str) -> bool {
        let mut lasting = self.lasting.borrow_mut();
        if lasting.iter().any(|known| &**known == subject) {
            return false;
        }
        if lasting.len() == LOG_SUBJECTS_MAX {
            lasting.pop_front();
        }
        lasting.push_back(subject.into());
        true
    }

    fn admits(&self, now: Instant) -> bool {
        let second = now.nanoseconds() / 1_000_000_000;
        if self.second.replace(second) != second {
            self.lines.set(0);
        }
        self.lines.set(self.lines.get().saturating_add(1));
        self.lines.get() <= LOG_LINES_PER_SECOND
    }
}

impl Lost {
    /// Counts a loss. Returns the number of losses since the last message if it is time for another one.
    fn told(&self, now: Instant) -> Option<u64> {
        let count = self.count.get() + 1;
        if let Some(said) = self.said.get()
            && now.since(said) < LOSS_WARNING_INTERVAL
        {
            self.count.set(count);
            return None;
        }
        self.count.set(0);
        self.said.set(Some(now));
        Some(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_lines_are_limited_per_second() {
        let log = Log::default();
        let admitted = |seconds: u64| {
            (0..100)
                .filter(|_| log.admits(Instant::from_nanoseconds(seconds * 1_000_000_000)))
                .count()
        };
        assert_eq!(admitted(5), LOG_LINES_PER_SECOND as usize);
        assert_eq!(admitted(6), LOG_LINES_PER_SECOND as usize);
    }

    #[test]
    fn persistent_failure_is_logged_once_per_subject() {
        let log = Log::default();
        assert_eq!(
            ["/a", "/b", "/a"].map(|path| log.is_new(path)),
            [true, true, false]
        );
        for number in 0..LOG_SUBJECTS_MAX {
            assert!(log.is_new(&number.to_string()));
        }
        assert!(log.is_new("/a"), "it was forgotten");
        assert_eq!(log.lasting.borrow().len(), LOG_SUBJECTS_MAX);
    }

    #[test]
    fn losses_are_logged_immediately_then_aggregated() {
        let lost = Lost::default();
        let told = |seconds: u64| lost.told(Instant::from_nanoseconds(seconds * 1_000_000_000));
        assert_eq!(told(100), Some(1));
        assert_eq!((told(100), told(130)), (None, None));
        let later = 100 + LOSS_WARNING_INTERVAL.as_secs();
        assert_eq!((told(later), told(later)), (Some(3), None));
    }
}
