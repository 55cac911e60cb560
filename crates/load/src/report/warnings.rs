//! Warnings about the figures of a result, as sentences.

use std::time::Duration;

use onrush_measure::units;

use super::Report;
use super::memcached::MemcachedRow;
use super::rounding::rounded;
use crate::limits::{PORTS_SHARE_MAX, RATE_MISSED_SHARE};
use crate::pace::stop::RunHealth;
use crate::plan::Plan;
use crate::protocol::failure::Failure;
use crate::record::Record;

pub(super) fn warnings(
    report: &Report,
    plan: &Plan,
    record: &Record,
    prospect: RunHealth,
) -> Vec<String> {
    let mut warnings = Vec::new();
    if prospect == RunHealth::Lost {
        warnings.push("stopped early: no connection could be opened for a long time".to_owned());
    } else if report.stopped_because.is_none() && is_early(report, plan, record) {
        warnings.push("stopped early, before the requested load was complete".to_owned());
    }
    warnings.extend(rate_missed(report, plan, record));
    if let Some(error) = &record.connect_error {
        warnings.push(format!("not all connections could be opened: {error}"));
    }
    warnings.extend(ports_taken(report));
    if let Some(reason) = record.protocol_error {
        let name = plan.protocol.name();
        warnings.push(format!("some responses were not {name}: {reason}"));
    }
    if let Some(code) = record.cancelled {
        warnings.push(format!(
            "the server closed streams or connections before their responses, the last time with {code}"
        ));
    }
    if let Some(first) = &record.unexpected {
        warnings.push(format!(
            "{} not as expected, the first of a thread: {first}",
            match record.tally.unexpected {
                1 => "1 response was".to_owned(),
                count => format!("{} responses were", units::count(count)),
            },
        ));
    }
    let timeouts = record.failures_of(Failure::Timeout);
    if timeouts > 0 {
        warnings.push(format!(
            "{} timed out after {} s: percentiles count such requests as longer than that",
            units::plural(timeouts, "request"),
            report.options.timeout_s,
        ));
    }
    let lost = record.failures_of(Failure::LostResponse);
    if lost > 0 {
        warnings.push(format!(
            "{} had no response within {} s and {} lost: percentiles count such requests as longer than that",
            units::plural(lost, "request"),
            report.options.timeout_s,
            if lost == 1 { "is" } else { "are" },
        ));
    }
    let refusals = record.refusals();
    if refusals > 0 {
        warnings.push(format!(
            "{} of {} {}",
            units::count(refusals),
            units::plural(report.requests, "response"),
            plan.protocol.outcomes().refusal_phrase,
        ));
    }
    warnings.extend(report.memcached.iter().flat_map(MemcachedRow::warnings));
    if let Some(reason) = &report.stopped_because {
        warnings.push(format!("stopped early: {reason}"));
    }
    warnings
}

/// Warns if clearly fewer requests finished than the rate asked for.
fn rate_missed(report: &Report, plan: &Plan, record: &Record) -> Option<String> {
    let elapsed = Duration::from_secs_f64(report.duration_s);
    let asked = plan.due_within(elapsed)?;
    let in_flight = report.options.connections as f64 * report.options.pipeline as f64;
    let finished = finished(record) as f64;
    let is_missed = asked - finished > in_flight.max(asked * RATE_MISSED_SHARE);
    is_missed.then(|| {
        format!(
            "{} {} per second were requested and {:.0} completed: the wait of those that started late is part of their \
             latency",
            units::count((asked / report.duration_s).round() as u64),
            match record.journeys {
                None => "requests",
                Some(_) => "journeys",
            },
            finished / report.duration_s,
        )
    })
}

/// Warns if connections in TIME_WAIT keep so many ports that a longer run would run out.
fn ports_taken(report: &Report) -> Option<String> {
    let ports = report
        .ports
        .filter(|ports| ports.share() > PORTS_SHARE_MAX)?;
    Some(format!(
        "{} in TIME_WAIT occupy more than {:.0} % of the {} local ports for a minute, and connections fail when none \
         is free (connect_no_local_port): use more source addresses (--source 10.0.0.2-10.0.0.9), widen \
         net.ipv4.ip_local_port_range, or open fewer connections per second",
        units::plural(ports.time_wait_after, "connection"),
        PORTS_SHARE_MAX * 100.0,
        units::count(ports.local * ports.addresses),
    ))
}

/// Whether the run ended before its configured duration or count.
fn is_early(report: &Report, plan: &Plan, record: &Record) -> bool {
    let in_time = |after: Duration| report.duration_s >= rounded(after.as_secs_f64());
    let in_count = |count: u64| finished(record) + report.missed >= count;
    !plan.options.stop.after.is_some_and(in_time) && !plan.count().is_some_and(in_count)
}

/// Number of requests, or journeys, that have ended, including failed ones.
fn finished(record: &Record) -> u64 {
    let Some(journeys) = &record.journeys else {
        return record.tally.requests;
    };
    let ended = journeys.journeys.iter();
    ended
        .map(|journey| journey.completed + journey.failed)
        .sum()
}
