//! `[[listen]]`: listeners.

use std::collections::HashMap;

use toml::de::DeValue;

use super::condition::HOST;
use super::kinds::{NETWORK, place_of_value, read_networks, read_paths};
use super::protocol::read_protocol;
use crate::address::{is_group_name, parse_listen};
use crate::diagnostic::{Diagnostics, Span};
use crate::limits;
use crate::plan::{
    Address, Certificate, ClientAuthorities, ClientCertificates, Host, Listener,
    MisdirectedRequests, Networks, SniClientRule, Tls, TlsProfile,
};
use crate::section::{Keys, Kind, Section};
use crate::toml_values::{as_text, is_false, is_true};
use crate::value::{self, Invalid};

const KEYS: Keys = Keys::new(&[
    "address",
    "name",
    "tls",
    "proxy_protocol",
    "protocol",
    "http_versions",
    "memory",
    "item_bytes_max",
    "synthetic",
    "transport",
    "receive_buffer",
    "public",
    "request_bytes",
    "response_bytes",
]);

const ADDRESS: Kind<Listener> = Kind {
    expected: "an address such as \"0.0.0.0:80\"",
    parse: parse_listen,
};

const NAME: Kind<String> = Kind {
    expected: "a name such as \"public\"",
    parse: |text| match is_group_name(text) {
        true => Ok(text.to_owned()),
        false => Err(Invalid::new(format!(
            "{text:?} is not a name for a listener: expected letters, digits, \"-\", \"_\" and \".\""
        ))),
    },
};

pub(super) fn read_listen(file: &Section<'_, '_>, findings: &mut Diagnostics<'_>) -> Vec<Listener> {
    if !file.has("listen") {
        return vec![Listener::default()];
    }
    let mut places: HashMap<String, Span> = HashMap::new();
    let mut named: HashMap<String, Span> = HashMap::new();
    let mut all = Vec::new();
    for (table, span) in file.tables("listen", limits::LISTEN_MAX, findings) {
        let section = Section::open("[[listen]]", span, table, KEYS, findings);
        let Some(listen) = read_one(&section, findings) else {
            continue;
        };
        let is_any_port = matches!(&listen.address, Address::Tcp(address) if address.port() == 0);
        let span = place_of_value(&section, "address");
        match places.insert(listen.address.to_string(), span.clone()) {
            Some(first) if !is_any_port => {
                let line = findings.line_of(&first);
                findings.error(
                    span,
                    format!(
                        "{} is already an address of the [[listen]] in line {line}",
                        listen.address
                    ),
                );
            }
            _ => all.push(listen),
        }
        let Some(name) = section.value("name").and_then(as_text) else {
            continue;
        };
        let (span, name) = (name.span(), name.into_inner());
        if let Some(first) = named.insert(name.clone(), span.clone()) {
            let line = findings.line_of(&first);
            findings.error(
                span,
                format!("{name:?} is already the name of the listener in line {line}: expected another one"),
            );
        }
    }
    if all.is_empty() && findings.errors() == 0 {
        all.push(Listener::default());
    }
    all
}

fn read_one(section: &Section<'_, '_>, findings: &mut Diagnostics<'_>) -> Option<Listener> {
    section.require("address", ADDRESS.expected, findings);
    let address = section.read("address", ADDRESS, findings);
    let name = section.read("name", NAME, findings);
    let tls = read_tls(section, findings);
    let proxy_protocol = read_proxy_protocol(section, address.as_ref(), findings);
    let protocol = read_protocol(section, address.as_ref(), findings);
    let address = match address?.address {
        Address::Unix(path) => {
            Address::Unix(findings.resolve(&path, &place_of_value(section, "address")))
        }
        address @ Address::Tcp(_) => address,
    };
    Some(Listener {
        name: name.unwrap_or_else(|| address.to_string()),
        address,
        tls,
        proxy_protocol,
        protocol: protocol?,
    })
}

