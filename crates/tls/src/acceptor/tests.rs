//! Selection of certificates, and errors of certificate files.

use std::fs;
use std::path::Path;

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::pki_types::ServerName;
use rustls::{CipherSuite, ClientConfig, ClientConnection, RootCertStore, ServerConnection};

use super::*;
use crate::acceptor::clients::Authorities;

/// Writes a certificate for `names` and its key; returns their files.
fn write(directory: &Path, name: &str, names: &[&str], days: (i32, i32)) -> Identity {
    let key = KeyPair::generate().unwrap();
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.not_before = date_time_ymd(days.0, 1, 1);
    params.not_after = date_time_ymd(days.1, 1, 1);
    let certificate = directory.join(format!("{name}.pem"));
    let key_file = directory.join(format!("{name}.key"));
    fs::write(&certificate, params.self_signed(&key).unwrap().pem()).unwrap();
    fs::write(&key_file, key.serialize_pem()).unwrap();
    Identity::Files {
        certificate,
        key: key_file,
        staple: None,
    }
}

fn setup(certificates: Vec<Identity>) -> ServerSetup {
    ServerSetup {
        certificates,
        profile: Profile::Intermediate,
        clients: Clients::Ignored,
        misdirected: Misdirected::Refuse,
        named_clients: Vec::new(),
        protocols: Vec::new(),
    }
}

fn wrong(setup: ServerSetup) -> Vec<String> {
    match Acceptor::new(setup) {
        Ok(_) => Vec::new(),
        Err(wrong) => wrong.iter().map(Problem::to_string).collect(),
    }
}

fn load(identities: &[Identity]) -> Names {
    let provider = aws_lc_rs::default_provider();
    let load =
        |(index, identity)| certificate::load(identity, index, &provider, &mut Vec::new()).unwrap();
    Names::new(identities.iter().enumerate().map(load).collect())
}

/// Cipher suite negotiated with a client that prefers ChaCha20.
fn chosen_for_chacha20(version: &'static SupportedProtocolVersion) -> CipherSuite {
    let mut provider = aws_lc_rs::default_provider();
    provider
        .cipher_suites
        .sort_by_key(|suite| !format!("{:?}", suite.suite()).contains("CHACHA20"));
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let (acceptor, _) = Acceptor::new(setup(vec![Identity::SelfSigned]))
        .ok()
        .unwrap();
    let mut server = ServerConnection::new(acceptor.config()).unwrap();
    let mut hello = Vec::new();
    client.write_tls(&mut hello).unwrap();
    server.read_tls(&mut hello.as_slice()).unwrap();
    server.process_new_packets().unwrap();
    server.negotiated_cipher_suite().unwrap().suite()
}

#[test]
fn server_cipher_order_applies() {
    assert_eq!(
        chosen_for_chacha20(&version::TLS13),
        CipherSuite::TLS13_AES_256_GCM_SHA384
    );
    assert_eq!(
        chosen_for_chacha20(&version::TLS12),
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
    );
}

#[test]
fn certificate_is_selected_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let identities = [
        write(directory.path(), "a", &["default.example"], (2000, 2200)),
        write(
            directory.path(),
            "b",
            &["b.example", "*.b.example"],
            (2000, 2200),
        ),
        write(directory.path(), "c", &["www.b.example"], (2000, 2200)),
    ];
    let names = load(&identities);
    let chosen = |name: &str| {
        let key = &names.certificates[names.find(name)[0]].key;
        let is_it = |identity: &Identity| {
            let Identity::Files { certificate, .. } = identity else {
                unreachable!("all are files")
            };
            let chain = fs::read_to_string(certificate).unwrap();
            let found = pem(&key.cert[0]);
            chain.replace("\r\n", "\n").contains(&found)
        };
        identities.iter().position(is_it)
    };
    for (name, index) in [
        ("default.example", 0),
        ("b.example", 1),
        ("x.b.example", 1),
        ("www.b.example", 2),
        ("y.x.b.example", 0),
        ("example", 0),
        ("", 0),
        ("other.example", 0),
    ] {
        assert_eq!(chosen(name), Some(index), "for {name:?}");
    }
}

#[test]
fn missing_server_name_allows_all_certificates() {
    let directory = tempfile::tempdir().unwrap();
    let of = |name: &str, host: &str| write(directory.path(), name, &[host], (2000, 2200));
    let names = load(&[
        of("a", "a.example"),
        of("b", "b.example"),
        of("c", "a.example"),
    ]);
    assert_eq!(names.default, [0, 2, 1]);
    assert_eq!(names.find("b.example"), [1]);
}

