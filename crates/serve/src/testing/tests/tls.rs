//! TLS on both sides: towards clients, and towards servers, which are instances of Onrush, too.

use std::path::Path;
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use onrush_config::Plan;
use onrush_config::plan::{
    Certificate, MisdirectedRequests, OneLiner, ServerAddress, Sticky, Tls, TlsProfile, Verify,
};
use onrush_engine::{Address, Input, Stream};
use onrush_tls::{ClientSetup, Connector, Transport};

use crate::testing::harness::{Step, TestCore, on_every_driver, send};

fn server(profile: TlsProfile) -> Plan {
    let mut plan = Plan::one_liner(OneLiner::Synthetic, Vec::new());
    plan.listen[0].tls = Some(Tls {
        profile,
        ..Tls::self_signed()
    });
    plan
}

fn proxy(site: &TestCore, address: &Address, verify: Verify) -> Address {
    let Address::Tcp(address) = *address else {
        unreachable!("claims here are of TCP")
    };
    let behind = OneLiner::ForwardTls(vec![ServerAddress::Ip(address)]);
    let mut plan = Plan::one_liner(behind, Vec::new());
    let tls = plan.upstreams[0].tls.as_mut().expect("asked for");
    tls.verify = verify;
    site.serve(&plan)
}

#[test]
fn sticky_cookie_is_secure_over_tls() {
    on_every_driver(|site| async move {
        let upstream = site.upstream(&[&[
            Step::Read,
            send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
            Step::Again,
        ]]);
        let mut plan = upstream.plan();
        plan.upstreams[0].sticky = Some(Sticky {
            cookie: "srv".into(),
            age_max: None,
        });
        plan.listen = server(TlsProfile::Modern).listen;
        let front = proxy(&site, &site.serve(&plan), Verify::Insecure);
        let mut client = site.connect(&front).await;
        client.send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
        let response = client.receive_text().await;
        assert!(response.contains("\r\nSet-Cookie: srv="), "{response}");
        assert!(
            response.contains("; SameSite=Lax; Secure\r\n"),
            "{response}"
        );
    });
}

