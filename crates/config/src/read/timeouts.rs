//! `[timeouts]`: how long to wait for whom.

use std::time::Duration;

use toml::de::DeValue;

use super::kinds::TIMEOUT;
use crate::diagnostic::Findings;
use crate::plan::Timeouts;
use crate::section::{Keys, Section};
use crate::written::first_of;

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
    "drain",
]);

pub(super) fn read_timeouts(file: &Section<'_, '_>, findings: &mut Findings<'_>) -> Timeouts {
    let mut timeouts = Timeouts::default();
    let Some(value) = file.value("timeouts") else {
        return timeouts;
    };
    let DeValue::Table(table) = value.get_ref() else {
        findings.error(
            first_of(value),
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
    timeouts
}

/// Sets the field of a key, one of [`KEYS`].
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
        "drain" => &mut timeouts.drain,
        _ => unreachable!("{key:?} is no timeout"),
    };
    *field = timeout;
}
