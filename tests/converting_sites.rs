//! Sites of nginx and HAProxy, one directive each: the original and the result get the same requests. They respond the
//! same, except where a note of the conversion announces the difference.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;

use tempfile::TempDir;

use crate::application::Application;
use crate::converting::{free_port, wait_for};
use crate::peer::peer;
use crate::program::{Finished, Program, Serve, TIMEOUT, run_onrush};

mod connections;
mod haproxy;
mod listeners;
mod modules;
mod names;
mod nginx;
mod settings;

use haproxy::HAPROXY;
use nginx::NGINX;

/// One site, requested by its own name.
struct Site {
    /// Its lines: the inside of a server of nginx, or the frontend and its backend of HAProxy.
    lines: &'static str,
    /// Fields to compare besides status and body, of responses and of requests at the application.
    fields: &'static [&'static str],
    requests: &'static [Request],
}

/// A request, as text without its Host, and the expected difference of its response. A PROXY header may be its first line.
type Request = (&'static str, Difference);

/// Expected difference of the result.
#[derive(Clone, Copy, Debug)]
enum Difference {
    None,
    /// The result responds with this status, and a note with these words announces it.
    Status(&'static str, &'static str),
    /// A field or the body differs, and a note with these words announces it.
    Content(&'static str),
    /// The status is the same, and a note with these words announces a difference that the response need not show.
    Noted(&'static str),
}

use Difference::{Content, None as Same, Noted, Status};

/// The compared parts of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Answer {
    status: String,
    content: Vec<String>,
}

/// Status of a connection that is closed without a response.
const CLOSED: &str = "closed";

/// Sends a request to the site of this name.
fn ask(port: u16, host: &str, request: &str, fields: &[&str]) -> Answer {
    let (header, request) = match request.split_once('\n') {
        Some((header, request)) if header.starts_with("PROXY ") => {
            (format!("{header}\r\n"), request)
        }
        _ => (String::new(), request),
    };
    let (line, rest) = request.split_once('\n').unwrap_or((request, ""));
    let rest: String = rest.lines().map(|field| format!("{field}\r\n")).collect();
    let text =
        format!("{header}{line} HTTP/1.1\r\nHost: {host}\r\n{rest}Connection: close\r\n\r\n");
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_read_timeout(Some(TIMEOUT)).expect("not zero");
    stream.write_all(text.as_bytes()).expect("it is taken");
    let response = receive_all(&mut stream);
    if response.is_empty() {
        let status = CLOSED.to_owned();
        return Answer {
            status,
            content: Vec::new(),
        };
    }
    let (head, body) = response.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).expect("a status").to_owned();
    let counts = |line: &&str| {
        let name = line.split(':').next().unwrap_or_default();
        fields.iter().any(|field| field.eq_ignore_ascii_case(name))
    };
    let port = format!(":{port}");
    let shown = |line: &str| {
        let line = line
            .replace(&port, "")
            .replace(&format!("http://{host}"), "")
            .to_lowercase();
        match line.split_once(": ") {
            Some(("server", value)) if value.starts_with("nginx") || value == "onrush" => {
                "server: its own".to_owned()
            }
            Some(("date", value)) if !value.contains("1970") => "date: now".to_owned(),
            _ => line,
        }
    };
    let mut content: Vec<String> = head.lines().filter(counts).map(shown).collect();
    // Each program has its own encoder.
    let is_encoded = head.to_lowercase().contains("\r\ncontent-encoding: ");
    match body.strip_prefix("app\n") {
        Some(asked) => {
            let line = asked.lines().next().unwrap_or_default();
            content.push(
                line.rsplit_once(' ')
                    .map_or(line, |(line, _)| line)
                    .to_owned(),
            );
            content.extend(
                asked
                    .lines()
                    .filter(counts)
                    .map(|line| format!("asked {line}").to_lowercase()),
            );
        }
        // Each program has its own pages for errors and redirects.
        None if status.starts_with('2') && !is_encoded => content.push(body.to_owned()),
        None => {}
    }
    content.sort_unstable();
    Answer { status, content }
}

/// Receives until the end. A peer that closes before it has read the request resets the connection.
fn receive_all(stream: &mut TcpStream) -> String {
    let mut response = Vec::new();
    if let Err(error) = stream.read_to_end(&mut response) {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    }
    String::from_utf8_lossy(&response).into_owned()
}

fn name(at: usize) -> String {
    format!("site{at}.example")
}

/// The responses of all sites, each on its own port.
fn answers(ports: &[u16], sites: &[Site]) -> Vec<Answer> {
    let sites = sites.iter().zip(ports).enumerate();
    let all = sites.flat_map(|(at, (site, port))| {
        let requests = site.requests.iter();
        requests.map(move |(request, _)| ask(*port, &name(at), request, site.fields))
    });
    all.collect()
}

/// The result of a conversion, running on the port of the original.
fn serve_result(language: &str, directory: &Path, port: u16) -> (Serve, Finished) {
    let file = directory.join("conf").display().to_string();
    let converted = run_onrush(&["convert", language, &file]);
    assert!(matches!(converted.code, Some(0 | 2)), "{converted:?}");
    let result = directory.join("onrush.toml");
    fs::write(&result, &converted.out).expect("it is ours");
    let serve = Serve::start(&["--config", &result.display().to_string()]);
    assert_eq!(serve.address, format!("127.0.0.1:{port}"));
    (serve, converted)
}

/// Sends the requests to the original, then to the result in its place, and compares.
fn compare(
    mut program: Program,
    ports: &[u16],
    language: &str,
    directory: &TempDir,
    sites: &[Site],
) {
    wait_for(&mut program, ports[0]);
    let before = answers(ports, sites);
    drop(program);
    let (_serve, converted) = serve_result(language, directory.path(), ports[0]);
    let after = answers(ports, sites);
    let asked = sites.iter().flat_map(|site| {
        let requests = site.requests.iter();
        requests.map(move |(request, difference)| (site.lines, request, difference))
    });
    let mut wrong = String::new();
    for ((lines, request, difference), (before, after)) in asked.zip(before.iter().zip(&after)) {
        if let Some(what) = mismatch(before, after, *difference, &converted) {
            wrong += &format!(
                "\n{lines}\n  {request:?}: {what}\n  before {before:?}\n  after  {after:?}\n"
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong}\n{}", converted.err);
}

/// The error in the result's response, if there is one.
fn mismatch(
    before: &Answer,
    after: &Answer,
    difference: Difference,
    converted: &Finished,
) -> Option<String> {
    let is_announced = |words: &str| converted.err.contains(words);
    match difference {
        Same => (before != after).then(|| "they differ".to_owned()),
        Status(status, _) if after.status != status || before.status == status => {
            Some(format!("expected another status, {status}"))
        }
        Content(_) if before.status != after.status || before == after => {
            Some("expected the same status with other content".to_owned())
        }
        Noted(_) if before.status != after.status => Some("expected the same status".to_owned()),
        Status(_, words) | Content(words) | Noted(words) => {
            (!is_announced(words)).then(|| format!("no note has {words:?}"))
        }
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn nginx_sites_differ_only_as_noted() {
    let directory = tempfile::tempdir().expect("a directory");
    let (port, application) = (free_port(), Application::start("app"));
    let servers = NGINX.iter().enumerate().map(|(index, site)| {
        format!(
            "server {{ listen 127.0.0.1:{port}; server_name {}; {} }}\n",
            name(index),
            site.lines
        )
    });
    let servers: String = servers.collect();
    let text = format!(
        "upstream app {{ server {}; }}
geo $http_x_address $of_field {{ default 0; 192.0.2.0/24 1; }}
server {{ listen 127.0.0.1:{port} default_server; server_name \"\"; return 404; }}
{servers}",
        application.address
    );
    let program = start_nginx(directory.path(), &text);
    compare(
        program,
        &vec![port; NGINX.len()],
        "nginx",
        &directory,
        NGINX,
    );
}

/// Starts nginx with these directives in `http`; `$FILES` is the directory, which contains some files.
fn start_nginx(directory: &Path, http: &str) -> Program {
    write_nginx(directory, http);
    let at = directory.display().to_string();
    let error_log = format!("{at}/error.log");
    let arguments = ["-p", &at, "-e", &error_log, "-c", &format!("{at}/conf")];
    Program::start(&mut peer("nginx", &arguments))
}

fn write_nginx(directory: &Path, http: &str) {
    write_files(directory);
    let at = directory.display().to_string();
    let text = format!(
        "daemon off; master_process off; pid {at}/pid; error_log {at}/error.log; events {{ }}
http {{ access_log off; types {{ text/html html; }} default_type text/plain;
client_body_temp_path {at}/body; proxy_temp_path {at}/proxy; fastcgi_temp_path {at}/fastcgi; uwsgi_temp_path {at}/uwsgi; scgi_temp_path {at}/scgi;
{} }}",
        http.replace("$FILES", &at)
    );
    fs::write(directory.join("conf"), text).expect("it is ours");
}

fn write_files(directory: &Path) {
    for folder in ["www/sub", "www/static"] {
        fs::create_dir_all(directory.join(folder)).expect("it is ours");
    }
    for (name, text) in [
        ("www/index.html", "index"),
        ("www/a.html", "a"),
        ("www/secret", "secret"),
        ("www/sub/b.html", "b"),
        ("www/static/a.txt", "static"),
        (
            "users",
            "joe:$6$ab$jnZj29NS/hK2GaouP6AGMIBwD6owZFRejcn9QRdlwSjZaVr.fR9dH2TXrKL/PaacUXwtGfI.4O9zxvy2k6fbE1\n",
        ),
    ] {
        fs::write(directory.join(name), text).expect("it is ours");
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn haproxy_sites_differ_only_as_noted() {
    let directory = tempfile::tempdir().expect("a directory");
    let (port, application) = (free_port(), Application::start("app"));
    let mut text = format!(
        "defaults\n mode http\n timeout connect 1s\n timeout client 60s\n timeout server 60s\n timeout client-fin 20s\nfrontend front\n bind 127.0.0.1:{port}\n unique-id-format %{{+X}}o\\ %ci\n unique-id-header X-Unique\n"
    );
    for at in 0..HAPROXY.len() {
        text += &format!(" use_backend b{at} if {{ hdr(host) {} }}\n", name(at));
    }
    for (at, site) in HAPROXY.iter().enumerate() {
        let lines = site.lines.replace("$A", &application.address);
        text += &format!("backend b{at}\n {lines}\n");
    }
    let program = start_haproxy(directory.path(), &text);
    compare(
        program,
        &vec![port; HAPROXY.len()],
        "haproxy",
        &directory,
        HAPROXY,
    );
}

fn start_haproxy(directory: &Path, text: &str) -> Program {
    let conf = directory.join("conf");
    fs::write(&conf, text).expect("it is ours");
    let arguments = ["-db", "-f", &conf.display().to_string()];
    Program::start(&mut peer("haproxy", &arguments))
}
