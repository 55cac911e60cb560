//! mcblaster's output at the end of a run: counts, times and their distribution in buckets of 100 us, for each type of
//! request. Pure.

use std::fmt::Write;

use onrush_measure::histogram::Histogram;

use crate::report::Report;
use crate::report::rows::RequestRow;

/// mcblaster's bucket width, and the end of the last bucket, in microseconds.
const BUCKET_US: u64 = 100;
const OVER_US: u64 = 10_000;

/// Figures of one type of request.
struct Kind {
    name: &'static str,
    measured: u64,
    /// Error responses, including values of other keys.
    unexpected: u64,
    times: Histogram,
}

/// Returns the output. Times start at the intended start of requests.
///
/// Failures without a response are not counted by type; they are printed under the first type.
pub fn report(report: &Report) -> String {
    let kinds = kinds(report);
    let wrong = report.statuses.get("wrong_value").copied().unwrap_or(0);
    // Requests without a response were sent too.
    let mut lost = report.evidence.failures + report.unfinished;
    let mut timeouts = of(report, "timeout") + of(report, "lost") + report.unfinished;
    let mut invalid = of(report, "protocol") + of(report, "unexpected_bytes");
    let mut text = String::new();
    for kind in &kinds {
        let wrong = if kind.name == "get" { wrong } else { 0 };
        let sent = kind.measured + std::mem::take(&mut lost);
        let us = |ns: u64| ns / 1000;
        let _ = write!(
            text,
            "\n\
             Request type   : {}\n\
             Requests sent  : {sent}\n\
             Rate per second: {:.0}\n\
             Measured RTTs  : {}\n\
             RTT min/avg/max: {}/{}/{} usec\n\
             Timeouts       : {}\n\
             Errors         : {}\n\
             Invalid replies: {}\n",
            kind.name,
            sent as f64 / report.duration_s.max(f64::MIN_POSITIVE),
            kind.measured,
            us(kind.times.min()),
            us(kind.times.mean() as u64),
            us(kind.times.max()),
            std::mem::take(&mut timeouts),
            kind.unexpected.saturating_sub(wrong),
            std::mem::take(&mut invalid) + wrong,
        );
    }
    for kind in &kinds {
        let _ = writeln!(text, "\nRTT distribution for '{}' requests:", kind.name);
        text.push_str(&buckets(&kind.times));
    }
    text
}

/// Returns the types that have responses: gets, then sets.
fn kinds(report: &Report) -> Vec<Kind> {
    let row = |name: &'static str, row: &RequestRow| {
        Some(Kind {
            name,
            measured: row.requests,
            unexpected: row.unexpected,
            // Only a damaged result file has an unreadable histogram.
            times: Histogram::from_base64(&row.histogram).ok()?,
        })
    };
    let mut all = Vec::new();
    for name in ["get", "set"] {
        let mut rows = report.by_request.iter();
        match rows.find(|row| row.name == name) {
            Some(found) => all.extend(row(name, found)),
            // A run with a single type has no row per type.
            None if report.options.method == name => all.push(Kind {
                name,
                measured: report.requests,
                unexpected: of(report, "unexpected_status") + of(report, "unexpected_body"),
                times: report.times.response.clone(),
            }),
            None => {}
        }
    }
    all.retain(|kind| kind.measured > 0);
    all
}

/// Returns the number of errors of this kind.
fn of(report: &Report, kind: &str) -> u64 {
    report.errors_by_kind.get(kind).copied().unwrap_or(0)
}

/// Formats one line per non-empty bucket, and one for the times beyond the last bucket.
fn buckets(times: &Histogram) -> String {
    let mut counts = [0_u64; (OVER_US / BUCKET_US) as usize];
    let mut over = 0;
    for (ns, count) in times.recorded() {
        match counts.get_mut((ns / 1000 / BUCKET_US) as usize) {
            Some(sum) => *sum += count,
            None => over += count,
        }
    }
    let mut text = String::new();
    for (from, count) in (0..).step_by(BUCKET_US as usize).zip(counts) {
        if count > 0 {
            let _ = writeln!(text, "[{from:>3}-{:>3}]\t: {count}", from + BUCKET_US);
        }
    }
    let _ = writeln!(text, "Over {OVER_US:>6} usec: {over}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::kind::KindRecord;
    use crate::report::reported_options::ReportedOptions;

    fn times(us: &[u64]) -> Histogram {
        let mut times = Histogram::new();
        us.iter().for_each(|us| times.record(us * 1000));
        times
    }

    #[test]
    fn gets_match_mcblaster() {
        let mut run = Report {
            requests: 4,
            duration_s: 2.0,
            options: ReportedOptions {
                method: "get".to_owned(),
                ..ReportedOptions::default()
            },
            ..Report::default()
        };
        run.times.response = times(&[40, 60, 150, 20_000]);
        let text = report(&run);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..6],
            [
                "",
                "Request type   : get",
                "Requests sent  : 4",
                "Rate per second: 2",
                "Measured RTTs  : 4",
                "RTT min/avg/max: 40/5062/20000 usec",
            ]
        );
        assert_eq!(
            lines[9..],
            [
                "",
                "RTT distribution for 'get' requests:",
                "[  0-100]\t: 2",
                "[100-200]\t: 1",
                "Over  10000 usec: 1",
            ]
        );
    }

    #[test]
    fn lost_requests_count_under_first_type() {
        let row = |name: &str, us: &[u64], unexpected| {
            let record = KindRecord {
                responses: us.len() as u64,
                unexpected,
                response: times(us),
                ..KindRecord::default()
            };
            RequestRow::new(name.to_owned(), &record)
        };
        let run = Report {
            requests: 3,
            unfinished: 2,
            duration_s: 1.0,
            by_request: vec![row("get", &[500, 600], 1), row("set", &[700], 0)],
            statuses: [("wrong_value".to_owned(), 1)].into(),
            ..Report::default()
        };
        let text = report(&run);
        let of = |name: &str| -> Vec<&str> {
            let lines = text.lines().filter_map(|line| line.strip_prefix(name));
            lines.collect()
        };
        assert_eq!(of("Request type   : "), ["get", "set"]);
        assert_eq!(of("Requests sent  : "), ["4", "1"]);
        assert_eq!(of("Timeouts       : "), ["2", "0"]);
        assert_eq!(of("Errors         : "), ["0", "0"]);
        assert_eq!(of("Invalid replies: "), ["1", "0"]);
        assert!(
            text.contains("RTT distribution for 'set' requests:\n[700-800]\t: 1\n"),
            "{text}"
        );
    }
}
