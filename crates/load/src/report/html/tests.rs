//! The HTML page of a result.

use super::*;
use crate::report::histograms::Histograms;
use crate::report::rows::SecondRow;
use crate::verdict::Verdict;
use crate::verdict::reason::Reason;

/// Run of 60 seconds with markup in every string of external origin.
pub(super) fn report() -> Report {
    let mut times = Times::default();
    for rank in 0..20_000_u32 {
        let share = (f64::from(rank) + 0.5) / 20_000.0;
        let service = 200_000.0 - (1.0 - share).ln() * 400_000.0;
        let lag = 3_000.0 - (1.0 - share).ln() * 9_000.0;
        times.of_mut(Kind::Service).record(service as u64);
        times.of_mut(Kind::SendLag).record(lag as u64);
        times.of_mut(Kind::Response).record((service + lag) as u64);
    }
    let row = |second: u32| {
        let wave = 1.0 + 0.2 * (f64::from(second) / 5.0).sin();
        SecondRow {
            t: f64::from(second),
            connections: 10,
            requests: (333.0 * wave) as u64,
            errors: u64::from(second % 20 == 7) * 9,
            rps: 333.0 * wave,
            statuses: [0, (320.0 * wave) as u64, 0, 0, 13],
            p50_us: Some(480.0 * wave),
            p99_us: Some(2_000.0 * wave),
            max_us: Some(4_000.0 * wave * wave),
            service_p99_us: Some(1_900.0 * wave),
            ..SecondRow::default()
        }
    };
    let mut report = Report {
        target: "http://a/<b>&\"c".to_owned(),
        requests: 20_000,
        errors: 27,
        errors_by_kind: [("reset".to_owned(), 27), ("other".to_owned(), 0)].into(),
        statuses: [("200".to_owned(), 19_220), ("503".to_owned(), 780)].into(),
        duration_s: 60.0,
        rps: 333.3,
        latency_us: Latency::of(times.of(Kind::Response)),
        service_us: Latency::of(times.of(Kind::Service)),
        send_lag_us: Latency::of(times.of(Kind::SendLag)),
        seconds: (1..=60).map(row).collect(),
        began_unix_s: Some(1_772_284_509.0),
        histograms: Some(Histograms::of(&times, &IncompleteWaits::default())),
        verdict: Verdict::from(vec![Reason {
            state: State::Suspect,
            what: "a thread <waited> for a CPU".to_owned(),
            measured: "4.10 % of the time".to_owned(),
            bound: "at most 2.00 %".to_owned(),
            remedy: "give it CPUs of its own".to_owned(),
        }]),
        ..Report::default()
    };
    report.options.connections = 10;
    report
}

#[test]
fn page_is_self_contained_and_has_all_charts() {
    let page = page(&report());
    assert_eq!(page.matches("<svg class=\"chart\"").count(), 6);
    for part in [
        "333/s",
        "503",
        "reset",
        "2026-02-28 13:15:09 UTC",
        "99.9 %",
        "suspect",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for reference in ["src=", "@import", "url(", "<link"] {
        assert!(!page.contains(reference), "{reference}");
    }
}

/// The same with 230 requests without a response after 9 s; the longest response took 4.6 s.
fn unfinished() -> Report {
    let mut report = report();
    let times = times_of(&report).expect("its own");
    let mut waits = IncompleteWaits::default();
    waits.record(9_000_000_000, 8_000_000_000, 230);
    report.latency_us = Latency::bounded(times.of(Kind::Response), &waits.response);
    report.service_us = Latency::bounded(times.of(Kind::Service), &waits.service);
    report.histograms = Some(Histograms::of(&times, &waits));
    (report.unfinished, report.late) = (250, 20);
    report
}

#[test]
fn lower_bounds_are_marked_in_tables_and_charts() {
    let report = unfinished();
    assert!(report.latency_us.is_at_least("99") && !report.latency_us.is_at_least("90"));
    let page = page(&report);
    for part in [
        // Tiles.
        "<b>≥ 9 s</b><span>p99</span><small>≥ ",
        "<b>250</b><span>unfinished</span><small>20 responses after it</small>",
        // Table: response and service time, and send lag, which has no bound.
        "<tr><th scope=\"row\">99 %</th><td>≥ 9 s<small>≥ ",
        "</small></td><td>≥ 8 s<small>≥ ",
        "<tr><th scope=\"row\">largest</th><td>≥ 9 s</td>",
        "A figure with “≥” is a lower bound",
        // Charts.
        "230 requests had no response",
        " % on, response times are lower bounds",
        "response time, at least",
        "service time, at least",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("send lag, at least"));
    assert!(!page.contains("<tr><th scope=\"row\">90 %</th><td>≥"));
}

#[test]
fn complete_run_has_no_bounds() {
    let page = page(&report());
    for part in [
        ">≥ ",
        "lower bound",
        ", at least",
        "no response:",
        "unfinished",
    ] {
        assert!(!page.contains(part), "{part}");
    }
}

#[test]
fn untrusted_strings_are_html_escaped() {
    let page = page(&report());
    assert!(!page.contains("/<b>&\"c") && !page.contains("<waited>"));
    assert!(page.contains("http://a/&lt;b&gt;&amp;&quot;c"));
}

#[test]
fn result_without_histograms_has_page() {
    let empty = page(&Report::default());
    assert!(!empty.contains("<svg") && empty.contains("How it was measured"));
}
