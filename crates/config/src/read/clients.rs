//! `[clients]`: how many connections they may have.

use crate::diagnostic::Findings;
use crate::limits;
use crate::plan::Clients;
use crate::section::{Keys, Section};

pub(super) fn read_clients(file: &Section<'_, '_>, findings: &mut Findings<'_>) -> Clients {
    const EXPECTED: &str = "a table such as { connections_per_address_max = 100 }";
    let keys = Keys::new(&["connections_max", "connections_per_address_max"]);
    let section = file
        .value("clients")
        .and_then(|value| Section::of("[clients]", value, EXPECTED, keys, findings));
    let Some(section) = section else {
        return Clients::default();
    };
    let mut count = |key| section.count(key, 1..=limits::CLIENT_CONNECTIONS_MAX, findings);
    Clients {
        connections_max: count("connections_max"),
        connections_per_address_max: count("connections_per_address_max"),
    }
}
