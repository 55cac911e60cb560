//! Certificates of clients, and of servers by SNI: nginx, HAProxy and the converted configurations accept the same
//! clients.

use std::fs;
use std::path::Path;

use crate::converting::{free_port, wait_for};
use crate::encryption::{ECDSA, RSA, write_certificate};
use crate::peer::peer;
use crate::program::{Program, Serve, run_onrush};

fn openssl(directory: &Path, line: &str) {
    let words: Vec<&str> = line.split(' ').collect();
    let mut command = peer("openssl", &words);
    let finished = Program::start(command.current_dir(directory)).finish();
    assert_eq!(finished.code, Some(0), "openssl {line}: {finished:?}");
}

/// Creates the authorities `a` and `b`, a client of each, a revoked client of `a`, and the revocation list.
fn write_clients(directory: &Path) {
    for authority in ["a", "b"] {
        openssl(
            directory,
            &format!(
                "req -x509 -nodes -newkey rsa:2048 -days 30 -subj /CN={authority} -keyout {authority}.key -out {authority}.pem"
            ),
        );
    }
    // Certificates of version 1, which have no extensions, are refused.
    let extensions = "basicConstraints = CA:FALSE\n";
    fs::write(directory.join("extensions"), extensions).expect("it is ours");
    for (client, authority) in [("of_a", "a"), ("of_b", "b"), ("revoked", "a")] {
        openssl(
            directory,
            &format!(
                "req -new -nodes -newkey rsa:2048 -subj /CN={client} -keyout {client}.key -out {client}.csr"
            ),
        );
        openssl(
            directory,
            &format!(
                "x509 -req -in {client}.csr -CA {authority}.pem -CAkey {authority}.key -CAcreateserial -days 30 -extfile extensions -out {client}.pem"
            ),
        );
    }
    let settings = "[ca]\ndefault_ca = d\n[d]\ndatabase = index\ncrlnumber = number\ndefault_md = sha256\ndefault_crl_days = 30\n";
    fs::write(directory.join("ca.cnf"), settings).expect("it is ours");
    fs::write(directory.join("index"), "").expect("it is ours");
    fs::write(directory.join("number"), "01\n").expect("it is ours");
    let ca = "ca -config ca.cnf -keyfile a.key -cert a.pem";
    openssl(directory, &format!("{ca} -revoke revoked.pem"));
    openssl(directory, &format!("{ca} -gencrl -out a.crl"));
}

/// Status for a client that requests this URL; 000 without a response.
fn status(directory: &Path, port: u16, host: &str, words: &[&str]) -> String {
    let resolve = format!("{host}:{port}:127.0.0.1");
    let url = format!("https://{host}:{port}/");
    let mut command = peer("curl", &["-sk", "-o", "/dev/null", "-w", "%{http_code}"]);
    command.args(["--resolve", &resolve, &url]).args(words);
    Program::start(command.current_dir(directory)).finish().out
}

/// Clients that each host accepts.
fn let_in(directory: &Path, port: u16, hosts: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for host in hosts {
        for client in ["", "of_a", "of_b", "revoked"] {
            let (certificate, key) = (format!("{client}.pem"), format!("{client}.key"));
            let words: &[&str] = match client {
                "" => &[],
                _ => &["--cert", &certificate, "--key", &key],
            };
            if status(directory, port, host, words).starts_with('2') {
                found.push(format!("{host}: {client:?}"));
            }
        }
    }
    found
}

/// Sends the requests to the original, then to the result in its place, and compares.
fn compare<T: PartialEq + std::fmt::Debug>(
    mut program: Program,
    (port, language): (u16, &str),
    directory: &Path,
    ask: impl Fn() -> T,
) {
    wait_for(&mut program, port);
    let before = ask();
    drop(program);
    let file = directory.join("conf").display().to_string();
    let converted = run_onrush(&["convert", language, &file]);
    let result = directory.join("onrush.toml");
    fs::write(&result, &converted.out).expect("it is ours");
    let serve = Serve::start(&["--config", &result.display().to_string()]);
    assert_eq!(serve.address, format!("127.0.0.1:{port}"));
    assert_eq!(ask(), before, "{}\n{}", converted.out, converted.err);
}

fn nginx(directory: &Path, servers: &str) -> Program {
    let at = directory.display().to_string();
    let text = format!(
        "daemon off; master_process off; pid {at}/pid; error_log {at}/error.log; events {{ }}
http {{ access_log off; client_body_temp_path {at}/body; proxy_temp_path {at}/proxy; fastcgi_temp_path {at}/fastcgi;
uwsgi_temp_path {at}/uwsgi; scgi_temp_path {at}/scgi;
{servers} }}"
    );
    fs::write(directory.join("conf"), text.replace("$AT", &at)).expect("it is ours");
    let error_log = format!("{at}/error.log");
    let arguments = ["-p", &at, "-e", &error_log, "-c", &format!("{at}/conf")];
    Program::start(&mut peer("nginx", &arguments))
}

