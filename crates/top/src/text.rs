//! The view as plain text, printed once.

use std::fmt::Write;

use crate::moment::Traffic;
use crate::unit::{amount, share, time};
use crate::view::View;

/// Renders the view, one line per row.
pub fn text(view: &View) -> String {
    let moment = &view.snapshot;
    let mut text = format!("{}\n", moment.server);
    let mut line = |words: String| {
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "{words}");
    };
    line(format!(
        "all: {}, {} in flight, {} connections",
        figures(&moment.total),
        moment.in_flight,
        moment.connections
    ));
    let known = |part: Option<f64>| part.map_or("-".to_owned(), share);
    for core in &moment.cores {
        line(format!(
            "core {}: busy {}, waiting {}, softirq {}, {} connections, {} requests/s",
            core.number,
            share(core.busy),
            known(core.waiting),
            known(core.softirq),
            core.connections,
            amount(core.rate),
        ));
    }
    for core in &moment.unresponsive_cores {
        line(format!("core {core}: does not respond"));
    }
    for route in view.routes() {
        line(format!("route {}: {}", route.name, figures(route)));
    }
    for group in &moment.groups {
        line(format!(
            "group {}: {}, {} in flight, {} queued",
            group.traffic.name,
            figures(&group.traffic),
            group.in_flight,
            group.queued
        ));
    }
    for server in view.servers() {
        line(format!(
            "server {} of {}: {}, {}, {} in flight",
            server.traffic.name,
            server.group,
            server.condition(),
            figures(&server.traffic),
            server.in_flight
        ));
    }
    for request in view.requests() {
        line(format!(
            "request {}: {}, {}, from {}, to {}",
            request.line,
            time(Some(request.age)),
            request.state,
            request.client,
            request.server
        ));
    }
    if moment.requests_not_listed > 0 {
        line(format!("and {} more requests", moment.requests_not_listed));
    }
    text
}

fn figures(traffic: &Traffic) -> String {
    format!(
        "{} requests/s, {} errors/s, p50 {}, p99 {}",
        amount(traffic.rate),
        amount(traffic.errors),
        time(traffic.p50),
        time(traffic.p99)
    )
}