/// Reads the clients that send PROXY protocol headers. All addresses are allowed, because a firewall may restrict
/// access, but then anyone who reaches the port can forge an address.
fn read_proxy_protocol(
    listen: &Section<'_, '_>,
    address: Option<&Listener>,
    findings: &mut Diagnostics<'_>,
) -> Option<Networks> {
    const EXPECTED: &str = "a table such as { from = [\"10.0.0.0/8\"] }";
    let value = listen.value("proxy_protocol")?;
    let is_unix = address.is_some_and(|listen| matches!(listen.address, Address::Unix(_)));
    if is_false(value) {
        return None;
    }
    if is_true(value) {
        if !is_unix {
            findings.warning(
                listen.place("proxy_protocol"),
                "every client of this address could claim any IP address: expected proxy_protocol = { from = [\"10.0.0.0/8\"] } with the networks of your balancers",
            );
        }
        return Some(Networks::all());
    }
    let keys = Keys::new(&["from"]);
    let section = Section::of("proxy_protocol", value, EXPECTED, keys, findings)?;
    section.require("from", NETWORK.expected, findings);
    if is_unix {
        section.report_conflict(
            &["from"],
            "does not apply to a Unix socket, whose clients have no addresses: expected proxy_protocol = true",
            findings,
        );
    }
    read_networks(&section, "from", findings)
}

fn read_tls(listen: &Section<'_, '_>, findings: &mut Diagnostics<'_>) -> Option<Tls> {
    const EXPECTED: &str =
        "\"self-signed\", or a table such as { certificate = \"site.pem\", key = \"site.key\" }";
    const KEYS: Keys = Keys::new(&[
        "certificate",
        "key",
        "ocsp",
        "certificates",
        "profile",
        "client_ca",
        "client_crl",
        "client_certificates",
        "misdirected",
        "names",
    ]);
    const PROFILE: Kind<TlsProfile> = Kind {
        expected: "\"intermediate\" or \"modern\"",
        parse: |text| {
            let known = [
                ("intermediate", TlsProfile::Intermediate),
                ("modern", TlsProfile::Modern),
            ];
            value::parse_name("TLS profile", text, &known)
        },
    };
    const MISDIRECTED: Kind<MisdirectedRequests> = Kind {
        expected: "\"refuse\" or \"serve\"",
        parse: |text| {
            let known = [
                ("refuse", MisdirectedRequests::Refuse),
                ("serve", MisdirectedRequests::Serve),
            ];
            value::parse_name("way to treat misdirected requests", text, &known)
        },
    };
    let value = listen.value("tls")?;
    if value.get_ref().as_str() == Some("self-signed") {
        return Some(Tls::self_signed());
    }
    if is_false(value) {
        return None;
    }
    let section = Section::of("tls", value, EXPECTED, KEYS, findings)?;
    Some(Tls {
        certificates: read_certificates(&section, findings),
        profile: section
            .read("profile", PROFILE, findings)
            .unwrap_or_default(),
        clients: read_clients(&section, findings),
        misdirected: section
            .read("misdirected", MISDIRECTED, findings)
            .unwrap_or_default(),
        names: read_names(&section, findings),
    })
}

/// Reads rules for host names (SNI).
fn read_names(tls: &Section<'_, '_>, findings: &mut Diagnostics<'_>) -> Vec<SniClientRule> {
    const EXPECTED: &str = "a list such as [{ host = \"a.example.com\", client_ca = \"a.pem\" }]";
    const RULE: &str = "a table such as { host = \"a.example.com\", client_ca = \"a.pem\" }";
    let Some(value) = tls.value("names") else {
        return Vec::new();
    };
    let DeValue::Array(array) = value.get_ref() else {
        tls.report_kind("names", EXPECTED, findings);
        return Vec::new();
    };
    let mut rules: Vec<SniClientRule> = Vec::new();
    for value in array.iter() {
        let keys = Keys::new(&["host", "client_ca", "client_crl", "client_certificates"]);
        let Some(section) = Section::of("a rule of names", value, RULE, keys, findings) else {
            continue;
        };
        section.require("host", HOST.expected, findings);
        let hosts: Vec<Host> = section
            .read_nonempty_list("host", HOST, findings)
            .unwrap_or_default();
        let mut known = rules.iter().flat_map(|rule| &rule.hosts);
        if known.any(|known| hosts.contains(known)) {
            let message = "another rule of names has this host: expected each host in one rule";
            findings.error(section.place("host"), message);
        }
        let clients = read_clients(&section, findings);
        if !hosts.is_empty() {
            rules.push(SniClientRule { hosts, clients });
        }
    }
    rules
}

