//! `[tracing]`, and `tracing` of a route.

use std::time::Duration;

use toml::Spanned;
use toml::de::DeValue;

use super::kinds::{TIMEOUT, place_of_value};
use super::upstream_tls::read_tls;
use crate::address::parse_server_url;
use crate::diagnostic::Diagnostics;
use crate::limits;
use crate::plan::{Collector, ParentTrust, RouteTracing, SamplingRatio, ServerAddress, Tracing};
use crate::section::{Keys, Kind, Section};
use crate::toml_values::{as_text, entries_in_order, is_false, kind_of, parsed, place_of};
use crate::value::{self, Invalid};

const KEYS: Keys = Keys::new(&[
    "endpoint",
    "tls",
    "headers",
    "headers_file",
    "service_name",
    "resource",
    "sample",
    "parents",
    "batch",
    "interval",
    "timeout",
    "queue",
]);

struct Endpoint {
    address: ServerAddress,
    is_tls: bool,
    target: String,
}

const ENDPOINT: Kind<Endpoint> = Kind {
    expected: "the URL of a collector such as \"http://127.0.0.1:4318\"",
    parse: parse_endpoint,
};

/// Default path of OTLP/HTTP.
const TARGET_DEFAULT: &str = "/v1/traces";

fn parse_endpoint(text: &str) -> Result<Endpoint, Invalid> {
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err(Invalid::new(format!(
            "{text:?} is not a URL: expected one such as \"http://127.0.0.1:4318\""
        )));
    };
    let at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at(at);
    let server = parse_server_url(&format!("{scheme}://{authority}"))?;
    let can_stand = |letter: char| letter.is_ascii_graphic() && letter != '#';
    if !target.chars().all(can_stand) || target.starts_with('?') {
        return Err(Invalid::new(format!(
            "{target:?} is not a path of a collector: expected one such as {TARGET_DEFAULT:?}"
        )));
    }
    Ok(Endpoint {
        address: server.address,
        is_tls: server.tls,
        target: match target {
            "" | "/" => TARGET_DEFAULT.to_owned(),
            target => target.to_owned(),
        },
    })
}

const PARENTS: Kind<ParentTrust> = Kind {
    expected: "\"trusted\", \"all\" or \"none\"",
    parse: |text| {
        let known = [
            ("trusted", ParentTrust::Trusted),
            ("all", ParentTrust::All),
            ("none", ParentTrust::None),
        ];
        value::parse_name("choice of parents", text, &known)
    },
};

const NAME: Kind<String> = Kind {
    expected: "a name such as \"shop\"",
    parse: parse_text,
};

const EXPECTED_SAMPLE: &str = "a ratio from 0 to 1, or a share such as \"1%\"";

fn parse_text(text: &str) -> Result<String, Invalid> {
    let bytes = 1..=limits::TRACING_TEXT_MAX;
    if !bytes.contains(&text.len()) || text.chars().any(char::is_control) {
        return Err(Invalid::new(format!(
            "expected a string of 1 to {} bytes without control characters",
            limits::TRACING_TEXT_MAX
        )));
    }
    Ok(text.to_owned())
}

/// Reads `[tracing]`; `None` without it, or after an error, which has been reported.
pub(super) fn read_tracing(
    file: &Section<'_, '_>,
    findings: &mut Diagnostics<'_>,
) -> Option<Tracing> {
    const EXPECTED: &str = "a table such as { endpoint = \"http://127.0.0.1:4318\" }";
    let value = file.value("tracing")?;
    let section = Section::of("[tracing]", value, EXPECTED, KEYS, findings)?;
    section.require("endpoint", ENDPOINT.expected, findings);
    let endpoint = section.read("endpoint", ENDPOINT, findings);
    let collector = endpoint.map(|endpoint| read_collector(&section, endpoint, findings));
    let sample = section
        .value("sample")
        .and_then(|value| read_sample("sample in [tracing]", value, findings));
    let service_name = section.read("service_name", NAME, findings);
    let resource = read_texts(&section, "resource", parse_attribute, findings);
    let parents = section.read("parents", PARENTS, findings);
    let mut time = |key, max| read_time(&section, key, max, findings);
    let interval = time("interval", limits::TRACING_INTERVAL_MAX);
    let timeout = time("timeout", limits::TRACING_TIMEOUT_MAX);
    let batch = section.count::<u32>("batch", 1..=limits::TRACING_BATCH_MAX, findings);
    let queue = section.count::<u32>("queue", 1..=limits::TRACING_QUEUE_MAX, findings);
    Some(Tracing {
        collector: collector?,
        service_name: service_name.unwrap_or_else(|| "onrush".to_owned()),
        resource,
        sample: sample.unwrap_or_default(),
        parents: parents.unwrap_or_default(),
        batch: batch.unwrap_or(limits::TRACING_BATCH) as usize,
        interval: interval.unwrap_or(limits::TRACING_INTERVAL),
        timeout: timeout.unwrap_or(limits::TRACING_TIMEOUT),
        queue: queue.unwrap_or(limits::TRACING_QUEUE) as usize,
    })
}

