//! Figures of each second of a run in h1load's columns.

use std::fmt;
use std::iter::Sum;
use std::ops::AddAssign;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::units::{Brief, BriefTime};

/// Counters of one thread since its start, or the sum over threads. All but `connections_open` are monotonic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Open connections.
    pub connections_open: u64,
    /// Number of connections attempted.
    pub connections: u64,
    /// Number of requests finished, successfully or not.
    pub requests: u64,
    /// Number of bytes received, heads and bodies.
    pub bytes: u64,
    /// Number of errors of any kind, including timeouts (which h1load leaves out).
    pub errors: u64,
    /// Number of errors that are unexpected responses; these also count as responses.
    pub unexpected: u64,
    /// Number of responses whose first byte arrived.
    pub first_bytes: u64,
    /// Sum of their times from request to complete head, in nanoseconds.
    pub first_byte_sum_ns: u64,
    /// Number of responses whose last byte arrived.
    pub last_bytes: u64,
    /// Sum of their times from request to last byte, in nanoseconds.
    pub last_byte_sum_ns: u64,
    /// Sum of the times for which the requests of these responses waited to be written, in nanoseconds: the part of
    /// both other sums that the server did not cause.
    #[serde(default)]
    pub send_lag_sum_ns: u64,
    /// Responses by status class: `statuses[0]` counts 1xx, `statuses[4]` 5xx.
    pub statuses: [u64; 5],
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.connections_open += other.connections_open;
        self.connections += other.connections;
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.errors += other.errors;
        self.unexpected += other.unexpected;
        self.first_bytes += other.first_bytes;
        self.first_byte_sum_ns += other.first_byte_sum_ns;
        self.last_bytes += other.last_bytes;
        self.last_byte_sum_ns += other.last_byte_sum_ns;
        self.send_lag_sum_ns += other.send_lag_sum_ns;
        for (sum, more) in self.statuses.iter_mut().zip(other.statuses) {
            *sum += more;
        }
    }
}

impl Sum for Tally {
    fn sum<I: Iterator<Item = Tally>>(tallies: I) -> Tally {
        tallies.fold(Tally::default(), |mut sum, tally| {
            sum += tally;
            sum
        })
    }
}

/// One row: counters at its end, and rates since the previous row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Seconds from the start of the run to the end of this row.
    pub time_s: f64,
    /// Number of connections open at the end of this row.
    pub connections_open: u64,
    /// Number of connections attempted since the start.
    pub connections: u64,
    /// Number of requests finished since the start.
    pub requests: u64,
    /// Number of bytes received since the start.
    pub bytes: u64,
    /// Number of errors since the start.
    pub errors: u64,
    /// Connections attempted per second during this row.
    pub connections_per_s: f64,
    /// Requests finished per second during this row.
    pub rps: f64,
    /// Bytes received per second during this row.
    pub bytes_per_s: f64,
    /// Mean time to the first byte during this row, in microseconds; `None` if no response began.
    pub first_byte_us: Option<f64>,
    /// Mean time to the last byte during this row, in microseconds; `None` if no response ended.
    pub last_byte_us: Option<f64>,
    /// Mean time for which the requests of these responses waited to be written, in microseconds; included in both
    /// other times. `None` if no response ended.
    #[serde(default)]
    pub send_lag_us: Option<f64>,
    /// Responses during this row by status class, 1xx to 5xx.
    pub statuses: [u64; 5],
}

impl Second {
    /// Column headings of a printed [`Second`], in the order of h1load's `-l`.
    pub const HEADER: &'static str = "#     time conns tot_conn  tot_req      tot_bytes    err  cps  rps  Bps  bps   ttfb   ttlb";

    /// The row between two readings of the counters: `before` at `elapsed_before` since the start of the run, `now` at
    /// `elapsed`. Rates use the actual interval, not a nominal second; they are 0 if it is empty. A counter that
    /// decreased counts as unchanged.
    pub fn between(
        before: &Tally,
        elapsed_before: Duration,
        now: &Tally,
        elapsed: Duration,
    ) -> Second {
        let interval_s = elapsed.saturating_sub(elapsed_before).as_secs_f64();
        let per_second = |now: u64, before: u64| rate(now.saturating_sub(before), interval_s);
        Second {
            time_s: elapsed.as_secs_f64(),
            connections_open: now.connections_open,
            connections: now.connections,
            requests: now.requests,
            bytes: now.bytes,
            errors: now.errors,
            connections_per_s: per_second(now.connections, before.connections),
            rps: per_second(now.requests, before.requests),
            bytes_per_s: per_second(now.bytes, before.bytes),
            first_byte_us: mean_us(
                now.first_byte_sum_ns
                    .saturating_sub(before.first_byte_sum_ns),
                now.first_bytes.saturating_sub(before.first_bytes),
            ),
            last_byte_us: mean_us(
                now.last_byte_sum_ns.saturating_sub(before.last_byte_sum_ns),
                now.last_bytes.saturating_sub(before.last_bytes),
            ),
            send_lag_us: mean_us(
                now.send_lag_sum_ns.saturating_sub(before.send_lag_sum_ns),
                now.last_bytes.saturating_sub(before.last_bytes),
            ),
            statuses: std::array::from_fn(|class| {
                now.statuses[class].saturating_sub(before.statuses[class])
            }),
        }
    }
}

