//! Detects the time in which a target got requests and sent no response. Pure.

use std::time::Duration;

use crate::limits::SILENCE_MIN;
use crate::record::rows::Row;

#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Silence {
    /// From the last response to the end of the run, if responses stopped there.
    pub(crate) at_end: Duration,
    /// Before that, in whole rows that contain only errors.
    pub(crate) within: Duration,
}

impl Silence {
    /// Computes the silence of a run of `elapsed` with these rows whose last response came at `last`. The end counts
    /// only if requests were outstanding (errors since, or `open` requests), and if it exceeds `longest`, the longest
    /// response time.
    pub(crate) fn of<'a>(
        rows: impl Iterator<Item = &'a Row>,
        elapsed: Duration,
        last: Option<Duration>,
        open: u64,
        longest: Duration,
    ) -> Silence {
        let Some(last) = last else {
            return Silence::default();
        };
        let mut silence = Silence::default();
        let mut errors_at_end = 0;
        for row in rows {
            let errors = row.now.errors - row.before.errors;
            let has_responses = row.now.last_bytes > row.before.last_bytes;
            if row.elapsed > last {
                errors_at_end += errors;
            } else if !has_responses && errors > 0 && row.before.last_bytes > 0 {
                silence.within += row.elapsed.saturating_sub(row.elapsed_before);
            }
        }
        let at_end = elapsed.saturating_sub(last);
        let was_asked = errors_at_end + open > 0;
        if was_asked && at_end >= SILENCE_MIN && at_end > longest * 2 {
            silence.at_end = at_end;
        }
        silence
    }

    /// Time that rates exclude; `due` is `None` in a closed loop. In an open loop, requests due during a pause are sent
    /// and counted after it, so a rate without the pause would exceed the requested one.
    pub(crate) fn excluded(&self, due: Option<f64>) -> Duration {
        match due {
            Some(_) => self.at_end,
            None => self.at_end + self.within,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::stop::Progress;
    use onrush_measure::second::Tally;

    /// Builds rows of one second with these numbers of responses and errors.
    fn silence(seconds: &[(u64, u64)], last_ms: u64, open: u64, longest_ms: u64) -> [f64; 2] {
        let mut rows = Vec::new();
        let mut before = Tally::default();
        for (number, (responses, errors)) in (0..).zip(seconds) {
            let mut now = before;
            now.last_bytes += responses;
            now.errors += errors;
            rows.push(Row {
                before,
                elapsed_before: Duration::from_secs(number),
                now,
                elapsed: Duration::from_secs(number + 1),
                progress: Progress::default(),
            });
            before = now;
        }
        let elapsed = Duration::from_secs(seconds.len() as u64);
        let [last, longest] = [last_ms, longest_ms].map(Duration::from_millis);
        let silence = Silence::of(rows.iter(), elapsed, Some(last), open, longest);
        [silence.at_end, silence.within].map(|time| time.as_secs_f64())
    }

    #[test]
    fn target_silence_starts_at_last_response() {
        let rows = [(100, 0), (50, 4), (0, 9), (0, 9)];
        assert_eq!(silence(&rows, 1500, 0, 10), [2.5, 0.0]);
    }

    #[test]
    fn idle_or_slow_target_is_not_silent() {
        assert_eq!(silence(&[(1, 0), (0, 0), (0, 0)], 500, 0, 10), [0.0, 0.0]);
        assert_eq!(silence(&[(1, 0), (0, 0), (0, 0)], 500, 1, 2000), [0.0, 0.0]);
        assert_eq!(silence(&[(1, 0), (0, 0), (0, 0)], 500, 1, 10), [2.5, 0.0]);
    }

    #[test]
    fn open_loop_rate_includes_pause() {
        let silence = Silence {
            at_end: Duration::from_secs(1),
            within: Duration::from_secs(2),
        };
        assert_eq!(silence.excluded(None), Duration::from_secs(3));
        assert_eq!(silence.excluded(Some(999.0)), Duration::from_secs(1));
    }

    #[test]
    fn seconds_with_only_errors_are_silent() {
        let rows = [(0, 5), (100, 0), (0, 7), (0, 7), (80, 0)];
        assert_eq!(silence(&rows, 4990, 0, 10), [0.0, 2.0]);
    }
}
