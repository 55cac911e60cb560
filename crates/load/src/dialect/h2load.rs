//! h2load's output: the lines before a run, and the summary. Pure.

use std::fmt::Write;
use std::time::Duration;

use onrush_measure::histogram::Histogram;

use crate::report::Report;

/// Parameters of the output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SummaryFormatter {
    /// Threads requested.
    pub threads: u64,
    /// Connections requested.
    pub clients: u64,
    /// Limit that ends the run.
    pub end: End,
    /// Protocol by h2load's name: `h2`, `h2c` or `http/1.1`.
    pub protocol: &'static str,
}

/// Limit that ends a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Number of requests.
    Requests(u64),
    /// Measured time, and the warm-up before it.
    Time(Duration, Duration),
}

impl SummaryFormatter {
    /// Returns the lines printed before the run.
    pub fn head(&self) -> String {
        let mut text = "starting benchmark...\n".to_owned();
        for thread in 0..self.threads {
            let part = |whole: u64| whole / self.threads + u64::from(thread < whole % self.threads);
            let clients = part(self.clients);
            let _ = match self.end {
                End::Requests(count) => writeln!(
                    text,
                    "spawning thread #{thread}: {clients} total client(s). {} total requests",
                    part(count)
                ),
                End::Time(time, warm_up) => writeln!(
                    text,
                    "spawning thread #{thread}: {clients} total client(s). Timing-based test with {}s of warm-up time and {}s of main duration for measurements.",
                    warm_up.as_secs(),
                    time.as_secs()
                ),
            };
        }
        let _ = writeln!(text, "Application protocol: {}", self.protocol);
        text
    }

    /// Returns the summary printed after the run.
    pub fn report(&self, report: &Report) -> String {
        // Like h2load, leave out the counts of the warm-up.
        let before = &report.unmeasured;
        let responses = report.requests - before.last_bytes;
        let of = |class: usize| -> u64 {
            let statuses = report.statuses.iter();
            let of_class = statuses.filter(|(status, _)| status.starts_with(&class.to_string()));
            let counts = of_class.map(|(_, count)| count);
            counts.sum::<u64>() - before.statuses[class - 1]
        };
        let classes = [2, 3, 4, 5].map(of);
        let succeeded = classes[0] + classes[1];
        let lost = report.evidence.failures - (before.requests - before.last_bytes);
        let received = report.bytes - before.bytes;
        let timeouts = report.errors_by_kind.get("timeout").copied().unwrap_or(0);
        let started = responses + lost + report.unfinished;
        let total = match self.end {
            End::Requests(count) => count,
            End::Time(..) => started,
        };
        let done = responses + lost;
        let mut text = format!(
            "\nfinished in {}, {:.2} req/s, {}B/s\n\
             requests: {total} total, {started} started, {done} done, {succeeded} succeeded, {} failed, {lost} errored, {timeouts} timeout\n\
             status codes: {} 2xx, {} 3xx, {} 4xx, {} 5xx\n\
             traffic: {}B ({}) total\n",
            time(report.duration_s * 1e6),
            report.rps,
            bytes(report.bytes_per_s),
            done - succeeded,
            classes[0],
            classes[1],
            classes[2],
            classes[3],
            bytes(received as f64),
            received,
        );
        text.push_str(
            "                     min         max         mean         sd        +/- sd\n",
        );
        let times = &report.times;
        for (name, times) in [
            ("time for request", &times.service),
            ("time for connect", &times.connect),
            ("time to 1st byte", &times.first_byte),
        ] {
            text.push_str(&line(name, times));
        }
        text
    }
}

