//! `[timeouts]` and `timeouts` of a route.

use std::time::Duration;

use toml::de::DeValue;

use super::kinds::TIMEOUT;
use crate::diagnostic::Diagnostics;
use crate::plan::Timeouts;
use crate::section::{Keys, Section};
use crate::toml_values::place_of;

const KEYS: Keys = Keys::new(&[
    "client_head",
    "client_body",
    "client_idle",
    "client_send",
    "tls_handshake",
    "connect",
    "queue",
    "upstream_first_byte",
    "upstream_body",
    "upstream_idle",
    "request",
    "tunnel_idle",
    "tunnel_fin",
    "drain",
]);

pub(super) fn read_timeouts(file: &Section<'_, '_>, findings: &mut Diagnostics<'_>) -> Timeouts {
    let mut timeouts = Timeouts::default();
    let Some(value) = file.value("timeouts") else {
        return timeouts;
    };
    let DeValue::Table(table) = value.get_ref() else {
        findings.error(
            place_of(value),
            "timeouts is written [timeouts], once, with keys such as connect = \"1s\" below",
        );
        return timeouts;
    };
    let section = Section::open("[timeouts]", value.span(), table, KEYS, findings);
    for key in KEYS.known {
        if let Some(timeout) = section.read(key, TIMEOUT, findings) {
            set(key, timeout, &mut timeouts);
        }
    }
    warn_of_timeouts_above_request(&section, &timeouts, findings);
    timeouts
}

/// Timeouts of requests. The others apply to connections, or to the whole server.
const ROUTE_KEYS: Keys = Keys::new(&[
    "client_body",
    "client_send",
    "connect",
    "queue",
    "upstream_first_byte",
    "upstream_body",
    "request",
    "tunnel_idle",
    "tunnel_fin",
]);

const FORWARD_ONLY: [&str; 7] = [
    "connect",
    "queue",
    "upstream_first_byte",
    "upstream_body",
    "request",
    "tunnel_idle",
    "tunnel_fin",
];

/// Reads the timeouts of a route; missing keys are taken from `all`.
pub(super) fn read_timeouts_of_route(
    route: &Section<'_, '_>,
    all: &Timeouts,
    findings: &mut Diagnostics<'_>,
) -> Option<Timeouts> {
    const EXPECTED: &str = "a table such as { upstream_first_byte = \"5m\" }";
    let mut timeouts = *all;
    let value = route.value("timeouts")?;
    let name = "timeouts of a [[route]]";
    let section = Section::of(name, value, EXPECTED, ROUTE_KEYS, findings)?;
    for key in ROUTE_KEYS.known {
        if let Some(timeout) = section.read(key, TIMEOUT, findings) {
            set(key, timeout, &mut timeouts);
        }
    }
    if !route.has("forward") {
        let reason = "on a route that does not forward";
        section.warn_ignored(&FORWARD_ONLY, reason, findings);
    } else {
        warn_of_timeouts_above_request(&section, &timeouts, findings);
    }
    Some(timeouts)
}

/// Warns of timeouts that are set but longer than `request`, so that they never apply.
fn warn_of_timeouts_above_request(
    section: &Section<'_, '_>,
    timeouts: &Timeouts,
    findings: &mut Diagnostics<'_>,
) {
    let Some(request) = timeouts.request else {
        return;
    };
    for (key, timeout) in [
        ("connect", timeouts.connect),
        ("queue", timeouts.queue),
        ("upstream_first_byte", timeouts.upstream_first_byte),
        ("upstream_body", timeouts.upstream_body),
    ] {
        if section.has(key) && timeout >= request {
            let reason = "because request expires first";
            section.warn_ignored(&[key], reason, findings);
        }
    }
}

fn set(key: &str, timeout: Duration, timeouts: &mut Timeouts) {
    let field = match key {
        "client_head" => &mut timeouts.client_head,
        "client_body" => &mut timeouts.client_body,
        "client_idle" => &mut timeouts.client_idle,
        "client_send" => &mut timeouts.client_send,
        "tls_handshake" => &mut timeouts.tls_handshake,
        "connect" => &mut timeouts.connect,
        "queue" => &mut timeouts.queue,
        "upstream_first_byte" => &mut timeouts.upstream_first_byte,
        "upstream_body" => &mut timeouts.upstream_body,
        "upstream_idle" => &mut timeouts.upstream_idle,
        "request" => {
            timeouts.request = Some(timeout);
            return;
        }
        "tunnel_idle" => &mut timeouts.tunnel_idle,
        "tunnel_fin" => &mut timeouts.tunnel_fin,
        "drain" => &mut timeouts.drain,
        _ => unreachable!("{key:?} is not a timeout"),
    };
    *field = timeout;
}
