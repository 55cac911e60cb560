//! JSON of `iperf3 -J`. It counts datagrams for UDP, and only bytes for TCP and SCTP.

use serde::Deserialize;

use super::parsing::json;
use super::report::{ClientReport, sum};
use crate::outcome::Second;
use crate::scenario::CountedUnit;

#[derive(Deserialize)]
struct Json {
    start: Start,
    #[serde(default)]
    intervals: Vec<Interval>,
    end: Option<End>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Start {
    test_start: Option<TestStart>,
}

#[derive(Deserialize)]
struct TestStart {
    protocol: String,
}

/// `sum_bidir_reverse` is the other direction of `--bidir`.
#[derive(Deserialize)]
struct Interval {
    sum: Sum,
    sum_bidir_reverse: Option<Sum>,
}

#[derive(Default, Deserialize)]
struct End {
    sum: Option<Sum>,
    sum_bidir_reverse: Option<Sum>,
    sum_sent: Option<Sum>,
    sum_sent_bidir_reverse: Option<Sum>,
    sum_received: Option<Sum>,
    sum_received_bidir_reverse: Option<Sum>,
}

#[derive(Deserialize)]
struct Sum {
    end: f64,
    seconds: f64,
    bytes: u64,
    bits_per_second: f64,
    #[serde(default)]
    packets: u64,
    #[serde(default)]
    lost_packets: u64,
    #[serde(default)]
    retransmits: u64,
    #[serde(default)]
    omitted: bool,
}

pub(super) fn read(text: &str) -> Result<ClientReport, String> {
    let json: Json = json(text)?;
    if let Some(error) = json.error {
        return Err(format!("iperf3 reports: {error}"));
    }
    let protocol = json.start.test_start.map(|test| test.protocol);
    let counted = match protocol.as_deref() {
        Some("UDP") => CountedUnit::Datagrams,
        Some("TCP" | "SCTP") => CountedUnit::Bytes,
        Some(other) => return Err(format!("its protocol is `{other}`")),
        None => return Err("it has no `start.test_start`".to_owned()),
    };
    let end = json.end.ok_or("it has no `end`")?;
    let received = end.sum_received.ok_or("it has no `end.sum_received`")?;
    let received = [Some(received), end.sum_received_bidir_reverse];
    let received: Vec<Sum> = received.into_iter().flatten().collect();
    let bytes_per_s = received.iter().map(|sum| sum.bits_per_second / 8.0).sum();
    let mut report = ClientReport {
        counted,
        duration_s: received[0].seconds,
        bytes_per_s: Some(bytes_per_s),
        seconds: rows(&json.intervals, counted),
        ..ClientReport::default()
    };
    if counted == CountedUnit::Datagrams {
        let both = end.sum.ok_or("it has no `end.sum`")?;
        let both: Vec<Sum> = [Some(both), end.sum_bidir_reverse]
            .into_iter()
            .flatten()
            .collect();
        let arrived = |sum: &Sum| sum.packets.saturating_sub(sum.lost_packets);
        report.requests = sum(both.iter().map(arrived));
        report.errors = sum(both.iter().map(|sum| sum.lost_packets));
        let rates = both
            .iter()
            .map(|sum| arrived(sum) as f64 / sum.seconds.max(1e-9));
        report.rps = rates.sum();
        report.notes.push("iperf3 counts datagrams: `requests` are those received, `errors` those lost, and its rows \
            those sent".to_owned());
    } else {
        report.requests = sum(received.iter().map(|sum| sum.bytes));
        report.rps = bytes_per_s;
        report.notes.push(
            "iperf3 counts bytes: `requests` are bytes received, and `rps` is bytes per second"
                .to_owned(),
        );
        let sent = [end.sum_sent, end.sum_sent_bidir_reverse]
            .into_iter()
            .flatten();
        let retransmits = sum(sent.map(|sum| sum.retransmits));
        if retransmits > 0 {
            report
                .notes
                .push(format!("retransmitted segments: {retransmits}"));
        }
    }
    Ok(report)
}

fn rows(intervals: &[Interval], counted: CountedUnit) -> Vec<Second> {
    let number = |sum: &Sum| match counted {
        CountedUnit::Datagrams => sum.packets,
        CountedUnit::Bytes | CountedUnit::Requests | CountedUnit::Messages => sum.bytes,
    };
    let rate = |sum: &Sum| number(sum) as f64 / sum.seconds.max(1e-9);
    let mut errors = 0;
    let mut rows = Vec::new();
    for interval in intervals.iter().filter(|interval| !interval.sum.omitted) {
        let both = std::iter::once(&interval.sum).chain(&interval.sum_bidir_reverse);
        let both: Vec<&Sum> = both.collect();
        errors = sum(both.iter().map(|sum| sum.lost_packets).chain([errors]));
        rows.push(Second {
            t: interval.sum.end,
            rps: both.iter().map(|sum| rate(sum)).sum(),
            errors,
        });
    }
    rows
}
