//! `/metrics`: what Prometheus scrapes, as its text format (version 0.0.4) or OpenMetrics 1.0, whichever the scraper asks for.
//!
//! Durations are histograms with a bound at each power of two of a second, from 1 us to 256 s. They hold exactly what was
//! counted: no bound lies within a class of what the cores count by.

use std::fmt::Write;

use onrush_serve::{
    Class, CoreView, GroupView, Histogram, ServerView, TrafficView, sum_groups, sum_traffic,
};

use crate::readiness::Phase;
use crate::response::Response;
use crate::setup::Facts;
use crate::views::Views;

const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Text,
    OpenMetrics,
}

/// A page of metrics.
struct Page {
    text: String,
    format: Format,
}

pub(crate) fn respond(views: &Views, facts: &Facts, phase: Phase, accept: &str) -> Response {
    let format = match accept.contains("application/openmetrics-text") {
        true => Format::OpenMetrics,
        false => Format::Text,
    };
    let mut page = Page {
        text: String::new(),
        format,
    };
    process(&mut page, views, facts, phase);
    cores(&mut page, views);
    let cores = || views.cores.iter();
    let kinds = [
        (
            "listener",
            sum_traffic(cores().map(|view| &*view.listeners)),
        ),
        ("route", sum_traffic(cores().map(|view| &*view.routes))),
        (
            "group",
            sum_traffic(cores().map(|view| &*view.group_traffic)),
        ),
    ];
    for (kind, all) in &kinds {
        traffic(&mut page, kind, all);
    }
    servers(&mut page, views);
    if format == Format::OpenMetrics {
        page.text += "# EOF\n";
    }
    let content_type = match format {
        Format::Text => TEXT,
        Format::OpenMetrics => OPENMETRICS,
    };
    Response::of(200, content_type, page.text.into_bytes())
}

impl Page {
    /// A family of metrics begins. Counters have names that end with `_total`, which their family has not in OpenMetrics.
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let family = match self.format {
            Format::OpenMetrics => name.strip_suffix("_total").unwrap_or(name),
            Format::Text => name,
        };
        // Writing to a text cannot fail.
        let _ = write!(
            self.text,
            "# HELP {family} {help}\n# TYPE {family} {kind}\n"
        );
    }

    fn value(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        self.text += name;
        for (position, (label, text)) in labels.iter().enumerate() {
            let before = if position == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{before}{label}=\"");
            for letter in text.chars() {
                match letter {
                    '\\' => self.text += "\\\\",
                    '"' => self.text += "\\\"",
                    '\n' => self.text += "\\n",
                    letter => self.text.push(letter),
                }
            }
            self.text.push('"');
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl std::fmt::Display) {
        self.family(name, kind, help);
        self.value(name, &[], value);
    }

    fn histogram(&mut self, name: &str, labels: &[(&str, &str)], histogram: &Histogram) {
        let bucket = format!("{name}_bucket");
        for (bound, count) in histogram.octaves() {
            let bound = format!("{bound:?}");
            let labels: Vec<_> = labels.iter().copied().chain([("le", &*bound)]).collect();
            self.value(&bucket, &labels, count);
        }
        let count = histogram.count();
        let labels_all: Vec<_> = labels.iter().copied().chain([("le", "+Inf")]).collect();
        self.value(&bucket, &labels_all, count);
        self.value(
            &format!("{name}_sum"),
            labels,
            histogram.sum().as_secs_f64(),
        );
        self.value(&format!("{name}_count"), labels, count);
    }
}

fn process(page: &mut Page, views: &Views, facts: &Facts, phase: Phase) {
    page.family(
        "onrush_build_info",
        "gauge",
        "The program, and how it talks to the kernel.",
    );
    let labels = [("version", facts.version), ("driver", &*facts.driver)];
    page.value("onrush_build_info", &labels, 1);
    let help = "When the process began to serve, in seconds since 1970.";
    page.one(
        "onrush_start_time_seconds",
        "gauge",
        help,
        facts.started.as_secs(),
    );
    let help =
        "The number of the configuration in force; the one that the process began with is 1.";
    let generation = views.cores.iter().map(|view| view.generation).max();
    page.one(
        "onrush_config_generation",
        "gauge",
        help,
        generation.unwrap_or(0),
    );
    let help = "Whether the server wants more clients (1), or drains or stops (0).";
    page.one(
        "onrush_ready",
        "gauge",
        help,
        u8::from(phase == Phase::Ready),
    );
    let help = "Cores that did not answer in time, and are missing in everything else here.";
    page.one("onrush_cores_silent", "gauge", help, views.silent.len());
}

/// One number of each core: its name, kind, help, and where it is.
type OfCore = (
    &'static str,
    &'static str,
    &'static str,
    fn(&CoreView) -> f64,
);

fn cores(page: &mut Page, views: &Views) {
    let all: [OfCore; 8] = [
        (
            "onrush_core_cpu_seconds_total",
            "counter",
            "CPU time of the core's thread.",
            |view| view.time.ran.as_secs_f64(),
        ),
        (
            "onrush_core_run_queue_seconds_total",
            "counter",
            "Time for which the core's thread was ready to run and waited for its CPU.",
            |view| view.time.waited.unwrap_or_default().as_secs_f64(),
        ),
        (
            "onrush_connections",
            "gauge",
            "Open connections of clients.",
            |view| view.connections as f64,
        ),
        (
            "onrush_connections_total",
            "counter",
            "Connections of clients that were accepted.",
            |view| view.totals.connections as f64,
        ),
        (
            "onrush_tls_handshakes_failed_total",
            "counter",
            "Connections whose TLS handshake failed.",
            |view| view.totals.handshakes_failed as f64,
        ),
        (
            "onrush_requests_in_flight",
            "gauge",
            "Requests whose head has come and that have not ended.",
            |view| view.in_flight as f64,
        ),
        (
            "onrush_requests_refused_total",
            "counter",
            "Input that was no valid request.",
            |view| view.totals.refused as f64,
        ),
        (
            "onrush_buffers_in_use",
            "gauge",
            "Buffers that hold bytes on their way.",
            |view| view.buffers as f64,
        ),
    ];
    for (name, kind, help, of) in all {
        page.family(name, kind, help);
        for view in &views.cores {
            let core = view.core.to_string();
            page.value(name, &[("core", &core)], of(view));
        }
    }
}

