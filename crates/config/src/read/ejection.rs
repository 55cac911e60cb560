//! `eject`: ejection of servers by the outcome of requests.

use super::kinds::TIMEOUT;
use crate::diagnostic::Diagnostics;
use crate::limits;
use crate::plan::{Eject, EjectOn};
use crate::section::{Keys, Kind, Section};
use crate::toml_values::{is_false, is_true};
use crate::value;

const KEYS: Keys = Keys::new(&[
    "on",
    "failures",
    "error_share",
    "latency",
    "time",
    "share_max",
]);

const ON: Kind<EjectOn> = Kind {
    expected: "\"connections\" or \"answers\"",
    parse: |text| {
        let known = [
            ("connections", EjectOn::Connections),
            ("answers", EjectOn::Responses),
        ];
        value::parse_name("kind of failure", text, &known)
    },
};

/// Reads `eject`; without the key, connection failures eject servers.
pub(super) fn read_eject(group: &Section<'_, '_>, findings: &mut Diagnostics<'_>) -> Option<Eject> {
    const EXPECTED: &str =
        "true, false, or a table such as { failures = 5, error_share = \"50%\" }";
    let Some(value) = group.value("eject") else {
        return Some(Eject::on(EjectOn::Connections));
    };
    if is_true(value) {
        return Some(Eject::default());
    }
    if is_false(value) {
        return None;
    }
    let section = Section::of("eject", value, EXPECTED, KEYS, findings)?;
    let on = section.read("on", ON, findings).unwrap_or_default();
    let default = Eject::on(on);
    let failures = unless_off(&section, "failures", |section| {
        section.count("failures", 1..=limits::HEALTH_COUNT_MAX, findings)
    });
    let error_share = unless_off(&section, "error_share", |section| {
        section.percent("error_share", 1..=100, findings)
    });
    let latency = unless_off(&section, "latency", |section| {
        let range = limits::EJECT_LATENCY_MIN..=limits::EJECT_LATENCY_MAX;
        section.percent("latency", range, findings)
    });
    let time = section.read("time", TIMEOUT, findings);
    let share_max = section.percent("share_max", 1..=100, findings);
    let eject = Eject {
        on,
        consecutive_failures: failures.unwrap_or(default.consecutive_failures),
        error_share: error_share.unwrap_or(default.error_share),
        latency_share: latency.unwrap_or(default.latency_share),
        time: time.unwrap_or(default.time),
        share_max: share_max.unwrap_or(default.share_max),
    };
    if eject.is_idle() {
        findings.warning(
            value.span(),
            "eject has no criterion: expected one of failures, error_share and latency",
        );
    }
    Some(eject)
}

/// Returns `None` if the key is absent or invalid (which `read` reports), and `Some(None)` if it is `false`.
fn unless_off<T>(
    section: &Section<'_, '_>,
    key: &str,
    read: impl FnOnce(&Section<'_, '_>) -> Option<T>,
) -> Option<Option<T>> {
    if section.value(key).is_some_and(is_false) {
        return Some(None);
    }
    read(section).map(Some)
}
