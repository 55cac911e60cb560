//! Views of the cores as JSON. Times are in seconds, as everywhere in the interface.

use std::time::Duration;

use onrush_engine::clock::unix_time;
use onrush_serve::{
    FailureClass, GroupView, Histogram, RequestView, ServerView, TrafficView, sum_groups,
    sum_traffic,
};
use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

use crate::connections;
use crate::context::Context;
use crate::context::journal::{Event, Journal};
use crate::context::setup::ProcessInfo;
use crate::views::CoreViews;

pub(crate) fn status(views: &CoreViews, desk: &Context) -> Value {
    let (facts, phase) = (&desk.facts, desk.readiness.phase());
    let sum =
        |count: fn(&onrush_serve::CoreView) -> u64| views.cores.iter().map(count).sum::<u64>();
    let uptime = unix_time().saturating_sub(facts.started);
    let cores: Vec<Value> = views.cores.iter().map(|view| core(view, facts)).collect();
    let generations: Vec<u64> = views.cores.iter().map(|view| view.generation).collect();
    json!({
        "version": facts.version,
        "process": std::process::id(),
        "phase": phase.name(),
        "started": facts.started.as_secs(),
        "uptime": seconds(uptime),
        "generation": generations.iter().max(),
        "driver": facts.driver,
        "privileges": facts.privileges,
        "connections": sum(|view| view.connections),
        "connections_total": sum(|view| view.totals.connections),
        "handshakes_failed": sum(|view| view.totals.handshakes_failed),
        "in_flight": sum(|view| view.in_flight),
        "requests": sum(|view| view.totals.requests),
        "spans": spans(views),
        "sockets_gone": desk.operator.removed_sockets(),
        "cores": cores,
        "silent_cores": views.unresponsive,
    })
}

fn spans(views: &CoreViews) -> Value {
    let lost = views.spans.lost.iter();
    let lost: Map<String, Value> = lost
        .map(|&(reason, count)| (reason.to_owned(), count.into()))
        .collect();
    json!({ "exported": views.spans.exported, "lost": lost })
}

fn core(view: &onrush_serve::CoreView, facts: &ProcessInfo) -> Value {
    json!({
        "core": view.core,
        "cpu": facts.cpus.get(view.core).copied().flatten(),
        "generation": view.generation,
        "cpu_time": seconds(view.time.ran),
        "run_queue_time": view.time.waited.map(seconds),
        "had_work": view.had_work.map(seconds),
        "busy_max": seconds(view.busy_max),
        "connections": view.connections,
        "in_flight": view.in_flight,
        "requests": view.totals.requests,
        "buffers": view.buffers,
    })
}

pub(crate) fn listeners(views: &CoreViews) -> Value {
    let sums = sum_traffic(views.cores.iter().map(|view| &*view.listeners));
    json!({ "listeners": sums.iter().map(traffic).collect::<Vec<_>>(), "silent_cores": views.unresponsive })
}

pub(crate) fn routes(views: &CoreViews) -> Value {
    let sums = sum_traffic(views.cores.iter().map(|view| &*view.routes));
    json!({ "routes": sums.iter().map(traffic).collect::<Vec<_>>(), "silent_cores": views.unresponsive })
}

pub(crate) fn servers(views: &CoreViews, journal: &Journal) -> Value {
    let groups = sum_groups(views.cores.iter().map(|view| &*view.groups));
    let traffic = sum_traffic(views.cores.iter().map(|view| &*view.group_traffic));
    let groups = groups.iter().map(|one| group(one, &traffic, journal));
    let groups: Vec<Value> = groups.collect();
    json!({ "groups": groups, "silent_cores": views.unresponsive })
}

/// Maximum number of listed requests, the oldest ones; more would make a response of megabytes.
const REQUESTS_MAX: usize = 1000;

