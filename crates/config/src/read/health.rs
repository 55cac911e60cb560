//! `health`: active checks of servers.

use super::kinds::TIMEOUT;
use super::status;
use crate::diagnostic::Diagnostics;
use crate::limits;
use crate::plan::{Check, Health, Pattern};
use crate::section::{Keys, Kind, Section};
use crate::value::{self, Invalid};

const KEYS: Keys = Keys::new(&[
    "path", "host", "status", "body", "tcp", "grpc", "interval", "timeout", "rise", "fall",
    "jitter", "port",
]);

/// Keys of HTTP checks.
const HTTP: [&str; 4] = ["path", "host", "status", "body"];

const PATH: Kind<String> = Kind {
    expected: "a path such as \"/health\"",
    parse: |text| {
        let is_bad = |letter: char| !letter.is_ascii_graphic();
        if !text.starts_with('/') || text.contains(is_bad) || text.contains('#') {
            return Err(Invalid::new(format!(
                "{text:?} is not a path to request: expected one such as \"/health\""
            )));
        }
        Ok(text.to_owned())
    },
};

const HOST: Kind<String> = Kind {
    expected: "a host such as \"app.example.com\"",
    parse: |text| {
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
            _ => (text, None),
        };
        let is_port = |port: &str| !port.starts_with('+') && port.parse::<u16>().is_ok();
        let is_host = !name.starts_with('*') && value::parse_host(name).is_ok();
        if !is_host || !port.is_none_or(is_port) {
            return Err(Invalid::new(format!(
                "{text:?} is not a host: expected one such as \"app.example.com\" or \"app.example.com:8000\""
            )));
        }
        Ok(text.to_owned())
    },
};

const SERVICE: Kind<String> = Kind {
    expected: "the name of a service such as \"shop.Orders\", or \"\" for the whole server",
    parse: |text| {
        let is_usual = |letter: char| letter.is_ascii_alphanumeric() || "._-/".contains(letter);
        match text.len() <= limits::GRPC_SERVICE_BYTES_MAX && text.chars().all(is_usual) {
            true => Ok(text.to_owned()),
            false => Err(Invalid::new(format!(
                "{text:?} is not the name of a service: expected one such as \"shop.Orders\", or \"\" for the whole server"
            ))),
        }
    },
};

const BODY: Kind<Pattern> = Kind {
    expected: "text such as \"ok\", or a regular expression such as \"~^ok\"",
    parse: value::parse_search,
};

pub(super) fn read_health(
    group: &Section<'_, '_>,
    findings: &mut Diagnostics<'_>,
) -> Option<Health> {
    const EXPECTED: &str = "\"tcp\", \"grpc\", or a table such as { path = \"/health\" }";
    let value = group.value("health")?;
    match value.get_ref().as_str() {
        Some("tcp") => return Some(Health::of(Check::Tcp)),
        Some("grpc") => return Some(Health::of(Check::of_grpc())),
        Some(_) | None => {}
    }
    let section = Section::of("health", value, EXPECTED, KEYS, findings)?;
    let check = read_check(&section, findings);
    let rise = section.count("rise", 1..=limits::HEALTH_COUNT_MAX, findings);
    let fall = section.count("fall", 1..=limits::HEALTH_COUNT_MAX, findings);
    let interval = section.read("interval", TIMEOUT, findings);
    let interval = interval.unwrap_or(limits::HEALTH_INTERVAL);
    let timeout = section.read("timeout", TIMEOUT, findings);
    if timeout.is_some_and(|timeout| timeout > interval) {
        findings.warning(
            section.place("timeout"),
            "timeout is longer than interval: the next check waits for the end of this one",
        );
    }
    let jitter = section.percent("jitter", 0..=limits::HEALTH_JITTER_MAX, findings);
    Some(Health {
        interval,
        timeout: timeout.unwrap_or(limits::HEALTH_TIMEOUT.min(interval)),
        rise: rise.unwrap_or(limits::HEALTH_RISE),
        fall: fall.unwrap_or(limits::HEALTH_FALL),
        jitter: jitter.unwrap_or(limits::HEALTH_JITTER),
        port: section.count("port", 1..=u32::from(u16::MAX), findings),
        ..Health::of(check?)
    })
}

const STATUS: &str = "a status such as 200, \"200-299\" or \"2xx\", or a list of them";

/// Reads the kind of check; `None` after an error, which has been reported.
fn read_check(health: &Section<'_, '_>, findings: &mut Diagnostics<'_>) -> Option<Check> {
    if health.truth("tcp", findings) == Some(true) {
        health.report_conflict(
            &HTTP,
            "is for checks over HTTP, and tcp = true only connects",
            findings,
        );
        health.report_conflict(
            &["grpc"],
            "is for checks over HTTP/2, and tcp = true only connects",
            findings,
        );
        return Some(Check::Tcp);
    }
    if health.has("grpc") {
        let reason =
            "is for checks over HTTP, and grpc = \"…\" uses the gRPC health checking protocol";
        health.report_conflict(&["path", "status", "body"], reason, findings);
        return Some(Check::Grpc {
            service: health.read("grpc", SERVICE, findings)?,
            host: health.read("host", HOST, findings),
        });
    }
    let expected = format!("{}, or tcp = true", PATH.expected);
    health.require("path", &expected, findings);
    let host = health.read("host", HOST, findings);
    let status = status::read_statuses(health, "status", STATUS, findings);
    let body = health.read("body", BODY, findings);
    Some(Check::Http {
        path: health.read("path", PATH, findings)?,
        host,
        status: status.unwrap_or_else(|| vec![limits::HEALTH_STATUS]),
        body,
    })
}
