//! `[[listen]]`, `[forwarded]` and `[timeouts]`: meaning, and error messages.

use std::time::Duration;

use onrush_config::plan::*;

use crate::support::{MessageCases, check_errors, check_warnings, parsed};

/// A listener at `:443` with these keys.
fn listen(keys: &str) -> Listener {
    let text = format!("[[listen]]\naddress = \":443\"\n{keys}\n[[route]]\nsynthetic = true");
    let parsed = parsed(&text);
    assert_eq!(parsed.warnings, [], "{text}");
    parsed.plan.listen.into_iter().next().expect("one place")
}

fn files(certificate: &str, key: &str) -> Certificate {
    Certificate::Files {
        certificate: certificate.into(),
        key: key.into(),
        staple: None,
    }
}

#[test]
fn certificates_accept_ocsp_response_files() {
    let tls = listen(
        "tls = { certificate = \"a\", key = \"b\", ocsp = \"c\", certificates = [{ certificate = \"d\", key = \"e\", ocsp = \"/f\" }] }",
    );
    let stapled = |certificate: &str, key: &str, staple: &str| Certificate::Files {
        certificate: certificate.into(),
        key: key.into(),
        staple: Some(staple.into()),
    };
    assert_eq!(
        tls.tls.expect("tls").certificates,
        [
            stapled("conf/a", "conf/b", "conf/c"),
            stapled("conf/d", "conf/e", "/f")
        ]
    );
}

#[test]
fn tls_accepts_multiple_certificates() {
    for (value, tls) in [
        ("\"self-signed\"", Some(Tls::self_signed())),
        ("false", None),
        (
            "{ certificate = \"site.pem\", key = \"/etc/site.key\" }",
            Some(Tls::with(vec![files("conf/site.pem", "/etc/site.key")])),
        ),
        (
            "{ certificate = \"self-signed\", profile = \"modern\" }",
            Some(Tls {
                profile: TlsProfile::Modern,
                ..Tls::self_signed()
            }),
        ),
        (
            "{ certificates = [{ certificate = \"b.pem\", key = \"b.key\" }, { certificate = \"c.pem\", key = \"c.key\" }], certificate = \"a.pem\", key = \"a.key\" }",
            Some(Tls::with(vec![
                files("conf/a.pem", "conf/a.key"),
                files("conf/b.pem", "conf/b.key"),
                files("conf/c.pem", "conf/c.key"),
            ])),
        ),
    ] {
        assert_eq!(listen(&format!("tls = {value}")).tls, tls, "{value}");
    }
}

/// Authorities in `ca.pem` with these revocation lists.
fn ca(revocation_lists: &[&str]) -> ClientAuthorities {
    ClientAuthorities {
        file: "conf/ca.pem".into(),
        revocation_lists: revocation_lists.iter().map(FilePath::from).collect(),
    }
}

#[test]
fn client_crl_accepts_one_or_multiple_files() {
    for (keys, lists) in [
        ("client_crl = \"a.crl\"", &["conf/a.crl"][..]),
        (
            "client_crl = [\"a.crl\", \"/b.crl\"]",
            &["conf/a.crl", "/b.crl"],
        ),
    ] {
        let keys =
            format!("tls = {{ certificate = \"a\", key = \"b\", client_ca = \"ca.pem\", {keys} }}");
        let clients = listen(&keys).tls.expect("tls").clients;
        assert_eq!(clients, ClientCertificates::Required(ca(lists)), "{keys}");
    }
}

#[test]
fn misdirected_requests_are_refused_by_default() {
    for (key, misdirected) in [
        ("", MisdirectedRequests::Refuse),
        (", misdirected = \"refuse\"", MisdirectedRequests::Refuse),
        (", misdirected = \"serve\"", MisdirectedRequests::Serve),
    ] {
        let keys = format!("tls = {{ certificate = \"a\", key = \"b\"{key} }}");
        let tls = listen(&keys).tls.expect("tls");
        assert_eq!(tls.misdirected, misdirected, "{key}");
    }
}