/// Reads all certificates: the one beside the other keys first, then the list.
fn read_certificates(tls: &Section<'_, '_>, findings: &mut Diagnostics<'_>) -> Vec<Certificate> {
    let mut all: Vec<Certificate> = Vec::new();
    let mut add = |one: Certificate, section: &Section<'_, '_>, findings: &mut Diagnostics<'_>| {
        if all.contains(&one) {
            findings.error(
                section.place("certificate"),
                "this certificate is already in the list",
            );
        }
        all.push(one);
    };
    if tls.has("certificate") || tls.has("key") || tls.has("ocsp") {
        if let Some(one) = read_certificate(tls, findings) {
            add(one, tls, findings);
        }
    } else if !tls.is_present_or_misspelt("certificates")
        && !tls.is_present_or_misspelt("certificate")
    {
        let message = "tls has no certificate: expected certificate and key, or a list of them in certificates";
        findings.error(tls.span(), message);
    }
    let Some(value) = tls.value("certificates") else {
        return all;
    };
    const EXPECTED: &str = "a list such as [{ certificate = \"site.pem\", key = \"site.key\" }]";
    let DeValue::Array(array) = value.get_ref() else {
        tls.report_kind("certificates", EXPECTED, findings);
        return all;
    };
    if array.is_empty() {
        let message = format!("certificates in tls is empty: expected {EXPECTED}");
        findings.error(value.span(), message);
    }
    for value in array.iter() {
        let keys = Keys::new(&["certificate", "key", "ocsp"]);
        let example = "a table such as { certificate = \"site.pem\", key = \"site.key\" }";
        let Some(section) = Section::of("a certificate", value, example, keys, findings) else {
            continue;
        };
        if let Some(one) = read_certificate(&section, findings) {
            add(one, &section, findings);
        }
    }
    all
}

fn read_certificate(
    section: &Section<'_, '_>,
    findings: &mut Diagnostics<'_>,
) -> Option<Certificate> {
    const CERTIFICATE: &str = "a PEM file such as \"site.pem\", or \"self-signed\"";
    const KEY: &str = "a PEM file such as \"site.key\"";
    section.require("certificate", CERTIFICATE, findings);
    let text = section.value("certificate").and_then(as_text);
    if text.is_some_and(|text| text.get_ref() == "self-signed") {
        section.report_conflict(
            &["key"],
            "is generated together with a self-signed certificate: remove it",
            findings,
        );
        let reason = "does not apply to a self-signed certificate, which has no OCSP responder";
        section.report_conflict(&["ocsp"], reason, findings);
        return Some(Certificate::SelfSigned);
    }
    section.require("key", KEY, findings);
    let certificate = section.path("certificate", CERTIFICATE, findings);
    let key = section.path("key", KEY, findings);
    const OCSP: &str = "a file with an OCSP response in DER such as \"site.ocsp\"";
    let staple = section.path("ocsp", OCSP, findings);
    Some(Certificate::Files {
        certificate: certificate?,
        key: key?,
        staple,
    })
}

fn read_clients(tls: &Section<'_, '_>, findings: &mut Diagnostics<'_>) -> ClientCertificates {
    type Asked = fn(ClientAuthorities) -> ClientCertificates;
    const ASKED: Kind<Asked> = Kind {
        expected: "\"required\" or \"optional\"",
        parse: |text| {
            let known: [(&str, Asked); 2] = [
                ("required", ClientCertificates::Required),
                ("optional", ClientCertificates::Optional),
            ];
            value::parse_name("way to ask for certificates", text, &known)
        },
    };
    let authorities = tls.path("client_ca", "a PEM file such as \"clients.pem\"", findings);
    if !tls.is_present_or_misspelt("client_ca") {
        let reason = "needs client_ca, the authorities that have signed them";
        tls.report_conflict(&["client_certificates"], reason, findings);
        let reason = "needs client_ca, the authorities that issue these lists";
        tls.report_conflict(&["client_crl"], reason, findings);
    }
    const CRL: &str = "a file such as \"clients.crl\", or a list of them";
    let revocation_lists = read_paths(tls, "client_crl", CRL, findings);
    let asked = tls.read("client_certificates", ASKED, findings);
    let asked = asked.unwrap_or(ClientCertificates::Required);
    authorities.map_or(ClientCertificates::Ignored, |file| {
        asked(ClientAuthorities {
            file,
            revocation_lists,
        })
    })
}
