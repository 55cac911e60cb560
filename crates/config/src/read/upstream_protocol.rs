//! `protocol` of a group, and the keys specific to one protocol.

use crate::diagnostic::Diagnostics;
use crate::limits;
use crate::plan::{Check, Multiplexing, Upstream, UpstreamProtocol};
use crate::section::{Kind, Section};
use crate::value;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    Http1,
    Http2,
}

const NAME: Kind<Name> = Kind {
    expected: "\"h1\" or \"h2\"",
    parse: |text| {
        let known = [("h1", Name::Http1), ("h2", Name::Http2)];
        value::parse_name("protocol of servers", text, &known)
    },
};

const OF_HTTP2: [&str; 2] = ["streams_max", "connections_shared_max"];

pub(super) fn read_protocol(
    group: &Section<'_, '_>,
    findings: &mut Diagnostics<'_>,
) -> UpstreamProtocol {
    let name = group.read("protocol", NAME, findings);
    if name != Some(Name::Http2) {
        let reason = "is only for protocol = \"h2\": set it, or remove the key";
        group.report_conflict(&OF_HTTP2, reason, findings);
        return UpstreamProtocol::Http1;
    }
    let usual = Multiplexing::default();
    let streams = group.count("streams_max", 1..=limits::STREAMS_MAX_MAX, findings);
    let range = 1..=limits::CONNECTIONS_SHARED_MAX_MAX;
    let connections = group.count("connections_shared_max", range, findings);
    UpstreamProtocol::Http2(Multiplexing {
        streams_max: streams.unwrap_or(usual.streams_max),
        connections_shared_max: connections.unwrap_or(usual.connections_shared_max),
    })
}

pub(super) fn agree_on_protocol(
    upstream: &Upstream,
    group: &Section<'_, '_>,
    findings: &mut Diagnostics<'_>,
) {
    let checks_grpc = upstream
        .health
        .as_ref()
        .is_some_and(|health| matches!(health.check, Check::Grpc { .. }));
    match upstream.protocol {
        UpstreamProtocol::Http1 if checks_grpc => findings.error(
            group.place("health"),
            "a gRPC health check uses HTTP/2: expected protocol = \"h2\" as well",
        ),
        UpstreamProtocol::Http1 => {}
        UpstreamProtocol::Http2(_) => refuse_those_of_http1(group, findings),
    }
}

fn refuse_those_of_http1(group: &Section<'_, '_>, findings: &mut Diagnostics<'_>) {
    group.report_conflict(
        &["proxy_protocol"],
        "ties a connection to one client, but with protocol = \"h2\" many clients share a connection",
        findings,
    );
    group.report_conflict(
        &["reuse", "connections_ready", "connections_idle_max"],
        "is for connections that carry one request at a time: with protocol = \"h2\" expected streams_max and connections_shared_max",
        findings,
    );
}