fn read_collector(
    section: &Section<'_, '_>,
    endpoint: Endpoint,
    findings: &mut Diagnostics<'_>,
) -> Collector {
    let tls = read_tls(section, findings);
    if !endpoint.is_tls {
        section.report_conflict(
            &["tls"],
            "has no effect for an endpoint without TLS: expected endpoint = \"https://…\"",
            findings,
        );
    }
    let field = |name: &str, value: &str| {
        value::check_header(name, value)?;
        match RESERVED_FIELDS
            .iter()
            .any(|ours| ours.eq_ignore_ascii_case(name))
        {
            true => Err(Invalid::new(format!("{name} is set by the server itself"))),
            false => Ok(()),
        }
    };
    Collector {
        address: endpoint.address,
        tls: endpoint.is_tls.then(|| tls.unwrap_or_default()),
        target: endpoint.target,
        headers: read_texts(section, "headers", field, findings),
        headers_file: section.path(
            "headers_file",
            "\"/etc/onrush/collector.headers\"",
            findings,
        ),
    }
}

/// Fields of an export request that the exporter writes.
const RESERVED_FIELDS: [&str; 7] = [
    "host",
    "content-type",
    "content-length",
    "content-encoding",
    "transfer-encoding",
    "connection",
    "expect",
];

/// Reads a table of names and strings, each checked by `check`.
fn read_texts(
    section: &Section<'_, '_>,
    key: &str,
    check: impl Fn(&str, &str) -> Result<(), Invalid>,
    findings: &mut Diagnostics<'_>,
) -> Vec<(String, String)> {
    const EXPECTED: &str = "a table of names and strings such as { name = \"value\" }";
    let Some(value) = section.value(key) else {
        return Vec::new();
    };
    let Some(table) = value.get_ref().as_table() else {
        section.report_kind(key, EXPECTED, findings);
        return Vec::new();
    };
    let mut texts = Vec::new();
    for (name, value) in entries_in_order(table) {
        let name = name.get_ref();
        let Some(text) = as_text(value) else {
            let what = format!("{name:?} in {key} is {}: expected a string", kind_of(value));
            findings.error(place_of(value), what);
            continue;
        };
        match check(name, text.get_ref()) {
            Ok(()) => texts.push((name.clone(), text.into_inner())),
            Err(invalid) => findings.error(text.span(), invalid.to_string()),
        }
    }
    if texts.len() > limits::TRACING_TEXTS_MAX {
        let count = texts.len();
        let most = limits::TRACING_TEXTS_MAX;
        let message = format!("{key} has {count} entries: expected at most {most}");
        findings.error(section.place(key), message);
    }
    texts
}

fn parse_attribute(name: &str, text: &str) -> Result<(), Invalid> {
    if name == "service.name" {
        return Err(Invalid::new("service.name is set by the key service_name"));
    }
    parse_text(name).and_then(|_| parse_text(text)).map(|_| ())
}

fn read_time(
    section: &Section<'_, '_>,
    key: &str,
    max: Duration,
    findings: &mut Diagnostics<'_>,
) -> Option<Duration> {
    let time = section.read(key, TIMEOUT, findings)?;
    if time > max {
        let message = format!("{key} is too long: expected at most {} s", max.as_secs());
        findings.error(place_of_value(section, key), message);
        return None;
    }
    Some(time)
}

/// Reads a number from 0 to 1, or a percentage.
fn read_sample(
    what: &str,
    value: &Spanned<DeValue<'_>>,
    findings: &mut Diagnostics<'_>,
) -> Option<SamplingRatio> {
    if let Some(text) = as_text(value) {
        let share = parsed(&text, value::parse_share, findings)?;
        return SamplingRatio::of(f64::from(share) / 10_000.0);
    }
    let written = match value.get_ref() {
        DeValue::Integer(number) => number.as_str().parse().ok(),
        DeValue::Float(number) => number.as_str().parse().ok(),
        _ => {
            let kind = kind_of(value);
            let message = format!("{what} is {kind}: expected {EXPECTED_SAMPLE}");
            findings.error(place_of(value), message);
            return None;
        }
    };
    let sample = written.and_then(SamplingRatio::of);
    if sample.is_none() {
        let message = format!("{what} is out of range: expected {EXPECTED_SAMPLE}");
        findings.error(value.span(), message);
    }
    sample
}

pub(super) fn read_of_route(
    route: &Section<'_, '_>,
    findings: &mut Diagnostics<'_>,
) -> RouteTracing {
    let Some(value) = route.value("tracing") else {
        return RouteTracing::Inherit;
    };
    let is_off = as_text(value).is_some_and(|text| text.get_ref() == "off");
    if is_off || is_false(value) {
        return RouteTracing::Off;
    }
    read_sample("tracing in [[route]]", value, findings)
        .map_or(RouteTracing::Inherit, RouteTracing::Sample)
}

/// Warns of `tracing` of a route without `[tracing]`.
pub(super) fn warn_of_idle(
    route: &Section<'_, '_>,
    file: &Section<'_, '_>,
    findings: &mut Diagnostics<'_>,
) {
    if !file.has("tracing") {
        route.warn_ignored(&["tracing"], "without [tracing]", findings);
    }
}