/// Of statuses, with those that have none.
const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// One histogram of traffic: what it is called, help, and where it is.
type OfTraffic = (&'static str, &'static str, fn(&TrafficView) -> &Histogram);

/// Of all listeners, all routes or all groups.
fn traffic(page: &mut Page, kind: &str, all: &[TrafficView]) {
    let name = |what: &str| format!("onrush_{kind}_{what}");
    let (requests, sent) = (name("requests_total"), name("sent_bytes_total"));
    let help = format!("Requests of the {kind} that have ended, by the class of their status.");
    page.family(&requests, "counter", &help);
    for view in all {
        for (class, count) in CLASSES.iter().zip(view.statuses) {
            // All classes from the first request on: a rate needs two points.
            if view.requests() > 0 {
                page.value(&requests, &[(kind, &view.name), ("code", class)], count);
            }
        }
    }
    page.family(&sent, "counter", "Bytes of responses, heads included.");
    for view in all {
        page.value(&sent, &[(kind, &view.name)], view.sent);
    }
    let help = "Requests whose client was gone before all of the response was sent.";
    let given_up = name("given_up_total");
    page.family(&given_up, "counter", help);
    for view in all {
        page.value(&given_up, &[(kind, &view.name)], view.given_up);
    }
    if kind == "group" {
        failures(page, all);
    }
    let histograms: [OfTraffic; 2] = [
        (
            "first_byte_seconds",
            "From a request's head to the first byte of its response.",
            |view| &view.first_byte,
        ),
        (
            "duration_seconds",
            "From a request's head to the last byte of its response; without tunnels.",
            |view| &view.duration,
        ),
    ];
    for (what, help, of) in histograms {
        let name = name(what);
        page.family(&name, "histogram", help);
        for view in all.iter().filter(|view| of(view).count() > 0) {
            page.histogram(&name, &[(kind, &view.name)], of(view));
        }
    }
}

fn failures(page: &mut Page, all: &[TrafficView]) {
    let name = "onrush_group_failures_total";
    page.family(
        name,
        "counter",
        "Requests that no server responded to, by what went wrong.",
    );
    for view in all {
        for (class, count) in Class::ALL.iter().zip(view.failures) {
            page.value(
                name,
                &[("group", &view.name), ("reason", class.name())],
                count,
            );
        }
    }
    let name = "onrush_group_retries_total";
    page.family(
        name,
        "counter",
        "Requests that were sent to a server again.",
    );
    for view in all {
        page.value(name, &[("group", &view.name)], view.retries);
    }
}

fn servers(page: &mut Page, views: &Views) {
    let groups = sum_groups(views.cores.iter().map(|view| &*view.groups));
    let name = "onrush_group_queued";
    page.family(
        name,
        "gauge",
        "Requests that wait for capacity of a server.",
    );
    for group in &groups {
        page.value(name, &[("group", &group.name)], group.queued);
    }
    let name = "onrush_server_up";
    page.family(
        name,
        "gauge",
        "Whether the server may have requests (1), or is down, ejected or taken out by hand (0).",
    );
    for (group, server) in of_all(&groups) {
        let is_up = server.state == onrush_serve::ServerState::Up
            && server.duty == onrush_serve::Duty::Serve;
        page.value(
            name,
            &[("group", &group.name), ("server", &server.address)],
            u8::from(is_up),
        );
    }
    let name = "onrush_server_in_flight";
    page.family(name, "gauge", "Requests on their way to the server.");
    for (group, server) in of_all(&groups) {
        page.value(
            name,
            &[("group", &group.name), ("server", &server.address)],
            server.in_flight,
        );
    }
    server_responses(page, &groups);
}

fn server_responses(page: &mut Page, groups: &[GroupView]) {
    let name = "onrush_server_responses_total";
    page.family(
        name,
        "counter",
        "Responses of the server by the class of their status; none: attempts that failed.",
    );
    for (group, server) in of_all(groups) {
        for (class, count) in CLASSES.iter().zip(server.statuses) {
            let labels = [
                ("group", &*group.name),
                ("server", &*server.address),
                ("code", class),
            ];
            page.value(name, &labels, count);
        }
    }
    let name = "onrush_server_first_byte_seconds";
    page.family(
        name,
        "histogram",
        "From a request to the first byte of the server's response.",
    );
    for (group, server) in of_all(groups).filter(|(_, server)| server.first_byte.count() > 0) {
        page.histogram(
            name,
            &[("group", &group.name), ("server", &server.address)],
            &server.first_byte,
        );
    }
}

/// Their servers, each with its group.
fn of_all(groups: &[GroupView]) -> impl Iterator<Item = (&GroupView, &ServerView)> {
    let of = |group| std::iter::repeat(group);
    groups
        .iter()
        .flat_map(move |group| of(group).zip(&group.servers))
}