fn rate(count: u64, interval_s: f64) -> f64 {
    if interval_s > 0.0 {
        count as f64 / interval_s
    } else {
        0.0
    }
}

fn mean_us(sum_ns: u64, count: u64) -> Option<f64> {
    (count > 0).then(|| sum_ns as f64 / count as f64 / 1000.0)
}

/// The line below [`Second::HEADER`], without a line end: whole seconds since the start, full counters, rates in four
/// characters, times in six. As in h1load, a counter that is too wide moves the rest to the right; columns remain
/// separated by blanks.
impl fmt::Display for Second {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{:>10} {:>5} {:>8} {:>8} {:>14} {:>6} {:>4} {:>4} {:>4} {:>4} {:>6} {:>6}",
            self.time_s.round() as u64,
            self.connections_open,
            self.connections,
            self.requests,
            self.bytes,
            self.errors,
            Brief(self.connections_per_s),
            Brief(self.rps),
            Brief(self.bytes_per_s),
            Brief(self.bytes_per_s * 8.0),
            BriefTime(self.first_byte_us),
            BriefTime(self.last_byte_us),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(requests: u64) -> Tally {
        Tally {
            connections_open: 100,
            connections: 100,
            requests,
            bytes: requests * 120,
            errors: 0,
            unexpected: 0,
            first_bytes: requests,
            first_byte_sum_ns: requests * 79_690,
            last_bytes: requests,
            last_byte_sum_ns: requests * 1_203_000,
            send_lag_sum_ns: requests * 690,
            statuses: [0, requests, 0, 0, 0],
        }
    }

    #[test]
    fn row_has_h1load_columns() {
        let row = Second::between(
            &Tally::default(),
            Duration::ZERO,
            &tally(17_950),
            Duration::from_secs(1),
        );
        let expected = [
            "#     time conns tot_conn  tot_req      tot_bytes    err  cps  rps  Bps  bps   ttfb   ttlb",
            "         1   100      100    17950        2154000      0 100. 17k9 2M15 17M2 79.69u 1.203m",
        ];
        assert_eq!([Second::HEADER, &row.to_string()], expected);
    }

    #[test]
    fn idle_second_has_zero_rates_and_no_times() {
        let row = Second::between(
            &tally(9),
            Duration::from_secs(4),
            &tally(9),
            Duration::from_secs(5),
        );
        assert_eq!(
            row.to_string(),
            "         5   100      100        9           1080      0 0.00 0.00 0.00 0.00    -      -  "
        );
        assert_eq!((row.first_byte_us, row.last_byte_us), (None, None));
    }

    #[test]
    fn rates_use_elapsed_time() {
        let row = Second::between(
            &tally(0),
            Duration::from_secs(1),
            &tally(500),
            Duration::from_millis(1500),
        );
        assert_eq!(row.rps, 1000.0);
        let none = Second::between(
            &tally(0),
            Duration::from_secs(1),
            &tally(500),
            Duration::from_secs(1),
        );
        assert_eq!(none.rps, 0.0);
    }

    #[test]
    fn row_means_cover_only_its_interval() {
        let (mut before, mut now) = (tally(1_000), tally(1_000));
        before.first_byte_sum_ns = 9_000_000_000;
        now.first_bytes += 2;
        now.first_byte_sum_ns = before.first_byte_sum_ns + 30_000;
        let row = Second::between(&before, Duration::ZERO, &now, Duration::from_secs(1));
        assert_eq!(row.first_byte_us, Some(15.0));
        now.last_bytes += 2;
        now.send_lag_sum_ns += 7_000;
        let row = Second::between(&before, Duration::ZERO, &now, Duration::from_secs(1));
        assert_eq!(row.send_lag_us, Some(3.5));
    }

    #[test]
    fn thread_counters_are_summed() {
        let sum: Tally = [tally(3), tally(4)].into_iter().sum();
        assert_eq!(
            (sum.requests, sum.connections_open, sum.statuses[1]),
            (7, 200, 7)
        );
        assert_eq!(sum.last_byte_sum_ns, 7 * 1_203_000);
    }
}
