//! Lines about requests that failed, at a bounded rate.

use std::cell::Cell;
use std::fmt;

use onrush_engine::{Core, Instant};

use crate::limits::LOG_LINES_PER_SECOND;

/// One core's right to write log lines.
#[derive(Debug, Default)]
pub(crate) struct Log {
    second: Cell<u64>,
    lines: Cell<u32>,
    suppressed: Cell<u64>,
}

impl Log {
    /// Warns of a failed request, unless this second has had its share of lines.
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

    fn admits(&self, now: Instant) -> bool {
        let second = now.nanoseconds() / 1_000_000_000;
        if self.second.replace(second) != second {
            self.lines.set(0);
        }
        self.lines.set(self.lines.get().saturating_add(1));
        self.lines.get() <= LOG_LINES_PER_SECOND
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_has_its_own_share_of_lines() {
        let log = Log::default();
        let admitted = |seconds: u64| {
            (0..100)
                .filter(|_| log.admits(Instant::from_nanoseconds(seconds * 1_000_000_000)))
                .count()
        };
        assert_eq!(admitted(5), LOG_LINES_PER_SECOND as usize);
        assert_eq!(admitted(6), LOG_LINES_PER_SECOND as usize);
    }
}