#[test]
fn client_certificates_are_required_by_default() {
    let clients = |keys: &str| {
        let keys = format!("tls = {{ certificate = \"a\", key = \"b\", {keys} }}");
        listen(&keys).tls.expect("tls").clients
    };
    assert_eq!(
        clients("client_ca = \"ca.pem\""),
        ClientCertificates::Required(ca(&[]))
    );
    assert_eq!(
        clients("client_ca = \"ca.pem\", client_certificates = \"required\""),
        ClientCertificates::Required(ca(&[]))
    );
    assert_eq!(
        clients("client_ca = \"ca.pem\", client_certificates = \"optional\""),
        ClientCertificates::Optional(ca(&[]))
    );
}

#[test]
fn proxy_protocol_accepts_trusted_networks() {
    let networks = listen("proxy_protocol = { from = [\"10.0.0.0/8\", \"::1\"] }").proxy_protocol;
    let networks = networks.expect("networks");
    assert!(networks.contain([10, 0, 0, 1].into()) && !networks.contain([11, 0, 0, 1].into()));
    assert_eq!(listen("proxy_protocol = false").proxy_protocol, None);
    let unix = parsed(
        "[[listen]]\naddress = \"unix:/run/x\"\nproxy_protocol = true\n[[route]]\nsynthetic = true",
    );
    assert_eq!(unix.warnings, []);
    assert_eq!(unix.plan.listen[0].proxy_protocol, Some(Networks::all()));
}

#[test]
fn forwarded_section_is_parsed() {
    for (send, x_forwarded, forwarded) in [
        ("x-forwarded", true, false),
        ("forwarded", false, true),
        ("both", true, true),
        ("none", false, false),
    ] {
        let text = format!(
            "[forwarded]\ntrust = \"10.0.0.0/8\"\nsend = \"{send}\"\n[[route]]\nsynthetic = true"
        );
        let found = parsed(&text).plan.forwarded;
        assert_eq!(
            (found.x_forwarded, found.forwarded),
            (x_forwarded, forwarded)
        );
        assert!(found.trust.contain([10, 0, 0, 1].into()));
        assert_eq!(found.read, ForwardingFields::XForwarded);
    }
    let default = parsed("forwarded = {}\n[[route]]\nsynthetic = true");
    assert_eq!(default.plan.forwarded, Forwarded::default());
}

#[test]
fn all_timeout_keys_are_parsed() {
    let keys = [
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
    ];
    let mut text = "[[route]]\nsynthetic = true\n[timeouts]\n".to_owned();
    for (at, key) in keys.iter().enumerate() {
        text += &format!("{key} = \"{}ms\"\n", at + 1);
    }
    let found = parsed(&text).plan.timeouts;
    let at = |milliseconds| Duration::from_millis(milliseconds);
    let expected = Timeouts {
        client_head: at(1),
        client_body: at(2),
        client_idle: at(3),
        client_send: at(4),
        tls_handshake: at(5),
        connect: at(6),
        queue: at(7),
        upstream_first_byte: at(8),
        upstream_body: at(9),
        upstream_idle: at(10),
        request: Some(at(11)),
        tunnel_idle: at(12),
        tunnel_fin: at(13),
        drain: at(14),
    };
    assert_eq!(found, expected);
}

#[test]
fn invalid_listen_settings_are_reported() {
    check_errors(BAD);
}

