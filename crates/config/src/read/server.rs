//! Servers of a group.

use std::collections::HashMap;
use std::num::NonZeroU32;

use toml::Spanned;
use toml::de::DeValue;

use super::kinds::{parse_in_place, place_of_value};
use crate::address::parse_server;
use crate::diagnostic::{Diagnostics, Span};
use crate::limits;
use crate::plan::{Server, ServerAddress};
use crate::section::{Keys, Kind, Section};
use crate::toml_values::{as_text, report_kind};

const ADDRESS: Kind<ServerAddress> = Kind {
    expected: "an address such as \"10.0.0.1:8000\"",
    parse: parse_server,
};

/// Reads the servers of a group; `connections_max` of the group is their default.
pub(super) fn read_servers(group: &Section<'_, '_>, findings: &mut Diagnostics<'_>) -> Vec<Server> {
    let connections_max = read_connections_max(group, findings);
    group.require("servers", "a list such as [\"10.0.0.1:8000\"]", findings);
    let Some(written) = group.value("servers") else {
        return Vec::new();
    };
    let DeValue::Array(array) = written.get_ref() else {
        group.report_kind("servers", "a list such as [\"10.0.0.1:8000\"]", findings);
        return Vec::new();
    };
    let name = group.name();
    if array.is_empty() {
        let message =
            format!("{name} has no servers: expected at least one such as \"10.0.0.1:8000\"");
        findings.error(written.span(), message);
    }
    if array.len() > limits::SERVERS_MAX {
        let message = format!(
            "{name} has {} servers: expected at most {}",
            array.len(),
            limits::SERVERS_MAX
        );
        findings.error(written.span(), message);
    }
    let mut places: HashMap<ServerAddress, Span> = HashMap::new();
    let mut servers = Vec::new();
    for value in array.iter() {
        let Some((mut server, span)) = read_server(value, findings) else {
            continue;
        };
        if let Some(first) = places.insert(server.address.clone(), span.clone()) {
            let line = findings.line_of(&first);
            findings.error(
                span,
                format!(
                    "server {} is already in {name}, in line {line}: give it a weight instead",
                    server.address
                ),
            );
        }
        server.connections_max = server.connections_max.or(connections_max);
        servers.push(server);
    }
    if !servers.is_empty() && servers.iter().all(|server| server.backup) {
        let message = format!(
            "{name} has only backup servers: expected at least one server that is not a backup"
        );
        findings.error(written.span(), message);
    }
    servers
}

fn read_server(
    value: &Spanned<DeValue<'_>>,
    findings: &mut Diagnostics<'_>,
) -> Option<(Server, Span)> {
    if let Some(text) = as_text(value) {
        let address = parse_in_place(value, ADDRESS, findings)?;
        let address = resolve_unix_path(address, &text.span(), findings);
        return Some((Server::at(address), text.span()));
    }
    let DeValue::Table(table) = value.get_ref() else {
        let expected = format!(
            "{} or {{ address = \"10.0.0.1:8000\", weight = 2 }}",
            ADDRESS.expected
        );
        report_kind("a server", value, &expected, findings);
        return None;
    };
    let keys = Keys::new(&[
        "address",
        "weight",
        "backup",
        "connections_max",
        "addresses_max",
    ]);
    let section = Section::open("a server", value.span(), table, keys, findings);
    section.require("address", ADDRESS.expected, findings);
    let weight = section.count("weight", 1..=limits::WEIGHT_MAX, findings);
    let backup = section.truth("backup", findings);
    let connections_max = read_connections_max(&section, findings);
    let addresses_max = section.count("addresses_max", 1..=limits::ADDRESSES_MAX_MAX, findings);
    let address = section.read("address", ADDRESS, findings)?;
    if !address.is_resolved_by_name() {
        let reason = "where the address is not a name";
        section.warn_ignored(&["addresses_max"], reason, findings);
    }
    let span = place_of_value(&section, "address");
    let server = Server {
        weight: weight.unwrap_or(limits::WEIGHT_DEFAULT),
        backup: backup.unwrap_or(false),
        connections_max,
        addresses_max: addresses_max.unwrap_or(limits::ADDRESSES_MAX_DEFAULT),
        ..Server::at(resolve_unix_path(address, &span, findings))
    };
    Some((server, span))
}

fn read_connections_max(
    section: &Section<'_, '_>,
    findings: &mut Diagnostics<'_>,
) -> Option<NonZeroU32> {
    section.count("connections_max", 1..=limits::CONNECTIONS_MAX_MAX, findings)
}

/// Resolves the path of a Unix socket against the directory of the file.
pub(super) fn resolve_unix_path(
    address: ServerAddress,
    span: &Span,
    findings: &Diagnostics<'_>,
) -> ServerAddress {
    match address {
        ServerAddress::Unix(path) => ServerAddress::Unix(findings.resolve(&path, span)),
        ServerAddress::Ip(_) | ServerAddress::Name { .. } | ServerAddress::Srv(_) => address,
    }
}