pub(crate) fn requests(all: &[RequestView], silent: &[usize]) -> Value {
    let listed = all.iter().take(REQUESTS_MAX).map(|request| {
        json!({
            "age": seconds(request.age),
            "state": request.stage.name(),
            "client": request.client.map(|client| client.to_string()),
            "method": request.method,
            "target": request.target,
            "server": request.server,
            "core": request.core,
            "connection": connections::id(request.core, request.connection),
        })
    });
    json!({
        "requests": listed.collect::<Vec<_>>(),
        "not_listed": all.len().saturating_sub(REQUESTS_MAX),
        "silent_cores": silent,
    })
}

pub(crate) fn group(group: &GroupView, traffic: &[TrafficView], journal: &Journal) -> Value {
    let its = traffic.iter().find(|traffic| traffic.name == group.name);
    let mut value = its.map_or_else(|| json!({ "name": group.name }), self::traffic);
    value["in_flight"] = group.in_flight.into();
    value["queued"] = group.queued.into();
    value["queue_max"] = group.queue_max.into();
    let servers = group.servers.iter().map(|one| {
        let events = journal.of_server(&group.name, &one.address);
        let mut value = server(one);
        value["events"] = events.iter().map(|event| self::event(event)).collect();
        value
    });
    value["servers"] = servers.collect();
    value
}

pub(crate) fn event(event: &Event) -> Value {
    let mut value = json!({
        "number": event.number,
        "time": rfc3339(event.time),
        "level": event.level,
        "event": event.kind,
        "message": event.message,
    });
    for (name, text) in &event.fields {
        value[*name] = text.to_string().into();
    }
    value
}

fn server(server: &ServerView) -> Value {
    json!({
        "name": server.name,
        "address": server.address,
        "state": server.state.name(),
        "wanted": server.duty.name(),
        "weight": server.weight,
        "weight_is_set": server.has_admin_weight,
        "backup": server.is_backup,
        "in_flight": server.in_flight,
        "in_flight_max": server.connections_max,
        "idle_connections": server.idle,
        "responses": statuses(&server.statuses),
        "failures": server.statuses[0],
        "first_byte": quantiles(&server.first_byte),
    })
}

pub(crate) fn traffic(traffic: &TrafficView) -> Value {
    let failures = FailureClass::ALL.iter().zip(traffic.failures);
    let failures: Map<String, Value> = failures
        .filter(|(_, count)| *count > 0)
        .map(|(class, count)| (class.name().to_owned(), count.into()))
        .collect();
    json!({
        "name": traffic.name,
        "requests": traffic.requests(),
        "responses": statuses(&traffic.statuses),
        "without_response": traffic.statuses[0],
        "bytes_sent": traffic.sent,
        "retries": traffic.retries,
        "failures": failures,
        "given_up_by_clients": traffic.given_up,
        "first_byte": quantiles(&traffic.first_byte),
        "duration": quantiles(&traffic.duration),
    })
}

fn statuses(statuses: &[u64; 6]) -> Value {
    let classes = (1..=5).map(|class| (format!("{class}xx"), statuses[class].into()));
    Value::Object(classes.collect())
}

/// Quantiles are upper bounds of buckets, at most 9 % above the measured value.
fn quantiles(histogram: &Histogram) -> Value {
    let at = |share| histogram.quantile(share).map(seconds);
    json!({
        "count": histogram.count(),
        "mean": (histogram.count() > 0).then(|| histogram.sum().as_secs_f64() / histogram.count() as f64),
        "p50": at(0.5),
        "p90": at(0.9),
        "p99": at(0.99),
        "p99.9": at(0.999),
    })
}

/// A time in RFC 3339 format, in UTC with milliseconds.
fn rfc3339(since_1970: Duration) -> String {
    const FORMAT: &[BorrowedFormatItem<'_>] =
        format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
    let moment = OffsetDateTime::UNIX_EPOCH + since_1970;
    moment.format(FORMAT).unwrap_or_default()
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}