/// First line of a certificate in PEM.
fn pem(certificate: &[u8]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    certificate[..48]
        .chunks(3)
        .flat_map(|three| {
            let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
            [18, 12, 6, 0].map(|shift| char::from(DIGITS[(bits >> shift) as usize & 63]))
        })
        .collect()
}

#[test]
fn all_file_problems_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    write(directory.path(), "a", &["a.example"], (2000, 2200));
    write(directory.path(), "b", &["b.example"], (2000, 2200));
    fs::write(path("none.pem"), "no certificate here\n").unwrap();
    fs::write(
        path("locked.key"),
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
    )
    .unwrap();
    for (certificate, key, part) in [
        (
            "a.pem",
            "b.key",
            "b.key: this key does not belong to the certificate",
        ),
        ("none.pem", "a.key", "none.pem: it contains no certificate"),
        (
            "missing.pem",
            "a.key",
            "missing.pem: it cannot be read: No such file",
        ),
        ("a.pem", "a.pem", "a.pem: it holds a certificate and no key"),
        ("a.pem", "locked.key", "the key is encrypted"),
    ] {
        let identity = Identity::Files {
            certificate: path(certificate),
            key: path(key),
            staple: None,
        };
        let mut setup = setup(vec![identity.clone(), Identity::SelfSigned, identity]);
        setup.clients = Clients::Required(Authorities::new(path("none.pem")));
        let said = wrong(setup);
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(said[0].contains(part), "{said:?}");
        assert_eq!(said[0], said[1]);
        assert!(
            said[2].contains("none.pem: it contains no certificate"),
            "{said:?}"
        );
    }
}

#[test]
fn expired_certificate_is_warning() {
    let directory = tempfile::tempdir().unwrap();
    for (name, days, part) in [
        (
            "old",
            (2000, 2020),
            "old.pem: the certificate has expired: Jan",
        ),
        (
            "new",
            (2150, 2200),
            "new.pem: the certificate is not valid before Jan",
        ),
    ] {
        let identity = write(directory.path(), name, &["a.example"], days);
        let (_, warnings) = Acceptor::new(setup(vec![identity])).ok().unwrap();
        assert_eq!(warnings.len(), 1);
        assert_eq!(warnings[0].subject, Subject::Certificate(0));
        assert!(warnings[0].message.contains(part), "{}", warnings[0]);
    }
}

#[test]
fn reload_ignores_invalid_files() {
    let directory = tempfile::tempdir().unwrap();
    let identity = write(directory.path(), "a", &["a.example"], (2000, 2200));
    let (acceptor, _) = Acceptor::new(setup(vec![identity])).ok().unwrap();
    let first = acceptor.config();
    fs::write(directory.path().join("a.pem"), "half a").unwrap();
    let said = acceptor.reload().unwrap_err();
    assert!(said[0].message.contains("a.pem"), "{said:?}");
    assert!(Arc::ptr_eq(&acceptor.config(), &first));
    write(directory.path(), "a", &["a.example"], (2000, 2200));
    assert_eq!(acceptor.reload(), Ok(Vec::new()));
    let second = acceptor.config();
    assert!(!Arc::ptr_eq(&second, &first));
    assert!(
        Arc::ptr_eq(&second.ticketer, &first.ticketer),
        "tickets stay good"
    );
}

#[test]
fn byte_order_mark_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let marked = |file: &Path| {
        let text = fs::read_to_string(file).unwrap();
        // Twice, because a mark before a chain would hide only the first certificate.
        fs::write(file, format!("\u{feff}{text}{text}")).unwrap();
    };
    for which in ["certificate", "key", "clients"] {
        let own = write(directory.path(), "own", &["a.example"], (2000, 2200));
        let Identity::Files {
            certificate, key, ..
        } = &own
        else {
            unreachable!("both are files")
        };
        let authority = directory.path().join("clients.pem");
        fs::copy(certificate, &authority).unwrap();
        let file = match which {
            "certificate" => certificate,
            "key" => key,
            _ => &authority,
        };
        marked(file);
        let mut setup = setup(vec![own.clone()]);
        setup.clients = Clients::Required(Authorities::new(authority.clone()));
        let said = wrong(setup);
        let expected = format!("{}: a byte order mark (BOM) is before", file.display());
        assert!(
            said.len() == 1 && said[0].contains(&expected),
            "{which}: {said:?}"
        );
    }
}