/// Returns a row of the table of times.
fn line(name: &str, times: &Histogram) -> String {
    let (mean, deviation) = (times.mean(), times.deviation());
    let (low, high) = ((mean - deviation).max(0.0), mean + deviation);
    let within = times.count_up_to(high as u64) - times.count_up_to((low as u64).saturating_sub(1));
    let share = within as f64 * 100.0 / times.count().max(1) as f64;
    let us = |ns: f64| time(ns / 1000.0);
    format!(
        "{name}: {:>10}  {:>10}  {:>10}  {:>10}  {share:>8.2}%\n",
        us(times.min() as f64),
        us(times.max() as f64),
        us(mean),
        us(deviation),
    )
}

/// Formats a time in microseconds with h2load's units.
fn time(us: f64) -> String {
    match us {
        ..1000.0 => format!("{us:.0}us"),
        ..1_000_000.0 => format!("{:.2}ms", us / 1000.0),
        _ => format!("{:.2}s", us / 1_000_000.0),
    }
}

/// Formats a number of bytes with h2load's prefixes, which are powers of 1024.
fn bytes(count: f64) -> String {
    const UNIT: f64 = 1024.0;
    match count {
        ..UNIT => format!("{count:.0}"),
        _ if count < UNIT * UNIT => format!("{:.2}K", count / UNIT),
        _ if count < UNIT * UNIT * UNIT => format!("{:.2}M", count / UNIT / UNIT),
        _ => format!("{:.2}G", count / UNIT / UNIT / UNIT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_measure::second::Tally;

    fn text(end: End) -> SummaryFormatter {
        SummaryFormatter {
            threads: 2,
            clients: 3,
            end,
            protocol: "h2c",
        }
    }

    #[test]
    fn head_matches_h2load() {
        assert_eq!(
            text(End::Requests(5)).head(),
            "starting benchmark...\n\
             spawning thread #0: 2 total client(s). 3 total requests\n\
             spawning thread #1: 1 total client(s). 2 total requests\n\
             Application protocol: h2c\n"
        );
        let timed = text(End::Time(Duration::from_secs(4), Duration::from_secs(1))).head();
        let expected = "#1: 1 total client(s). Timing-based test with 1s of warm-up time and 4s of main duration for measurements.\n";
        assert!(timed.contains(expected), "{timed}");
    }

    #[test]
    fn summary_matches_h2load() {
        let mut run = Report {
            requests: 4,
            duration_s: 0.0064,
            rps: 625.0,
            bytes: 6998,
            bytes_per_s: 1_093_437.5,
            statuses: [("200".to_owned(), 3), ("404".to_owned(), 1)].into(),
            errors_by_kind: [("timeout".to_owned(), 1)].into(),
            ..Report::default()
        };
        run.evidence.failures = 2;
        for us in [59, 61, 60, 3850] {
            run.times.service.record(us * 1000);
        }
        let lines = text(End::Requests(6)).report(&run);
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(
            lines[1..6],
            [
                "finished in 6.40ms, 625.00 req/s, 1.04MB/s",
                "requests: 6 total, 6 started, 6 done, 3 succeeded, 3 failed, 2 errored, 1 timeout",
                "status codes: 3 2xx, 0 3xx, 1 4xx, 0 5xx",
                "traffic: 6.83KB (6998) total",
                "                     min         max         mean         sd        +/- sd",
            ]
        );
        run.unmeasured = Tally {
            requests: 3,
            last_bytes: 2,
            bytes: 6000,
            statuses: [0, 2, 0, 0, 0],
            ..Tally::default()
        };
        let warm = text(End::Time(Duration::from_secs(4), Duration::from_secs(1))).report(&run);
        for part in [
            "finished in 6.40ms, ",
            "requests: 3 total, 3 started, 3 done, 1 succeeded, 2 failed, 1 errored, 1 timeout\nstatus codes: 1 2xx, 0 3xx, 1 4xx, 0 5xx\ntraffic: 998B (998) total\n",
        ] {
            assert!(warm.contains(part), "{warm}");
        }
        let request = "time for request:       59us      3.85ms      1.01ms";
        assert!(lines[6].starts_with(request), "{}", lines[6]);
        assert!(lines[6].ends_with("     75.00%"), "{}", lines[6]);
    }
}
