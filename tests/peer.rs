//! Foreign programs used in tests. A missing one fails its test with the command that installs it.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::program::{Finished, Program, ShutdownWrite, until};

/// Each program with its Debian package.
const PACKAGES: [(&str, &str); 11] = [
    ("h2load", "nghttp2-client"),
    ("nghttp", "nghttp2-client"),
    ("curl", "curl"),
    ("openssl", "openssl"),
    ("ab", "apache2-utils"),
    ("wrk", "wrk"),
    ("nginx", "nginx-light"),
    ("haproxy", "haproxy"),
    ("memcached", "memcached"),
    ("python3", "python3"),
    ("h2o", "h2o"),
];

/// Runs these `ip` commands; false, with a message, if that is not permitted.
pub(crate) fn create_network(steps: &[String]) -> bool {
    steps.iter().all(|step| {
        let output = Command::new("ip").args(step.split(' ')).output();
        let is_done = output.as_ref().is_ok_and(|output| output.status.success());
        if !is_done {
            eprintln!("skipped: `ip {step}` failed ({output:?}); this takes root and iproute2");
        }
        is_done
    })
}

/// A foreign program with these arguments.
pub(crate) fn peer(name: &str, arguments: &[&str]) -> Command {
    let package = PACKAGES.iter().find(|(program, _)| *program == name);
    let (_, package) = package.expect("it is in the list");
    let found =
        found(name).unwrap_or_else(|| panic!("{name} is missing; run: scripts/packages {package}"));
    let mut command = Command::new(found);
    command.args(arguments);
    command
}

/// A Python that has these modules, of several that may be installed; without one a message names the `packages`.
pub(crate) fn python((modules, packages): (&str, &str)) -> Option<&'static str> {
    let imports = |program: &&str| {
        let imported = Command::new(program)
            .args(["-c", &format!("import {modules}")])
            .output();
        imported.is_ok_and(|output| output.status.success())
    };
    let found = ["python3", "/usr/bin/python3"].into_iter().find(imports);
    if found.is_none() {
        eprintln!("skipped: python3 has no {modules} here; run: scripts/packages {packages}");
    }
    found
}

/// Path of a foreign program, if it is installed.
pub(crate) fn found(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Debian's directories for servers, which are not in every user's PATH.
    let places = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    let mut files = places.map(|place| place.join(name));
    files.find(|file| file.is_file())
}

/// Whether all of these programs are installed; a message names a missing one.
pub(crate) fn are_installed(names: &[&str]) -> bool {
    let missing = names.iter().find(|name| found(name).is_none());
    if let Some(name) = missing {
        eprintln!("skipped: {name} is not on this machine");
    }
    missing.is_none()
}

pub(crate) fn curl(arguments: &[&str]) -> Finished {
    let mut command = peer("curl", &["--silent", "--show-error", "--max-time", "50"]);
    let finished = Program::start(command.args(arguments)).finish();
    assert_eq!(finished.code, Some(0), "{arguments:?}: {finished:?}");
    finished
}

/// Runs ab with keep-alive: every request must succeed.
pub(crate) fn ab(url: &str) {
    const COUNT: &str = "1000";
    let arguments = ["-k", "-q", "-l", "-n", COUNT, "-c", "10", url];
    let finished = Program::start(&mut peer("ab", &arguments)).finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let figure = |name: &str| {
        let line = finished
            .out
            .lines()
            .find_map(|line| line.strip_prefix(name));
        line.map(|rest| rest.trim().to_owned())
    };
    assert_eq!(
        figure("Complete requests:").as_deref(),
        Some(COUNT),
        "{finished:?}"
    );
    assert_eq!(
        figure("Failed requests:").as_deref(),
        Some("0"),
        "{finished:?}"
    );
    assert_eq!(
        figure("Keep-Alive requests:").as_deref(),
        Some(COUNT),
        "{finished:?}"
    );
    assert_eq!(figure("Non-2xx responses:"), None, "{finished:?}");
}

/// Runs wrk for a second, without errors. Returns the number of requests.
pub(crate) fn wrk(url: &str) -> u64 {
    let arguments = ["-t", "1", "-c", "10", "-d", "1s", url];
    let finished = Program::start(&mut peer("wrk", &arguments)).finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    for trouble in ["Socket errors", "Non-2xx"] {
        assert!(!finished.out.contains(trouble), "{finished:?}");
    }
    let count = finished
        .out
        .lines()
        .find_map(|line| line.trim().split_once(" requests in "))
        .and_then(|(count, _)| count.parse().ok())
        .unwrap_or_else(|| panic!("{finished:?}"));
    assert!(count > 0, "{finished:?}");
    count
}

/// A foreign server on a Unix socket, which cannot collide with other tests.
pub(crate) struct Peer {
    _program: Program,
    pub(crate) socket: PathBuf,
    directory: TempDir,
}

impl Peer {
    /// nginx, which responds with method, target and body length, and logs the requests.
    pub(crate) fn nginx() -> Peer {
        Peer::nginx_keeping(1_000_000)
    }

    /// The same, closing each connection after this many requests.
    pub(crate) fn nginx_keeping(requests: u32) -> Peer {
        Peer::nginx_of(requests, "", "")
    }

    /// nginx with these versions of TLS.
    pub(crate) fn nginx_with_tls(certificate: &str, key: &str, versions: &str) -> Peer {
        let files = format!("ssl_certificate {certificate}; ssl_certificate_key {key};");
        Peer::nginx_of(
            1_000_000,
            "ssl",
            &format!("{files} ssl_protocols {versions};"),
        )
    }