/// Names with nginx's rules for client certificates.
const RULES: [(&str, &str); 7] = [
    ("none.example", ""),
    (
        "optional.example",
        "ssl_verify_client optional; ssl_client_certificate $AT/a.pem;",
    ),
    (
        "on.example",
        "ssl_verify_client on; ssl_client_certificate $AT/a.pem;",
    ),
    (
        "other.example",
        "ssl_verify_client on; ssl_client_certificate $AT/b.pem;",
    ),
    (
        "revoking.example",
        "ssl_verify_client on; ssl_client_certificate $AT/a.pem; ssl_crl $AT/a.crl;",
    ),
    (
        "any.example",
        "ssl_verify_client optional_no_ca; ssl_client_certificate $AT/a.pem;",
    ),
    (
        "guarded.example",
        "ssl_verify_client optional_no_ca; ssl_client_certificate $AT/a.pem; if ($ssl_client_verify = NONE) { return 403; }",
    ),
];

#[test]
#[ignore = "foreign programs: make test-all"]
fn nginx_client_certificates_are_accepted_alike() {
    let directory = tempfile::tempdir().expect("a directory");
    let (at, port) = (directory.path(), free_port());
    write_clients(at);
    let (certificate, key) = write_certificate(at, "site", RSA);
    let servers = RULES.map(|(name, rule)| {
        format!("server {{ listen 127.0.0.1:{port} ssl; server_name {name}; ssl_certificate {certificate}; ssl_certificate_key {key}; {rule} return 204; }}\n")
    });
    let program = nginx(at, &servers.concat());
    // The condition of the last site cannot be evaluated, so the result refuses every client there.
    let hosts: Vec<&str> = RULES.iter().map(|(name, _)| *name).collect();
    compare(program, (port, "nginx"), at, || {
        let_in(at, port, &hosts[..6])
    });
    assert!(let_in_of(at, hosts[6]).is_empty());
}

/// Clients that the written result accepts for this host.
fn let_in_of(directory: &Path, host: &str) -> Vec<String> {
    let result = directory.join("onrush.toml").display().to_string();
    let serve = Serve::start(&["--config", &result]);
    let (_, port) = serve.address.rsplit_once(':').expect("an address");
    let_in(directory, port.parse().expect("a port"), &[host])
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn haproxy_client_certificates_are_accepted_alike() {
    let directory = tempfile::tempdir().expect("a directory");
    let (at, port) = (directory.path(), free_port());
    write_clients(at);
    let (certificate, key) = write_certificate(at, "site", RSA);
    let pair = [certificate, key].map(|file| fs::read_to_string(file).expect("it is ours"));
    fs::write(at.join("pair.pem"), pair.concat()).expect("it is ours");
    let place = at.display();
    let list = format!(
        "{place}/pair.pem none.example
{place}/pair.pem [verify optional ca-file {place}/a.pem] optional.example
{place}/pair.pem [verify required ca-file {place}/a.pem] on.example
{place}/pair.pem [verify required ca-file {place}/b.pem] other.example
{place}/pair.pem [verify required ca-verify-file {place}/a.pem] trusted.example
{place}/pair.pem [verify required ca-file {place}/a.pem crl-file {place}/a.crl] revoking.example
"
    );
    fs::write(at.join("list"), list).expect("it is ours");
    let text = format!(
        "defaults\n mode http\n timeout client 60s\n timeout server 60s\n timeout connect 1s\nfrontend f\n bind 127.0.0.1:{port} ssl crt-list {place}/list\n http-request return status 200 if {{ path / }}\n"
    );
    fs::write(at.join("conf"), text).expect("it is ours");
    let conf = at.join("conf").display().to_string();
    let program = Program::start(&mut peer("haproxy", &["-db", "-f", &conf]));
    let hosts = [
        "none.example",
        "optional.example",
        "on.example",
        "other.example",
        "trusted.example",
        "revoking.example",
    ];
    compare(program, (port, "haproxy"), at, || let_in(at, port, &hosts));
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn clients_without_sni_get_a_compatible_certificate() {
    let directory = tempfile::tempdir().expect("a directory");
    let (at, port) = (directory.path(), free_port());
    let pairs = [("ecdsa", ECDSA), ("rsa", RSA)].map(|(name, key)| {
        let file = |ending: &str| at.join(format!("{name}.{ending}")).display().to_string();
        let (certificate, key_file) = (file("pem"), file("key"));
        let mut words = vec!["req", "-x509", "-nodes", "-days", "30", "-subj"];
        let subject = format!("/CN={name}.example");
        words.extend([&*subject, "-out", &certificate, "-keyout", &key_file]);
        let finished = Program::start(peer("openssl", &words).args(key)).finish();
        assert_eq!(finished.code, Some(0), "{finished:?}");
        format!("ssl_certificate {certificate}; ssl_certificate_key {key_file}; ")
    });
    let pairs = pairs.concat();
    let program = nginx(
        at,
        &format!("server {{ listen 127.0.0.1:{port} ssl; {pairs} return 204; }}"),
    );
    let ciphers = [
        "ECDHE-RSA-AES128-GCM-SHA256",
        "ECDHE-ECDSA-AES128-GCM-SHA256",
    ];
    let ask = || {
        ciphers.map(|cipher| {
            let words = ["--tls-max", "1.2", "--ciphers", cipher];
            status(at, port, "127.0.0.1", &words)
        })
    };
    compare(program, (port, "nginx"), at, || {
        assert_eq!(ask(), ["204", "204"]);
    });
}
