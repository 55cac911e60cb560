//! Verification of certificates, messages of refusals, and the lifetime of sessions.

use std::fs;
use std::path::{Path, PathBuf};

use onrush_engine::clock;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType,
    IsCa, KeyIdMethod, KeyPair, RevokedCertParams, SerialNumber, date_time_ymd,
};
use x509_parser::time::ASN1Time;

use super::alerts::client_of;
use super::*;
use crate::acceptor::client_names::NamedClients;
use crate::error::Subject;

type Authority = CertifiedIssuer<'static, KeyPair>;

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn authority(name: &str) -> Authority {
    let mut params = params(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Writes a certificate signed by `by`, and its key; returns both files.
fn write(
    directory: &Path,
    name: &str,
    params: &CertificateParams,
    by: &Authority,
) -> (PathBuf, PathBuf) {
    let key = KeyPair::generate().unwrap();
    let signed = params.signed_by(&key, by).unwrap();
    let path = |ending: &str| directory.join(format!("{name}.{ending}"));
    fs::write(path("pem"), signed.pem()).unwrap();
    fs::write(path("key"), key.serialize_pem()).unwrap();
    (path("pem"), path("key"))
}

fn trust(directory: &Path, authority: &Authority) -> PathBuf {
    let file = directory.join("authorities.pem");
    fs::write(&file, authority.pem()).unwrap();
    file
}

#[test]
fn rejection_message_identifies_certificate() {
    on_every_driver(Simulation::with_seed, |site| async move {
        let directory = tempfile::tempdir().unwrap();
        let (ours, other) = (authority("Ours"), authority("An \u{7}other"));
        let verify = Verify::File(trust(directory.path(), &ours));
        let mut old = params("old");
        old.not_after = date_time_ymd(2020, 1, 2);
        let mut new = params("new");
        new.not_before = date_time_ymd(2150, 1, 2);
        for (params, by, name, said, told) in [
            (
                params("site"),
                &ours,
                "www.example",
                "the certificate is for another name: it is for localhost, not for www.example",
                42,
            ),
            (
                old,
                &ours,
                "localhost",
                "the certificate of CN=old has expired: Jan  2 00:00:00 2020 +00:00",
                45,
            ),
            (
                new,
                &ours,
                "localhost",
                "the certificate of CN=new is not valid before Jan  2 00:00:00 2150 +00:00",
                45,
            ),
            (
                params("site"),
                &other,
                "localhost",
                "the certificate of CN=site is signed by an untrusted authority: CN=An \u{fffd}other",
                48,
            ),
        ] {
            let (certificate, key) = write(directory.path(), "site", &params, by);
            let certificates = vec![Identity::Files {
                certificate,
                key,
                staple: None,
            }];
            let setup = ServerSetup {
                certificates,
                ..setup()
            };
            let acceptor = Arc::new(Acceptor::new(setup).ok().unwrap().0);
            let connector = connector_of(ClientSetup {
                verify: verify.clone(),
                name: Some(name.to_owned()),
                ..ClientSetup::default()
            });
            let (server, client) = site.shake(&acceptor, &connector).await;
            assert_eq!(client.err().unwrap().to_string(), said);
            let alert = match server.err().unwrap() {
                HandshakeError::Tls(rustls::Error::AlertReceived(alert)) => u8::from(alert),
                other => panic!("{other}"),
            };
            // RFC 8446 6.2 defines no alert for a wrong name.
            assert_eq!(alert, told, "{said}");
        }
    });
}

/// Client with the certificate and key in these files.
fn showing((certificate, key): (PathBuf, PathBuf), version: Version) -> Arc<Connector> {
    connector_of(ClientSetup {
        verify: Verify::Nothing,
        certificate: Some((certificate, key)),
        versions: vec![version],
        ..ClientSetup::default()
    })
}

fn requiring(file: PathBuf) -> Arc<Acceptor> {
    let clients = Clients::Required(Authorities::new(file));
    let setup = ServerSetup { clients, ..setup() };
    Arc::new(Acceptor::new(setup).ok().unwrap().0)
}

/// Does a handshake and sends tickets. Returns whether a session was resumed, or why the client was refused.
async fn log_in(
    site: &Site,
    acceptor: &Arc<Acceptor>,
    connector: &Arc<Connector>,
) -> Result<bool, String> {
    let (server, client) = site.shake(acceptor, connector).await;
    let server = patient(server.map_err(|error| error.to_string())?);
    let client = patient(client.unwrap());
    send(&server, b"welcome").await.unwrap();
    server.shutdown().await.unwrap();
    assert_eq!(receive_all(&client).await.unwrap(), b"welcome");
    let info = server.info().unwrap();
    assert_eq!(info.client.as_deref(), Some("CN=client"));
    Ok(info.is_resumed)
}

#[test]
fn removed_authority_invalidates_tickets() {
    on_every_driver(calm, |site| async move {
        for version in [Version::Tls12, Version::Tls13] {
            let directory = tempfile::tempdir().unwrap();
            let (old, new) = (authority("Old"), authority("New"));
            let trusted = trust(directory.path(), &old);
            let acceptor = requiring(trusted.clone());
            let files = write(directory.path(), "client", &params("client"), &old);
            let connector = showing(files, version);
            assert_eq!(log_in(&site, &acceptor, &connector).await, Ok(false));
            assert_eq!(log_in(&site, &acceptor, &connector).await, Ok(true));
            // The same authorities in another order and number.
            fs::write(&trusted, old.pem().repeat(2)).unwrap();
            assert_eq!(acceptor.reload(), Ok(Vec::new()));
            assert_eq!(log_in(&site, &acceptor, &connector).await, Ok(true));
            trust(directory.path(), &new);
            assert_eq!(acceptor.reload(), Ok(Vec::new()));
            let refused = log_in(&site, &acceptor, &connector).await;
            assert_eq!(
                refused,
                Err(
                    "the certificate of CN=client is signed by an untrusted authority: CN=Old"
                        .to_owned()
                )
            );
            // A session is not resumed after its authority was removed, even when it is trusted again.
            trust(directory.path(), &old);
            assert_eq!(acceptor.reload(), Ok(Vec::new()));
            assert_eq!(log_in(&site, &acceptor, &connector).await, Ok(false));
        }
    });
}

#[test]
fn ticket_expires_with_client_certificate() {
    for io in [Io::Epoll, Io::IoUring] {
        let Ok(core) = Core::new(0, io) else {
            eprintln!("{io:?} is skipped");
            continue;
        };
        run(&format!("{io:?}"), core, &|site: Site| async move {
            let directory = tempfile::tempdir().unwrap();
            let authority = authority("Ours");
            let acceptor = requiring(trust(directory.path(), &authority));
            let mut params = params("client");
            let end = clock::unix_seconds() + 2;
            let moment = ASN1Time::from_timestamp(end as i64).unwrap();
            params.not_after = moment.to_datetime();
            let files = write(directory.path(), "client", &params, &authority);
            let connectors =
                [Version::Tls12, Version::Tls13].map(|version| showing(files.clone(), version));
            let mut resumed = 0;
            let refused = loop {
                let mut refused = None;
                for connector in &connectors {
                    match log_in(&site, &acceptor, connector).await {
                        Ok(is_resumed) => resumed += usize::from(is_resumed),
                        Err(why) => refused = Some(why),
                    }
                }
                if let Some(refused) = refused {
                    break refused;
                }
                let now = clock::unix_seconds();
                assert!(now < end + PATIENCE.as_secs(), "{resumed} were resumed");
            };
            assert!(resumed > 0);
            assert!(
                refused.starts_with("the certificate of CN=client has expired: "),
                "{refused}"
            );
        });
    }
}

#[test]
fn ticket_is_rejected_by_other_acceptor() {
    on_every_driver(calm, |site| async move {
        let directory = tempfile::tempdir().unwrap();
        let authority = authority("Ours");
        let open = acceptor(Profile::Intermediate);
        let closed = requiring(trust(directory.path(), &authority));
        for version in [Version::Tls12, Version::Tls13] {
            let connector = client_of(version);
            for _ in 0..2 {
                let (server, client) = site.shake(&open, &connector).await;
                let (server, client) = (patient(server.unwrap()), patient(client.unwrap()));
                send(&server, b"x").await.unwrap();
                assert_eq!(client.recv(&mut Input::default()).await, Ok(1));
            }
            let (server, _client) = site.shake(&closed, &connector).await;
            assert_eq!(
                server.err().unwrap().to_string(),
                "the client sent no certificate"
            );
        }
    });
}

/// Revocation list by `authority`, valid until the year `until`, with this serial number.
fn revocation_list(
    authority: &Authority,
    until: i32,
    serial: u64,
) -> rcgen::CertificateRevocationList {
    revocation_list_from(authority, (2020, until), serial)
}

/// The same, issued in the year `from`.
fn revocation_list_from(
    authority: &Authority,
    (from, until): (i32, i32),
    serial: u64,
) -> rcgen::CertificateRevocationList {
    let revoked = RevokedCertParams {
        serial_number: SerialNumber::from(serial),
        revocation_time: date_time_ymd(2020, 1, 1),
        reason_code: None,
        invalidity_date: None,
    };
    let params = CertificateRevocationListParams {
        this_update: date_time_ymd(from, 1, 1),
        next_update: date_time_ymd(until, 1, 1),
        crl_number: SerialNumber::from(1),
        issuing_distribution_point: None,
        revoked_certs: vec![revoked],
        key_identifier_method: KeyIdMethod::Sha256,
    };
    params.signed_by(authority).unwrap()
}

#[test]
fn revoked_client_is_refused_after_reload() {
    on_every_driver(calm, |site| async move {
        for version in [Version::Tls12, Version::Tls13] {
            let directory = tempfile::tempdir().unwrap();
            let (ours, other) = (authority("Ours"), authority("Other"));
            let file = directory.path().join("clients.crl");
            let list = |by, until, serial| revocation_list(by, until, serial).pem().unwrap();
            fs::write(&file, list(&other, 2200, 7) + &list(&ours, 2200, 8)).unwrap();
            let clients = Clients::Required(Authorities {
                file: trust(directory.path(), &ours),
                revocation_lists: vec![file.clone()],
            });
            let setup = ServerSetup { clients, ..setup() };
            let (acceptor, warnings) = Acceptor::new(setup).ok().unwrap();
            let acceptor = Arc::new(acceptor);
            assert_eq!(warnings, []);
            assert!(acceptor.stamps().files.contains(&file), "it is watched");
            let mut client = params("client");
            client.serial_number = Some(SerialNumber::from(7));
            let connector = showing(write(directory.path(), "client", &client, &ours), version);
            assert_eq!(log_in(&site, &acceptor, &connector).await, Ok(false));
            assert_eq!(log_in(&site, &acceptor, &connector).await, Ok(true));
            // DER, with the client's certificate: its ticket is no longer valid.
            fs::write(&file, revocation_list(&ours, 2200, 7).der()).unwrap();
            assert_eq!(acceptor.reload(), Ok(Vec::new()));
            assert_eq!(
                log_in(&site, &acceptor, &connector).await,
                Err("the certificate of CN=client, or one above it, has been revoked (its serial number: 07)".to_owned())
            );
            // Without a list of its authority the status of the certificate is unknown.
            fs::write(&file, revocation_list(&other, 2200, 9).der()).unwrap();
            assert_eq!(acceptor.reload(), Ok(Vec::new()));
            assert_eq!(
                log_in(&site, &acceptor, &connector).await,
                Err("the certificate of CN=client is refused: the revocation list of CN=Ours or of an authority above it is missing".to_owned())
            );
            fs::write(&file, revocation_list(&ours, 2021, 9).der()).unwrap();
            let warnings = acceptor.reload().unwrap();
            assert_eq!(warnings.len(), 1);
            assert_eq!(warnings[0].subject, Subject::RevocationList(0));
            let why = "the revocation list of CN=Ours has expired: Jan  1 00:00:00 2021 +00:00";
            assert!(warnings[0].message.contains(why), "{}", warnings[0]);
            assert_eq!(
                log_in(&site, &acceptor, &connector).await,
                Err("the certificate of CN=client is refused: the revocation list of an authority above it has expired: Jan  1 00:00:00 2021 +00:00".to_owned())
            );
        }
    });
}

#[test]
fn newest_revocation_list_applies() {
    on_every_driver(calm, |site| async move {
        let directory = tempfile::tempdir().unwrap();
        let ours = authority("Ours");
        let mut client = params("client");
        client.serial_number = Some(SerialNumber::from(7));
        let files = write(directory.path(), "client", &client, &ours);
        let connector = showing(files, Version::Tls13);
        let older = revocation_list_from(&ours, (2020, 2200), 8).pem().unwrap();
        let newer = revocation_list_from(&ours, (2021, 2200), 7).pem().unwrap();
        for (first, second) in [(&older, &newer), (&newer, &older)] {
            let names = ["first.crl", "second.crl"].map(|name| directory.path().join(name));
            fs::write(&names[0], first).unwrap();
            fs::write(&names[1], second).unwrap();
            let authorities = Authorities {
                file: trust(directory.path(), &ours),
                revocation_lists: names.to_vec(),
            };
            let clients = Clients::Required(authorities);
            let (acceptor, _) = Acceptor::new(ServerSetup { clients, ..setup() })
                .ok()
                .unwrap();
            let refused = log_in(&site, &Arc::new(acceptor), &connector)
                .await
                .unwrap_err();
            assert!(refused.contains("has been revoked"), "{refused}");
        }
    });
}

#[test]
fn invalid_revocation_list_error_has_file_name() {
    let directory = tempfile::tempdir().unwrap();
    let ours = authority("Ours");
    let list = directory.path().join("clients.crl");
    let file = trust(directory.path(), &ours);
    let der = revocation_list(&ours, 2200, 7).der().to_vec();
    let pem = revocation_list(&ours, 2200, 7).pem().unwrap();
    let trailing = [&der[..], b"x"].concat();
    for (bytes, why) in [
        (
            &b""[..],
            "it contains no revocation list (-----BEGIN X509 CRL-----): it is empty",
        ),
        (
            ours.pem().as_bytes(),
            "it holds a certificate: expected PEM with -----BEGIN X509 CRL-----",
        ),
        (
            &ours.der()[..],
            "it is DER, but not a certificate revocation list",
        ),
        (&trailing, "bytes follow the revocation list"),
        (&pem.as_bytes()[..pem.len() / 2], "it is cut off"),
    ] {
        fs::write(&list, bytes).unwrap();
        let clients = Clients::Optional(Authorities {
            file: file.clone(),
            revocation_lists: vec![list.clone()],
        });
        let wrong = Acceptor::new(ServerSetup { clients, ..setup() })
            .err()
            .unwrap();
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        assert_eq!(wrong[0].subject, Subject::RevocationList(0));
        let said = format!("{}: {why}", list.display());
        assert!(wrong[0].message.starts_with(&said), "{}", wrong[0]);
    }
}

#[test]
fn client_certificate_rule_depends_on_server_name() {
    on_every_driver(calm, |site| async move {
        let directory = tempfile::tempdir().unwrap();
        let (ours, other) = (authority("Ours"), authority("Other"));
        let file = |name: &str, by: &Authority| {
            let file = directory.path().join(name);
            fs::write(&file, by.pem()).unwrap();
            Authorities::new(file)
        };
        let rule = |name: &str, clients| NamedClients {
            names: vec![name.to_owned()],
            clients,
        };
        let setup = ServerSetup {
            named_clients: vec![
                rule("a.example", Clients::Required(file("a.pem", &ours))),
                rule("*.b.example", Clients::Optional(file("b.pem", &other))),
            ],
            ..setup()
        };
        let acceptor = Arc::new(Acceptor::new(setup).ok().unwrap().0);
        let of_ours = write(directory.path(), "ours", &params("ours"), &ours);
        let of_other = write(directory.path(), "other", &params("other"), &other);
        for version in [Version::Tls12, Version::Tls13] {
            for (name, certificate, expected) in [
                ("a.example", None, None),
                ("a.example", Some(&of_ours), Some(Some("CN=ours"))),
                ("a.example", Some(&of_other), None),
                ("x.b.example", None, Some(None)),
                ("x.b.example", Some(&of_ours), None),
                ("y.x.b.example", Some(&of_other), Some(Some("CN=other"))),
                ("c.example", Some(&of_ours), Some(None)),
            ] {
                let connector = connector_of(ClientSetup {
                    verify: Verify::Nothing,
                    name: Some(name.to_owned()),
                    certificate: certificate.cloned(),
                    versions: vec![version],
                    ..ClientSetup::default()
                });
                let (server, _client) = site.shake(&acceptor, &connector).await;
                let shown = server
                    .ok()
                    .map(|server| patient(server).info().unwrap().client.clone());
                let expected = expected.map(|client: Option<&str>| client.map(Into::into));
                assert_eq!(shown, expected, "{name} {version:?}");
            }
        }
    });
}
