//! A run as an HdrHistogram interval log: response and service times of each second, and all times of the whole run.

use std::io::{self, Write};
use std::time::Duration;

use onrush_measure::hdr_log::{self, Interval};

use crate::record::figures::Kind;
use crate::record::history;
use crate::report::Report;

/// Writes the log. Seconds have the tags `response` and `service`. The whole run has tags such as `run.response`, so
/// that tools which sum one tag do not count it twice.
///
/// # Errors
/// Errors of `out`.
pub fn write(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let seconds: Vec<history::Interval> = report.history.intervals().collect();
    let began = Duration::try_from_secs_f64(report.began_unix_s.unwrap_or(0.0)).unwrap_or_default();
    let of_second = seconds.iter().flat_map(|second| {
        let interval = |tag, histogram| Interval {
            start: Duration::try_from_secs_f64(second.begin_s).unwrap_or_default(),
            length: Duration::try_from_secs_f64(second.end_s - second.begin_s).unwrap_or_default(),
            tag,
            histogram,
        };
        [
            interval("response", &second.response),
            interval("service", &second.service),
        ]
    });
    let of_run = Kind::ALL.into_iter().map(|kind| Interval {
        start: Duration::ZERO,
        length: Duration::try_from_secs_f64(report.duration_s).unwrap_or_default(),
        tag: run_tag(kind),
        histogram: report.times.of(kind),
    });
    let title = format!("onrush load {}; values in nanoseconds", report.target);
    hdr_log::write(out, &title, began, of_run.chain(of_second))?;
    out.flush()
}

fn run_tag(kind: Kind) -> &'static str {
    match kind {
        Kind::Response => "run.response",
        Kind::Service => "run.service",
        Kind::SendLag => "run.send_lag",
        Kind::FirstByte => "run.first_byte",
        Kind::Connect => "run.connect",
        Kind::Tls => "run.tls",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hdr_log_has_line_per_latency_type() {
        let mut report = Report {
            target: "http://a/".to_owned(),
            duration_s: 2.0,
            began_unix_s: Some(1_000.25),
            ..Report::default()
        };
        report.times.response.record(1_500_000);
        let mut log = Vec::new();
        write(&mut log, &report).expect("a vector takes every byte");
        let text = String::from_utf8(log).expect("a log is text");
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            text.contains("#[BaseTime: 1000.250 (seconds since epoch)]"),
            "{text}"
        );
        for kind in Kind::ALL {
            let tag = format!("Tag=run.{},0.000,2.000,", kind.name());
            assert!(lines.iter().any(|line| line.starts_with(&tag)), "{tag}");
        }
    }
}
