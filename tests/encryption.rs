//! TLS with other programs: curl and openssl as clients, nginx as server.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::thread;

use crate::application::Application;
use crate::peer::{Peer, curl, peer};
use crate::program::{Finished, Program, Serve, drivers, onrush, run_onrush, until};

/// Creates a self-signed certificate for localhost; `key` holds openssl's arguments for the key type.
pub(crate) fn write_certificate(directory: &Path, name: &str, key: &[&str]) -> (String, String) {
    let path = |ending: &str| {
        directory
            .join(format!("{name}.{ending}"))
            .display()
            .to_string()
    };
    let (certificate, key_file) = (path("pem"), path("key"));
    let words = [
        "req",
        "-x509",
        "-nodes",
        "-days",
        "30",
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost,IP:127.0.0.1",
        "-out",
        &certificate,
        "-keyout",
        &key_file,
    ];
    let finished = Program::start(peer("openssl", &words).args(key)).finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    (certificate, key_file)
}

pub(crate) const RSA: &[&str] = &["-newkey", "rsa:2048"];
pub(crate) const ECDSA: &[&str] = &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];

/// Sends one request with openssl's client and returns its output.
fn s_client(serve: &Serve, words: &[&str]) -> String {
    let mut command = peer(
        "openssl",
        &["s_client", "-connect", &serve.address, "-ign_eof"],
    );
    let mut child = command
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it is there");
    let request = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let mut stdin = child.stdin.take().expect("piped");
    // Ignore the error: a refused client may exit before it reads this.
    let _ = stdin.write_all(request);
    let output = child.wait_with_output().expect("it can be waited for");
    drop(stdin);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
#[ignore = "slow: make test-all"]
fn curl_works_with_every_tls_version_and_cipher() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("large.bin"), vec![b'x'; 3_000_000]).expect("it is ours");
    let site = directory.path().display().to_string();
    for (name, key) in [("rsa", RSA), ("ecdsa", ECDSA)] {
        let (certificate, key) = write_certificate(directory.path(), name, key);
        let files = format!("{certificate},{key}");
        for driver in drivers() {
            let serve = Serve::start(&[&site, "--tls", &files, "--io", driver]);
            let url = serve.tls_url("/large.bin");
            let kind = name.to_uppercase();
            let ciphers = [
                (
                    "1.3",
                    "--tls13-ciphers",
                    "TLS_AES_128_GCM_SHA256".to_owned(),
                ),
                (
                    "1.3",
                    "--tls13-ciphers",
                    "TLS_AES_256_GCM_SHA384".to_owned(),
                ),
                (
                    "1.3",
                    "--tls13-ciphers",
                    "TLS_CHACHA20_POLY1305_SHA256".to_owned(),
                ),
                (
                    "1.2",
                    "--ciphers",
                    format!("ECDHE-{kind}-AES128-GCM-SHA256"),
                ),
                (
                    "1.2",
                    "--ciphers",
                    format!("ECDHE-{kind}-AES256-GCM-SHA384"),
                ),
                (
                    "1.2",
                    "--ciphers",
                    format!("ECDHE-{kind}-CHACHA20-POLY1305"),
                ),
            ];
            for (version, option, cipher) in &ciphers {
                let trusted = [
                    "--cacert",
                    &certificate,
                    "--tls-max",
                    version,
                    option,
                    cipher,
                ];
                // Two requests on one connection.
                let finished = curl(&[&trusted[..], &[&url, &url]].concat());
                assert_eq!(finished.out.len(), 6_000_000, "{cipher}");
                assert!(finished.out.bytes().all(|byte| byte == b'x'), "{cipher}");
            }
            assert_eq!(serve.stop().connections(), ciphers.len() as u64);
        }
    }
}

