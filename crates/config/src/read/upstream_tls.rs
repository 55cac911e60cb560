//! `tls` of a group: TLS settings towards its servers.

use crate::diagnostic::Diagnostics;
use crate::plan::{Server, ServerAddress, Upstream, UpstreamTls, Verify};
use crate::section::{Keys, Kind, Section};
use crate::toml_values::{is_false, is_true};
use crate::value::{self, Invalid};

pub(super) fn read_tls(
    group: &Section<'_, '_>,
    findings: &mut Diagnostics<'_>,
) -> Option<UpstreamTls> {
    const NAME: Kind<String> = Kind {
        expected: "a host name such as \"app.example.com\"",
        parse: |text| {
            if !value::is_host_name(text) {
                return Err(Invalid::new(format!(
                    "{text:?} is not a host name: expected one such as \"app.example.com\""
                )));
            }
            Ok(text.to_ascii_lowercase())
        },
    };
    const PEM: &str = "a PEM file such as \"client.pem\"";
    let value = group.value("tls")?;
    if is_true(value) {
        return Some(UpstreamTls::default());
    }
    if is_false(value) {
        return None;
    }
    let expected = "true, or a table such as { ca = \"ca.pem\", name = \"app.example.com\" }";
    let keys = Keys::new(&["verify", "ca", "name", "certificate", "key"]);
    let section = Section::of("tls", value, expected, keys, findings)?;
    let ca = section.path("ca", "a PEM file such as \"ca.pem\"", findings);
    let verify = match section.truth("verify", findings) {
        Some(false) => {
            section.report_conflict(
                &["ca"],
                "contradicts verify = false, which accepts every certificate",
                findings,
            );
            Verify::Insecure
        }
        Some(true) | None => ca.map_or(Verify::System, Verify::File),
    };
    if section.has("certificate") != section.has("key") {
        let message = "certificate and key of tls need each other: set both, or neither";
        findings.error(section.span(), message);
    }
    let certificate = section.path("certificate", PEM, findings);
    let key = section.path("key", PEM, findings);
    Some(UpstreamTls {
        verify,
        name: section.read("name", NAME, findings),
        certificate: certificate.zip(key),
    })
}

/// Checks that there is a name to verify certificates against: a Unix socket has none.
pub(super) fn check_tls_name(
    upstream: &Upstream,
    group: &Section<'_, '_>,
    findings: &mut Diagnostics<'_>,
) {
    let Some(tls) = &upstream.tls else {
        return;
    };
    let is_unix = |server: &Server| matches!(server.address, ServerAddress::Unix(_));
    let is_named = tls.name.is_some() || tls.verify == Verify::Insecure;
    if !is_named && upstream.servers.iter().any(is_unix) {
        findings.error(
            group.place("tls"),
            "a Unix socket has no name to verify: expected tls = { name = \"app.example.com\" }",
        );
    }
}