    /// nginx with HTTP/2 only, closing each connection after this many requests; `more` is added to its server block.
    pub(crate) fn nginx_with_http2(requests: u32, more: &str) -> Peer {
        Peer::nginx_of(requests, "http2", more)
    }

    /// nginx with HTTP/2 over TLS, negotiated by ALPN.
    pub(crate) fn nginx_with_http2_and_tls(certificate: &str, key: &str) -> Peer {
        let files = format!("ssl_certificate {certificate}; ssl_certificate_key {key};");
        Peer::nginx_of(1_000_000, "ssl http2", &files)
    }

    fn nginx_of(requests: u32, listen: &str, more: &str) -> Peer {
        let directory = tempfile::tempdir().expect("a directory");
        let at = directory.path().display();
        // A single process, so that ending it ends everything; all its files stay in its directory.
        let text = format!(
            r#"
daemon off; master_process off; pid {at}/pid; error_log {at}/error.log;
events {{ worker_connections 1024; }}
http {{
    log_format asked "$request";
    access_log {at}/access.log asked;
    client_body_temp_path {at}/body; proxy_temp_path {at}/proxy; fastcgi_temp_path {at}/fastcgi;
    uwsgi_temp_path {at}/uwsgi; scgi_temp_path {at}/scgi;
    client_max_body_size 0; keepalive_requests {requests}; default_type text/plain;
    server {{
        listen unix:{at}/socket {listen}; {more}
        root {at}/www;
        location / {{ return 200 "nginx was asked for $request_method $request_uri\n"; }}
        location /files/ {{ try_files $uri =404; }}
    }}
}}
"#
        );
        std::fs::create_dir_all(directory.path().join("www/files")).expect("it is ours");
        std::fs::write(directory.path().join("conf"), text).expect("it is ours");
        let arguments = [
            "-p",
            &at.to_string(),
            "-e",
            &format!("{at}/error.log"),
            "-c",
            &format!("{at}/conf"),
        ];
        let program = Program::start(&mut peer("nginx", &arguments));
        Peer::started(program, directory)
    }

    /// h2o, which serves files below /files/ and logs the requests; `None`, with a message, if it is not installed.
    pub(crate) fn h2o() -> Option<Peer> {
        if !are_installed(&["h2o"]) {
            return None;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let at = directory.path().display();
        let user = std::env::var("USER").unwrap_or_else(|_| "root".to_owned());
        let text = format!(
            r#"
listen: {{ type: unix, port: {at}/socket }}
num-threads: 1
user: {user}
access-log: {{ path: {at}/access.log, format: "%r" }}
hosts: {{ default: {{ paths: {{ /: {{ file.dir: {at}/www }} }} }} }}
"#
        );
        std::fs::create_dir_all(directory.path().join("www/files")).expect("it is ours");
        std::fs::write(directory.path().join("conf"), text).expect("it is ours");
        let program = Program::start(&mut peer("h2o", &["-c", &format!("{at}/conf")]));
        Some(Peer::started(program, directory))
    }

    /// HAProxy in front of `server`; it responds to /own itself.
    pub(crate) fn haproxy(server: &str) -> Peer {
        let directory = tempfile::tempdir().expect("a directory");
        let at = directory.path().display();
        let text = format!(
            "
defaults
    mode http
    timeout connect 30s
    timeout client 60s
    timeout server 60s
frontend front
    bind unix@{at}/socket
    http-request return status 200 content-type text/plain string haproxy if {{ path /own }}
    default_backend back
backend back
    http-reuse always
    server one {server}
"
        );
        std::fs::write(directory.path().join("conf"), text).expect("it is ours");
        let program = Program::start(&mut peer("haproxy", &["-db", "-f", &format!("{at}/conf")]));
        Peer::started(program, directory)
    }

    fn started(mut program: Program, directory: TempDir) -> Peer {
        let socket = directory.path().join("socket");
        until("a server of others", || {
            assert!(program.is_running(), "it has ended");
            UnixStream::connect(&socket).ok()
        });
        Peer {
            _program: program,
            socket,
            directory,
        }
    }

    /// Address for `onrush serve --forward`.
    pub(crate) fn server(&self) -> String {
        format!("unix:{}", self.socket.display())
    }

    /// URL of `path` for `onrush load`.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("unix:{}:{path}", self.socket.display())
    }

    /// Writes a file that nginx serves below /files/.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.directory.path().join("www/files").join(name);
        std::fs::write(&path, content).expect("it is ours");
        path
    }

    /// Request lines in nginx's log.
    pub(crate) fn log(&self) -> String {
        let path: &Path = &self.directory.path().join("access.log");
        std::fs::read_to_string(path).expect("nginx writes it")
    }
}

/// A client's TLS connection, made by openssl.
#[derive(Debug)]
pub(crate) struct TlsClient(Child);

impl TlsClient {
    /// Connects without verifying the certificate.
    pub(crate) fn connect(address: &str) -> TlsClient {
        let arguments = ["s_client", "-quiet", "-connect", address];
        let child = peer("openssl", &arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        TlsClient(child.expect("it is there"))
    }
}

impl Read for TlsClient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.stdout.as_mut().expect("piped").read(buffer)
    }
}

impl Write for TlsClient {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.stdin.as_mut().expect("piped").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.stdin.as_mut().expect("piped").flush()
    }
}

impl ShutdownWrite for TlsClient {
    /// It ends when the server does.
    fn end(&self) {}
}

impl Drop for TlsClient {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
