//! `[clients]`: limits of connections, stalled streams and cancelled requests.

use crate::diagnostic::Diagnostics;
use crate::limits;
use crate::plan::Clients;
use crate::section::{Keys, Section};

pub(super) fn read_clients(file: &Section<'_, '_>, findings: &mut Diagnostics<'_>) -> Clients {
    const EXPECTED: &str = "a table such as { connections_per_address_max = 100 }";
    let keys = Keys::new(&[
        "connections_max",
        "connections_per_address_max",
        "http2_resets_per_second",
        "stalled_streams_per_address_max",
    ]);
    let section = file
        .value("clients")
        .and_then(|value| Section::of("[clients]", value, EXPECTED, keys, findings));
    let Some(section) = section else {
        return Clients::default();
    };
    let resets = 1..=limits::HTTP2_RESETS_PER_SECOND_MAX;
    let resets = section.count("http2_resets_per_second", resets, findings);
    let mut count = |key| section.count(key, 1..=limits::CLIENT_CONNECTIONS_MAX, findings);
    let default = Clients::default();
    Clients {
        http2_resets_per_second: resets.unwrap_or(default.http2_resets_per_second),
        connections_max: count("connections_max"),
        connections_per_address_max: count("connections_per_address_max"),
        stalled_streams_per_address_max: count("stalled_streams_per_address_max")
            .unwrap_or(limits::STALLED_STREAMS_PER_ADDRESS_MAX_DEFAULT),
    }
}
