//! Merges the results of several generators that loaded one target at the same time into that of one run. Pure.
//!
//! Histograms, counts and seconds are added. Percentiles come from the added histograms, because percentiles cannot be
//! averaged. Results that do not add up to one run are rejected.

pub mod part;
pub mod times;

mod classes;
mod clock;
mod connections;
mod journeys;
mod merged_results;
mod rates;
mod rows;
mod span;

use onrush_measure::histogram::Histogram;
use onrush_measure::units;

use crate::limits::{KINDS_SHOWN_MAX, MERGE_SKEW_SHARE_MAX};
use crate::record::evidence::{Evidence, GeneratorShare};
use crate::record::figures::Kind;
use crate::record::incomplete_waits::Censored;
use crate::record::kind::KindRecord;
use crate::record::live_counters::response_mean_us;
use crate::record::times::Times;
use crate::report::Report;
use crate::report::histograms::Histograms;
use crate::report::latency::Latency;
use crate::report::memcached::MemcachedRow;
use crate::report::reported_options::ReportedOptions;
use crate::report::rows::{PartRow, RequestRow};
use crate::verdict::Verdict;
use crate::verdict::reason::{Reason, State};
use clock::{clock, unsynchronized};
use connections::add_connections;
use part::Part;
use rates::MeasuredRates;
use span::{Span, round_to_thousandths};
use times::{sum_times, sum_unanswered};

/// Merges `parts`.
///
/// # Errors
/// The reason why they are not one run, and what to do instead.
pub fn merge(parts: &[Part]) -> Result<Report, String> {
    let [first, others @ ..] = parts else {
        return Err("nothing to merge: name the JSON files of the generators".to_owned());
    };
    for other in others {
        check_same(first, other)?;
    }
    let members = merged_results::of(parts)?;
    let span = Span::of(parts)?;
    let times = sum_times(parts)?;
    let unanswered = sum_unanswered(parts)?;
    let sum = |count: fn(&Report) -> u64| parts.iter().map(|part| count(&part.report)).sum();
    let requests: u64 = sum(|report| report.requests);
    let verdict = verdict(parts, &members, &span);
    let seconds = rows::sum(parts, &span)?;
    let measured = MeasuredRates::of(parts, &seconds, &span);
    let none = Histogram::new();
    let waits = |kind| unanswered.of(kind).unwrap_or(&none);
    let of = |kind| Latency::bounded(times.of(kind), waits(kind));
    let censored = |kind| Censored::new(times.of(kind), waits(kind));
    let mut report = Report {
        target: first.report.target.clone(),
        options: asked(parts),
        requests,
        errors: sum(|report| report.errors),
        duration_s: round_to_thousandths(span.length()),
        rps: measured.rps,
        measured_s: measured.time_s,
        bytes: sum(|report| report.bytes),
        bytes_per_s: measured.bytes_per_s,
        latency_us: of(Kind::Response).by_parts(
            &censored(Kind::Response),
            parts.iter().map(|part| &part.report.latency_us),
        ),
        service_us: of(Kind::Service).by_parts(
            &censored(Kind::Service),
            parts.iter().map(|part| &part.report.service_us),
        ),
        send_lag_us: of(Kind::SendLag),
        first_byte_us: of(Kind::FirstByte),
        connect_us: of(Kind::Connect),
        tls_us: of(Kind::Tls),
        cpu_us_per_request: cpu(parts, requests),
        resent: sum(|report| report.resent),
        refused: sum(|report| report.refused),
        missed: sum(|report| report.missed),
        unfinished: sum(|report| report.unfinished),
        late: sum(|report| report.late),
        memcached: memcached(parts),
        evidence: evidence(parts, &span, &times, &measured),
        stopped_because: stopped_because(parts),
        seconds,
        warnings: warnings(parts, &verdict),
        began_unix_s: Some(span.began),
        clock: clock(parts, &span),
        histograms: Some(Histograms::of(&times, &unanswered)),
        parts: members,
        verdict,
        times,
        unanswered,
        ..Report::default()
    };
    add_connections(&mut report, parts);
    for part in parts {
        add_counts(&mut report, &part.report);
    }
    (report.by_class, report.by_request) = (classes::sum(parts)?, by_request(parts)?);
    (report.setup, report.journeys) = journeys::sum(parts)?;
    Ok(report)
}

fn memcached(parts: &[Part]) -> Option<MemcachedRow> {
    let mut rows = parts
        .iter()
        .filter_map(|part| part.report.memcached.as_ref());
    let first = rows.next()?.clone();
    Some(rows.fold(first, MemcachedRow::sum))
}