#[test]
fn openssl_resumes_sessions_with_new_keys() {
    let directory = tempfile::tempdir().expect("a directory");
    let session = directory.path().join("session").display().to_string();
    let serve = Serve::start(&["--respond", "200:hello", "--tls", "self-signed"]);
    for (version, said) in [("-tls1_3", "TLSv1.3"), ("-tls1_2", "TLSv1.2")] {
        let first = s_client(&serve, &[version, "-sess_out", &session]);
        assert!(
            first.contains(&format!("New, {said}")) && first.contains("hello"),
            "{first}"
        );
        let second = s_client(&serve, &[version, "-sess_in", &session]);
        assert!(second.contains(&format!("Reused, {said}")), "{second}");
        assert!(second.contains("hello"), "{second}");
    }
    let refused = s_client(&serve, &["-tls1_1"]);
    assert!(!refused.contains("hello"), "{refused}");
    let warning = "the client 127.0.0.1 of listener 127.0.0.1:";
    serve.program.err.wait_for(warning);
    assert_eq!(serve.stop().number_before(" TLS handshakes failed"), 1);
}

#[test]
fn plain_http_on_tls_port_is_explained() {
    let serve = Serve::start(&["--respond", "200:hello", "--tls", "self-signed"]);
    let response = curl(&["-i", &serve.url("/")]).out;
    assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
    assert!(response.contains("this port speaks TLS"), "{response}");
    assert_eq!(serve.stop().requests(), 0);
}

#[test]
fn mismatched_key_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let (certificate, _) = write_certificate(directory.path(), "a", ECDSA);
    let (_, key) = write_certificate(directory.path(), "b", ECDSA);
    let files = format!("{certificate},{key}");
    let refused = run_onrush(&["serve", "--respond", "200", "--tls", &files]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused
            .err
            .contains("b.key: this key does not belong to the certificate"),
        "{refused:?}"
    );
    let missing = run_onrush(&["serve", "--respond", "200", "--tls", "none.pem,none.key"]);
    assert!(
        missing.err.contains("none.pem: it cannot be read"),
        "{missing:?}"
    );
}

#[test]
fn certificate_reload_loses_no_request() {
    let directory = tempfile::tempdir().expect("a directory");
    let (certificate, key) = write_certificate(directory.path(), "live", ECDSA);
    let files = format!("{certificate},{key}");
    let serve = Serve::start(&["--respond", "200:hello", "--tls", &files]);
    let url = serve.tls_url("/");
    // Kept-alive and new connections, until a signal stops the load.
    let load = |words: &[&str]| {
        let words = [
            &["load", &url, "-k", "-d", "60s", "-c", "4", "-R", "400"],
            words,
        ]
        .concat();
        Program::start(&mut onrush(&words))
    };
    let (kept, renewed) = (load(&[]), load(&["-r", "3"]));
    let is_shown = |certificate: &str| {
        let words = ["--silent", "--cacert", certificate, &url];
        let finished = Program::start(&mut peer("curl", &words)).finish();
        (finished.code == Some(0)).then_some(())
    };
    until("the first certificate", || is_shown(&certificate));
    // Half a change first, which has no effect.
    let (fresh, fresh_key) = write_certificate(directory.path(), "fresh", RSA);
    fs::copy(&fresh_key, &key).expect("it is ours");
    serve.program.err.wait_for("the old ones stay");
    let old = directory.path().join("old.pem");
    fs::copy(&certificate, &old).expect("it is ours");
    assert!(is_shown(&old.display().to_string()).is_some());
    fs::copy(&fresh, &certificate).expect("it is ours");
    until("the second certificate", || is_shown(&fresh));
    for run in [kept, renewed] {
        run.signal(rustix::process::Signal::INT);
        let finished: Finished = run.finish();
        // On a busy machine its own verdict may be invalid.
        assert!(matches!(finished.code, Some(0 | 5)), "{finished:?}");
        assert!(finished.out.contains("\nerrors       0\n"), "{finished:?}");
    }
    serve.stop();
}

/// Starts a TCP load balancer that forwards connections to `target`, each prefixed with `header`. Returns its address.
fn start_proxy_protocol_balancer(target: &str, header: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    let target = target.to_owned();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = TcpStream::connect(&target).expect("it listens");
            // Ignore errors: the ends decide why a connection ends.
            thread::spawn(move || pass_on(client, server, header));
        }
    });
    address
}