#[test]
fn requests_are_forwarded_over_tls() {
    on_every_driver(|site| async move {
        for profile in [TlsProfile::Modern, TlsProfile::Intermediate] {
            let (behind, service) = site.serve_worker(&server(profile));
            let front = proxy(&site, &behind, Verify::Insecure);
            let mut client = site.connect(&front).await;
            for size in [0, 1, 20_000, 100_000] {
                let request = format!("GET /?s={size} HTTP/1.1\r\nHost: h\r\n\r\n");
                client.send(request.as_bytes()).await;
                let head = client.receive_until(b"\r\n\r\n").await;
                let head = String::from_utf8(head).expect("ASCII");
                assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
                assert_eq!(client.receive_exactly(size).await.len(), size);
            }
            let body = "x".repeat(50_000);
            let post = format!(
                "POST /?s=3 HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            client.send(post.as_bytes()).await;
            let rest = String::from_utf8(client.receive_all().await).expect("ASCII");
            assert!(rest.starts_with("HTTP/1.1 200 "), "{rest}");
            let totals = service.worker.meter.totals();
            assert_eq!((totals.requests, totals.handshakes_failed), (5, 0));
        }
    });
}

#[test]
fn alpn_with_http_1_0_is_negotiated() {
    on_every_driver(|site| async move {
        for (protocols, agreed) in [
            (vec!["http/1.0"], "http/1.0"),
            (vec!["http/1.0", "http/1.1"], "http/1.1"),
            (vec!["spdy/3", "http/1.1"], "http/1.1"),
        ] {
            let behind = site.serve(&server(TlsProfile::Intermediate));
            let connector = Connector::new(ClientSetup {
                verify: onrush_tls::Verify::Nothing,
                protocols,
                ..ClientSetup::default()
            });
            let (connector, _) = connector.expect("no file can be wrong");
            let core = &site.core;
            let stream = Stream::connect(core, &behind, None)
                .await
                .expect("it listens");
            let until = core.now_exact() + Duration::from_secs(200);
            let connected = Transport::connect(stream, &connector, "localhost", until).await;
            let client = connected.unwrap_or_else(|error| panic!("{agreed}: {error}"));
            let protocol = &client.info().expect("it is TLS").protocol;
            assert_eq!(protocol.as_deref(), Some(agreed.as_bytes()));
            client.queue(&b"GET / HTTP/1.0\r\n\r\n"[..]);
            client.flush().await.expect("it is there");
            let mut input = Input::default();
            while client.recv(&mut input).await.expect("an orderly end") > 0 {}
            assert!(input.bytes().starts_with(b"HTTP/1.1 200 "), "{agreed}");
        }
    });
}

/// A certificate that has signed nothing.
const NOBODY: &str = "\
-----BEGIN CERTIFICATE-----
MIIBeTCCAR+gAwIBAgIUayXD7Kth3azNKmI+9g0j77W8XqowCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGbm9ib2R5MCAXDTI2MTEyMjAwMjUxOFoYDzIxMjYxMDI5MDAy
NTE4WjARMQ8wDQYDVQQDDAZub2JvZHkwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AARHlufRfndWEnLJWnV4BE8UZFBJ6+jniGvRmrMMC3R/ueyZGa+TyzP756jKw1Q6
SBcEBsPEQFTYvH97f2yTT9rYo1MwUTAdBgNVHQ4EFgQUU3GMj5fXdMvGPV8Owtra
cCOIrUcwHwYDVR0jBBgwFoAUU3GMj5fXdMvGPV8OwtracCOIrUcwDwYDVR0TAQH/
BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiBtKfrsb/A9dvNgaL3kFykg0hfMd3Ww
Pm4wcNXCejcBKwIhAI6Ywk59Xuz/5WXBtVUa+QpXcXUYyJc0fapuKk3uA64d
-----END CERTIFICATE-----
";

#[test]
fn unverified_server_gets_no_request() {
    let directory = tempfile::tempdir().expect("a directory");
    let authority = directory.path().join("nobody.pem");
    std::fs::write(&authority, NOBODY).expect("it is ours");
    on_every_driver(|site| {
        let verify = Verify::File(authority.as_path().into());
        async move {
            let (behind, service) = site.serve_worker(&server(TlsProfile::Modern));
            let front = proxy(&site, &behind, verify);
            let mut client = site.connect(&front).await;
            let request = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";
            let response = client.exchange(request).await;
            let response = String::from_utf8(response).expect("ASCII");
            assert!(response.starts_with("HTTP/1.1 502 "), "{response}");
            assert_eq!(service.worker.meter.totals().requests, 0);
        }
    });
}

/// A certificate for these names and its key, in files.
fn certificate(directory: &Path, names: &[&str]) -> Certificate {
    let mut words = vec![
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
    ];
    let subject = format!("/CN={}", names[0]);
    let alternative: Vec<String> = names.iter().map(|name| format!("DNS:{name}")).collect();
    let alternative = format!("subjectAltName={}", alternative.join(","));
    let (file, key) = (
        directory.join(names[0]),
        directory.join(format!("{}.key", names[0])),
    );
    words.extend([
        "-nodes",
        "-subj",
        &subject,
        "-addext",
        &alternative,
        "-keyout",
    ]);
    let mut command = Command::new("openssl");
    let made = command
        .args(words)
        .arg(&key)
        .arg("-out")
        .arg(&file)
        .output();
    let made = made.expect("openssl is installed");
    assert!(made.status.success(), "{made:?}");
    Certificate::Files {
        certificate: file.into(),
        key: key.into(),
        staple: None,
    }
}

/// The status of a request for `host` on a connection with the SNI `name`.
async fn status_for(site: &TestCore, address: &Address, name: &str, host: &str) -> String {
    let setup = ClientSetup {
        verify: onrush_tls::Verify::Nothing,
        ..ClientSetup::default()
    };
    let (connector, _) = Connector::new(setup).expect("no file can be wrong");
    let core = &site.core;
    let stream = Stream::connect(core, address, None).await;
    let stream = stream.expect("it listens");
    let until = core.now_exact() + Duration::from_secs(200);
    let connected = Transport::connect(stream, &connector, name, until).await;
    let client = connected.unwrap_or_else(|error| panic!("{name}: {error}"));
    let request = format!("GET /?s=1 HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let request: Rc<[u8]> = request.into_bytes().into();
    client.queue(request);
    client.flush().await.expect("it is there");
    let mut input = Input::default();
    while client.recv(&mut input).await.expect("an orderly end") > 0 {}
    String::from_utf8_lossy(&input.bytes()[9..12]).into_owned()
}

#[test]
fn host_of_other_certificate_gets_421() {
    let directory = tempfile::tempdir().expect("a directory");
    let first = certificate(directory.path(), &["a.example", "*.a.example"]);
    let second = certificate(directory.path(), &["b.example", "www.a.example"]);
    on_every_driver(|site| {
        let (first, second) = (first.clone(), second.clone());
        async move {
            let of = |certificates: Vec<Certificate>, misdirected| {
                let mut plan = Plan::one_liner(OneLiner::Synthetic, Vec::new());
                plan.listen[0].tls = Some(Tls {
                    misdirected,
                    ..Tls::with(certificates)
                });
                site.serve(&plan)
            };
            let both = of(
                vec![first.clone(), second.clone()],
                MisdirectedRequests::Refuse,
            );
            for (name, host, status) in [
                ("a.example", "a.example", "200"),
                ("a.example", "A.example.:8443", "200"),
                ("a.example", "b.example", "421"),
                ("a.example", "B.EXAMPLE:443", "421"),
                ("b.example", "a.example", "421"),
                // Both certificates cover it.
                ("a.example", "www.a.example", "200"),
                ("b.example", "www.a.example", "200"),
                ("b.example", "x.a.example", "421"),
                // No certificate covers it, so another connection would not help.
                ("a.example", "other.example", "200"),
                ("a.example", "127.0.0.1", "200"),
                // The client got the first certificate because none matched.
                ("other.example", "other.example", "200"),
                ("other.example", "b.example", "421"),
                // IP addresses are not sent as SNI.
                ("127.0.0.1", "b.example", "200"),
            ] {
                let found = status_for(&site, &both, name, host).await;
                assert_eq!(found, status, "{host} on a connection for {name}");
            }
            let one = of(vec![first.clone()], MisdirectedRequests::Refuse);
            let serving = of(vec![first, second], MisdirectedRequests::Serve);
            for address in [one, serving] {
                let found = status_for(&site, &address, "a.example", "b.example").await;
                assert_eq!(found, "200");
            }
        }
    });
}