fn stopped_because(parts: &[Part]) -> Option<String> {
    let reason = |part: &Part| {
        let reason = part.report.stopped_because.as_ref()?;
        Some(format!("{}: {reason}", part.name))
    };
    let reasons: Vec<String> = parts.iter().filter_map(reason).collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// Returns the reasons of the verdict, then the other warnings of the parts.
fn warnings(parts: &[Part], verdict: &Verdict) -> Vec<String> {
    let of_part = |part: &Part| -> Vec<String> {
        let others = part.report.other_warnings().iter();
        others
            .map(|warning| format!("{}: {warning}", part.name))
            .collect()
    };
    let reasons = verdict.reasons.iter().map(Reason::to_string);
    reasons.chain(parts.iter().flat_map(of_part)).collect()
}

/// Merges the evidence: sums of counts and rates, the worst of each share; silent only if all parts are.
fn evidence(parts: &[Part], span: &Span, times: &Times, measured: &MeasuredRates) -> Evidence {
    let all = || parts.iter().map(|part| &part.report.evidence);
    let sum = |count: fn(&Evidence) -> u64| all().map(count).sum::<u64>();
    let known = |count: fn(&Evidence) -> Option<u64>| {
        all().filter_map(count).reduce(|one, more| one + more)
    };
    let rates =
        |rate: fn(&Evidence) -> Option<f64>| all().filter_map(rate).reduce(|one, more| one + more);
    let lag = times.of(Kind::SendLag);
    Evidence {
        threads: all()
            .flat_map(|evidence| evidence.threads.clone())
            .collect(),
        rate_asked: rates(|evidence| evidence.rate_asked),
        rate_achieved: all().map(|evidence| evidence.rate_achieved).sum(),
        missed: sum(|evidence| evidence.missed),
        connections_asked: sum(|evidence| evidence.connections_asked),
        connections_achieved: sum(|evidence| evidence.connections_achieved),
        fairness: all()
            .filter_map(|evidence| evidence.fairness)
            .reduce(f64::min),
        steal_share: all()
            .filter_map(|evidence| evidence.steal_share)
            .reduce(f64::max),
        throttled_s: all()
            .filter_map(|evidence| evidence.throttled_s)
            .reduce(f64::max),
        retransmits: known(|evidence| evidence.retransmits),
        segments_out: known(|evidence| evidence.segments_out),
        no_local_port: sum(|evidence| evidence.no_local_port),
        requests_sent: sum(|evidence| evidence.requests_sent),
        responses: sum(|evidence| evidence.responses),
        measured: Some(times.of(Kind::Response).count()),
        failures: sum(|evidence| evidence.failures),
        unfinished: sum(|evidence| evidence.unfinished),
        late: sum(|evidence| evidence.late),
        resent: sum(|evidence| evidence.resent),
        refused: sum(|evidence| evidence.refused),
        timeouts: sum(|evidence| evidence.timeouts),
        unasked: sum(|evidence| evidence.unasked),
        failed_responses: sum(|evidence| evidence.failed_responses),
        unaccepted: sum(|evidence| evidence.unaccepted),
        unexpected: sum(|evidence| evidence.unexpected),
        false_responses: sum(|evidence| evidence.false_responses),
        is_count_consistent: all().all(|evidence| evidence.is_count_consistent),
        send_lag_p99_us: (lag.count() > 0).then(|| units::microseconds(lag.value_at(99.0))),
        duration_s: round_to_thousandths(span.length()),
        answered_until_s: measured.answered_until_s,
        silent_s: measured.silent_s,
        longest_open: all()
            .filter_map(|evidence| evidence.longest_open)
            .reduce(f64::max),
        response_mean_us: response_mean_us(times),
        own: GeneratorShare::of(times),
        own_mean_us: GeneratorShare::mean_us(times),
        start_late_s: all()
            .filter_map(|evidence| evidence.start_late_s)
            .reduce(f64::max),
    }
}

/// Rows of all parts, added up by name.
fn by_request(parts: &[Part]) -> Result<Vec<RequestRow>, String> {
    let mut sums: Vec<(&str, KindRecord)> = Vec::new();
    for part in parts {
        for row in &part.report.by_request {
            let record = row
                .record()
                .map_err(|reason| format!("{}: by_request, {}: {reason}", part.name, row.name))?;
            match sums.iter_mut().find(|(name, _)| *name == row.name) {
                Some((_, sum)) => sum.merge(&record),
                None => sums.push((&row.name, record)),
            }
            if sums.len() > KINDS_SHOWN_MAX {
                return Err(format!(
                    "cannot merge: the results have more than {KINDS_SHOWN_MAX} kinds of requests together, so they \
                     are not parts of one load"
                ));
            }
        }
    }
    let rows = sums.into_iter();
    Ok(rows
        .map(|(name, record)| RequestRow::new(name.to_owned(), &record))
        .collect())
}

fn add_counts(sum: &mut Report, more: &Report) {
    for (kind, count) in &more.errors_by_kind {
        *sum.errors_by_kind.entry(kind.clone()).or_default() += count;
    }
    for (status, count) in &more.statuses {
        *sum.statuses.entry(status.clone()).or_default() += count;
    }
    sum.cores.extend_from_slice(&more.cores);
    sum.dns.extend_from_slice(&more.dns);
}

fn check_same(first: &Part, other: &Part) -> Result<(), String> {
    let differ = |what: &str, of_first: String, of_other: String| {
        Err(format!(
            "{} and {} cannot be merged: their {what} differ ({of_first} and {of_other}); only generators of one load \
             can be merged. To compare the two: onrush load compare",
            first.name, other.name
        ))
    };
    let (one, two) = (&first.report, &other.report);
    let pace = |options: &ReportedOptions| match options.rate {
        Some(_) => "a set rate".to_owned(),
        None => "a closed loop".to_owned(),
    };
    if one.target != two.target {
        return differ("targets", one.target.clone(), two.target.clone());
    }
    if one.options.method != two.options.method {
        return differ(
            "methods",
            one.options.method.clone(),
            two.options.method.clone(),
        );
    }
    if one.options.headers != two.options.headers {
        return differ(
            "fields",
            one.options.headers.join(", "),
            two.options.headers.join(", "),
        );
    }
    let carrier = |report: &Report| {
        let row = report.memcached.as_ref();
        let is_datagrams = row.is_some_and(|row| row.datagrams.is_some());
        if is_datagrams { "UDP" } else { "connections" }.to_owned()
    };
    if carrier(one) != carrier(two) {
        return differ("carriers", carrier(one), carrier(two));
    }
    if pace(&one.options) != pace(&two.options) {
        return differ("paces", pace(&one.options), pace(&two.options));
    }
    if one.options.pipeline != two.options.pipeline {
        let pipeline = |report: &Report| report.options.pipeline.to_string();
        return differ("pipelines", pipeline(one), pipeline(two));
    }
    if one.options.streams != two.options.streams {
        let streams = |report: &Report| report.options.streams_text();
        return differ("streams", streams(one), streams(two));
    }
    Ok(())
}

/// Options of all parts together.
fn asked(parts: &[Part]) -> ReportedOptions {
    let options = || parts.iter().map(|part| &part.report.options);
    let first = &parts[0].report.options;
    let total = |count: fn(&ReportedOptions) -> Option<u64>| options().map(count).sum();
    let is_one_driver = options().all(|options| options.io == first.io);
    ReportedOptions {
        connections: options().map(|options| options.connections).sum(),
        threads: options().map(|options| options.threads).sum(),
        // CPU numbers of several machines mean nothing together.
        cpus: Vec::new(),
        io: if is_one_driver {
            first.io.clone()
        } else {
            "mixed".to_owned()
        },
        duration_s: options()
            .filter_map(|options| options.duration_s)
            .reduce(f64::max),
        count: total(|options| options.count),
        rate: total(|options| options.rate),
        timeout_s: options()
            .map(|options| options.timeout_s)
            .fold(0.0, f64::max),
        shard: None,
        ..first.clone()
    }
}

fn cpu(parts: &[Part], requests: u64) -> Option<f64> {
    let spent = |part: &Part| Some(part.report.cpu_us_per_request? * part.report.requests as f64);
    let spent: f64 = parts.iter().filter_map(spent).sum();
    (requests > 0).then(|| round_to_thousandths(spent / requests as f64))
}

/// Reasons of all parts, missing parts, and whether the parts ran at the same time.
fn verdict(parts: &[Part], members: &[PartRow], span: &Span) -> Verdict {
    let of_part = |part: &Part| -> Vec<Reason> {
        let named = |reason: &Reason| Reason {
            what: format!("{}: {}", part.name, reason.what),
            ..reason.clone()
        };
        part.report.verdict.reasons.iter().map(named).collect()
    };
    let mut reasons: Vec<Reason> = parts.iter().flat_map(of_part).collect();
    reasons.extend(merged_results::missing(members));
    reasons.extend(unsynchronized(parts, span));
    let apart = 1.0 - span.together / span.length();
    if apart > MERGE_SKEW_SHARE_MAX {
        reasons.push(Reason {
            state: State::Suspect,
            what: "the generators did not run at the same time throughout".to_owned(),
            measured: format!("{:.1} s of {:.1} s", span.together, span.length()),
            bound: format!("all but {:.0} %", MERGE_SKEW_SHARE_MAX * 100.0),
            remedy: "start them at the same time (--start-at), with synchronized clocks; the rate covers the whole span"
                .to_owned(),
        });
    }
    Verdict::from(reasons)
}

/// Describes the merged results in one line.
pub fn headline(parts: &[Part], merged: &Report) -> String {
    let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
    format!(
        "{}: {} ({}), {} over {}",
        merged.target,
        units::plural(merged.parts.len() as u64, "generator"),
        names.join(", "),
        units::plural(merged.options.connections as u64, "connection"),
        units::plural(merged.options.threads as u64, "thread"),
    )
}

#[cfg(test)]
mod tests;