/// Sends the header in two pieces, the second together with the client's first data.
fn pass_on(mut client: TcpStream, mut server: TcpStream, header: &[u8]) -> io::Result<()> {
    server.set_nodelay(true)?;
    let (one, other) = header.split_at(header.len() / 2);
    server.write_all(one)?;
    let mut piece = [0; 4096];
    let count = client.read(&mut piece)?;
    server.write_all(&[other, &piece[..count]].concat())?;
    let (mut responses, mut asker) = (server.try_clone()?, client.try_clone()?);
    thread::spawn(move || io::copy(&mut responses, &mut asker));
    io::copy(&mut client, &mut server).map(drop)
}

#[test]
fn proxy_protocol_works_with_tls() {
    let application = Application::start("app");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("onrush.toml");
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = \"self-signed\"\n\
        proxy_protocol = {{ from = \"127.0.0.0/8\" }}\n\
        [[route]]\nfrom = \"192.0.2.0/24\"\nforward = \"http://{}\"\n\
        request_headers = {{ set = {{ X-Client = \"{{client.address}}:{{client.port}} {{scheme}} {{tls.version}}\" }} }}\n\
        [[route]]\nrespond = {{ status = 403 }}\n",
        application.address
    );
    fs::write(&path, text).expect("it is ours");
    let path = path.display().to_string();
    let v1 = b"PROXY TCP4 192.0.2.7 198.51.100.1 56324 443\r\n";
    // The same, followed by a field without meaning (PP2_TYPE_NOOP).
    let v2 = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x10\xc0\0\x02\x07\xc6\x33\x64\x01\xdc\x04\x01\xbb\x04\0\x01\0";
    for driver in drivers() {
        let serve = Serve::start(&["--config", &path, "--io", driver]);
        for header in [&v1[..], v2] {
            let url = format!(
                "https://{}/",
                start_proxy_protocol_balancer(&serve.address, header)
            );
            for (version, said) in [("1.2", "TLSv1.2"), ("1.3", "TLSv1.3")] {
                // Two requests on one connection.
                let responses = curl(&["-k", "--tls-max", version, &url, &url]).out;
                for part in [
                    "\r\nX-Forwarded-For: 192.0.2.7\r\n",
                    "\r\nX-Forwarded-Proto: https\r\n",
                    &format!("\r\nX-Client: 192.0.2.7:56324 https {said}\r\n"),
                ] {
                    assert_eq!(responses.matches(part).count(), 2, "{part} in {responses}");
                }
            }
        }
        // A connection without the header is refused, with TLS and without.
        for scheme in ["https", "http"] {
            let url = format!("{scheme}://{}/", serve.address);
            let refused = Program::start(&mut peer("curl", &["--silent", "-k", &url])).finish();
            assert_ne!(refused.code, Some(0), "{refused:?}");
            assert_eq!(refused.out, "", "{refused:?}");
        }
        assert_eq!(serve.stop().requests(), 8);
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn load_works_over_tls_with_nginx() {
    let directory = tempfile::tempdir().expect("a directory");
    let (certificate, key) = write_certificate(directory.path(), "nginx", RSA);
    for versions in ["TLSv1.2", "TLSv1.3"] {
        let nginx = Peer::nginx_with_tls(&certificate, &key, versions);
        let url = format!("https://{}", nginx.url("/"));
        let said = |words: &[&str]| {
            let words = [&["load", &url, "-n", "400", "-c", "4"], words].concat();
            let finished = run_onrush(&words).on_any_machine();
            assert_eq!(finished.code, Some(0), "{finished:?}");
            let line = finished.out.lines().find(|line| line.starts_with("TLS "));
            line.unwrap_or_default().to_owned()
        };
        let kept = said(&["--insecure"]);
        assert!(
            kept.contains("4 handshakes") && kept.contains(versions),
            "{kept}"
        );
        let resumed = said(&["--cacert", &certificate, "-r", "1"]);
        assert!(
            resumed.contains("400 handshakes") && !resumed.contains(" 0 resumed"),
            "{resumed}"
        );
        let full = said(&["-k", "-r", "1", "--tls-resume", "off"]);
        assert!(full.contains("400 handshakes, 0 resumed"), "{full}");
        let refused = run_onrush(&["load", &url, "-n", "4"]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(
            refused.err.contains("self-signed and not trusted"),
            "{refused:?}"
        );
    }
}
