//! How `onrush load` connects: source addresses, target address, PROXY protocol, TLS. The server's responses contain
//! what it saw.

use std::path::Path;

use tempfile::TempDir;

use crate::program::{Finished, Serve, drivers, run_onrush};

fn serve(config: &str) -> (Serve, TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("onrush.toml");
    std::fs::write(&file, config).expect("it is ours");
    let serve = Serve::start(&["--config", &file.display().to_string()]);
    (serve, directory)
}

fn load(words: &[&str]) -> Finished {
    run_onrush(&[&["load"], words].concat()).on_any_machine()
}

/// The line of the summary that begins with `word`.
fn line<'a>(finished: &'a Finished, word: &str) -> &'a str {
    let mut lines = finished.out.lines();
    let found = lines.find_map(|line| line.strip_prefix(word));
    found
        .unwrap_or_else(|| panic!("no {word} in {finished:?}"))
        .trim()
}

/// A self-signed certificate for `name`, and its key.
fn certificate(directory: &Path, name: &str) -> (String, String) {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a name");
    let path = |ending: &str| {
        directory
            .join(format!("{name}.{ending}"))
            .display()
            .to_string()
    };
    let (certificate, key) = (path("pem"), path("key"));
    std::fs::write(&certificate, made.cert.pem()).expect("it is ours");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("it is ours");
    (certificate, key)
}

const BY_CLIENT: &str = "[[route]]
from = [\"127.0.0.2\", \"127.0.0.3\"]
respond = { status = 200 }
[[route]]
respond = { status = 404 }
";

#[test]
fn source_addresses_are_used_evenly() {
    for io in drivers() {
        let (serve, _kept) = serve(&format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n{BY_CLIENT}"
        ));
        let finished = load(&[
            &serve.url("/"),
            "-c",
            "4",
            "-t",
            "2",
            "-n",
            "100",
            "-r",
            "1",
            "--io",
            io,
            "--source",
            "127.0.0.2-127.0.0.5",
        ]);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert_eq!(line(&finished, "statuses"), "200: 50, 404: 50");
    }
}

#[test]
fn proxy_protocol_carries_source_addresses() {
    for version in ["v1", "v2"] {
        let (serve, _kept) = serve(&format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\nproxy_protocol = true\n{BY_CLIENT}"
        ));
        let words = [
            "-n",
            "60",
            "-r",
            "3",
            "-c",
            "2",
            "--source",
            "127.0.0.3,127.0.0.4",
        ];
        let url = serve.url("/");
        let finished = load(&[&[&url, "--proxy-protocol", version], &words[..]].concat());
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert!(
            line(&finished, "statuses").starts_with("200: "),
            "{finished:?}"
        );
        assert!(
            line(&finished, "statuses").contains("404: "),
            "{finished:?}"
        );
        let without = load(&[&url, "-n", "2"]);
        assert_eq!(without.code, Some(5), "{without:?}");
        assert!(
            without.out.contains("no response was received"),
            "{without:?}"
        );
    }
}

#[test]
fn connect_to_keeps_host_and_sni() {
    let directory = tempfile::tempdir().expect("a directory");
    let (certificate, key) = certificate(directory.path(), "a.example");
    let (serve, _kept) = serve(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = {{ certificate = \"{certificate}\", key = \"{key}\" }}\n\
         [[route]]\nhost = \"a.example\"\nrespond = {{ status = 200 }}\n"
    ));
    let finished = load(&[
        "https://a.example/",
        "-n",
        "10",
        "--connect-to",
        &serve.address,
        "--cacert",
        &certificate,
    ]);
    assert_eq!(line(&finished, "statuses"), "200: 10");
    let by_name = load(&[
        &serve.tls_url("/"),
        "-n",
        "10",
        "--sni",
        "a.example",
        "-H",
        "Host: a.example",
        "--cacert",
        &certificate,
    ]);
    assert_eq!(line(&by_name, "statuses"), "200: 10");
    let other = load(&[&serve.tls_url("/"), "-n", "10", "--cacert", &certificate]);
    assert_eq!(other.code, Some(2), "{other:?}");
    assert!(other.err.contains("for another name"), "{other:?}");
}

#[test]
fn tls_flags_are_respected() {
    let directory = tempfile::tempdir().expect("a directory");
    let (client, key) = certificate(directory.path(), "client.example");
    let (serve, _kept) = serve(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = {{ certificate = \"self-signed\", client_ca = \"{client}\" }}\n\
         [[route]]\nrespond = {{ status = 200 }}\n"
    ));
    let url = serve.tls_url("/");
    let with = |words: &[&str]| {
        let common = [
            "-n", "10", "-c", "2", "-k", "--cert", &client, "--key", &key,
        ];
        load(&[&[&url[..]], &common[..], words].concat())
    };
    for (words, expected) in [
        (&["--tls-versions", "1.2"][..], "TLSv1.2 "),
        (&["--tls-versions", "1.3"], "TLSv1.3 "),
        (
            &["--tls-ciphers", "TLS_CHACHA20_POLY1305_SHA256"],
            "TLSv1.3 TLS_CHACHA20_POLY1305_SHA256",
        ),
        (
            &["--tls-ciphers", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"],
            "TLSv1.2 TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        ),
    ] {
        let finished = with(words);
        assert_eq!(finished.code, Some(0), "{words:?}: {finished:?}");
        assert!(
            line(&finished, "TLS ").contains(expected),
            "{words:?}: {finished:?}"
        );
    }
    let unshown = load(&[&url, "-n", "10", "-k", "--tls-versions", "1.2"]);
    assert_eq!(unshown.code, Some(2), "{unshown:?}");
}

#[test]
fn invalid_connection_flags_are_refused() {
    let serve = Serve::start(&["--respond", "200:hello"]);
    let url = serve.url("/");
    for (words, part) in [
        (
            &["--tls-versions", "1.3"][..],
            "--tls-versions is only for TLS, and http://",
        ),
        (&["--source", "192.0.2.1"], "cannot use --source 192.0.2.1"),
        (
            &["--source", "::1"],
            "no address of the address family of --source",
        ),
        (&["--source-ports", "1-2"], "net.ipv4.ip_local_port_range"),
        (
            &["--source", "127.0.0.2", "--connect-to", "unix:/run/a.sock"],
            "have no source address",
        ),
    ] {
        let finished = load(&[&[&url[..]], words].concat());
        assert_eq!(finished.code, Some(1), "{words:?}: {finished:?}");
        assert!(finished.err.contains(part), "{words:?}: {finished:?}");
    }
    assert_eq!(serve.stop().connections(), 0);
}