const BAD: &MessageCases = &[
    (
        "[[listen]]\naddress = \":443\"\ntls = true",
        &[
            "3:7: tls is true or false: expected \"self-signed\", or a table such as { certificate = \"site.pem\", key = \"site.key\" }",
        ],
    ),
    (
        "[[listen]]\naddress = \":443\"\ntls = {}",
        &[
            "3:7: tls has no certificate: expected certificate and key, or a list of them in certificates",
        ],
    ),
    (
        "[[listen]]\naddress = \":443\"\ntls = { certificate = \"a.pem\" }",
        &["3:7: tls has no key: expected a PEM file such as \"site.key\""],
    ),
    (
        "[[listen]]\naddress = \":443\"\ntls = { key = \"a.key\" }",
        &[
            "3:7: tls has no certificate: expected a PEM file such as \"site.pem\", or \"self-signed\"",
        ],
    ),
    (
        "[[listen]]\naddress = \":443\"\ntls = { certificate = \"self-signed\", key = \"a.key\" }",
        &["3:38: key is generated together with a self-signed certificate: remove it"],
    ),
    (
        "[[listen]]\naddress = \":443\"\ntls = { certificates = [{ certificate = \"a\", key = \"b\" }, { certificate = \"a\", key = \"b\" }, 1] }",
        &[
            "3:61: this certificate is already in the list",
            "3:93: a certificate is a number: expected a table such as { certificate = \"site.pem\", key = \"site.key\" }",
        ],
    ),
    (
        "[[listen]]\naddress = \":443\"\ntls = { certificates = [] }",
        &[
            "3:24: certificates in tls is empty: expected a list such as [{ certificate = \"site.pem\", key = \"site.key\" }]",
        ],
    ),
    (
        "[[listen]]\naddress = \":443\"\ntls = { certificate = \"a\", key = \"b\", profile = \"old\", client_certificates = \"required\" }",
        &[
            "3:49: unknown TLS profile \"old\": expected one of \"intermediate\", \"modern\"",
            "3:56: client_certificates needs client_ca, the authorities that have signed them",
        ],
    ),
    (
        "[[listen]]\naddress = \":443\"\ntls = { certificate = \"self-signed\", ocsp = \"a\" }",
        &["3:38: ocsp does not apply to a self-signed certificate, which has no OCSP responder"],
    ),
    (
        "[[listen]]\naddress = \":443\"\ntls = { certificate = \"a\", key = \"b\", client_crl = \"a.crl\" }",
        &["3:39: client_crl needs client_ca, the authorities that issue these lists"],
    ),
    (
        "[[listen]]\naddress = \":443\"\ntls = { certificate = \"a\", key = \"b\", client_ca = \"c\", client_crl = [] }",
        &[
            "3:69: client_crl in tls is empty: expected a file such as \"clients.crl\", or a list of them",
        ],
    ),
    (
        "[[listen]]\naddress = \":443\"\nproxy_protocol = {}",
        &[
            "3:18: proxy_protocol has no from: expected a network such as \"10.0.0.0/8\", or a list of them",
        ],
    ),
    (
        "[[listen]]\naddress = \"unix:/run/x\"\nproxy_protocol = { from = \"10.0.0.0/8\" }",
        &[
            "3:20: from does not apply to a Unix socket, whose clients have no addresses: expected proxy_protocol = true",
        ],
    ),
    (
        "[[listen]]\naddress = \":80\"\nproxy_protocol = { from = \"10.0.0.0/33\" }",
        &["3:27: \"10.0.0.0/33\": the prefix of 10.0.0.0 has 0 to 32 bits"],
    ),
    (
        "[forwarded]\nsend = \"x-forwarded-for\"\ntrust = \"all\"\nread = \"both\"",
        &[
            "2:8: unknown way to send \"x-forwarded-for\": expected one of \"x-forwarded\", \"forwarded\", \"both\", \"none\"",
            "3:9: \"all\" is not a network: expected one such as \"10.0.0.0/8\", or an address such as \"192.0.2.1\"",
            "4:8: unknown kind of fields \"both\": expected one of \"x-forwarded\", \"forwarded\"",
        ],
    ),
];

#[test]
fn proxy_protocol_from_any_client_causes_warning() {
    check_warnings(&[(
        "[[listen]]\naddress = \":80\"\nproxy_protocol = true",
        &[
            "3:1: every client of this address could claim any IP address: expected proxy_protocol = { from = [\"10.0.0.0/8\"] } with the networks of your balancers",
        ],
    )]);
}

#[test]
fn server_names_have_own_client_certificate_rules() {
    let keys = "tls = { certificate = \"a\", key = \"b\", names = [{ host = [\"A.org\", \"*.b.org\"], client_ca = \"ca.pem\" }, { host = \"c.org\" }] }";
    let names = listen(keys).tls.expect("tls").names;
    assert_eq!(
        names,
        [
            SniClientRule {
                hosts: vec![
                    Host::Exact("a.org".to_owned()),
                    Host::Subdomains(".b.org".to_owned())
                ],
                clients: ClientCertificates::Required(ca(&[])),
            },
            SniClientRule {
                hosts: vec![Host::Exact("c.org".to_owned())],
                clients: ClientCertificates::Ignored,
            },
        ]
    );
}
