//! The access log: one line for each finished request, in every destination, without delaying requests.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::application::Application;
use crate::program::{Program, Serve, TIMEOUT, drivers, onrush, until};

const GET: &[u8] =
    b"GET /x?y=1 HTTP/1.1\r\nHost: a.example\r\nUser-Agent: t\"e\\st\r\nReferer: http://b/\r\n\r\n";

/// Starts a server whose configuration has this `[log]` and these routes.
fn start(directory: &TempDir, log: &str, routes: &str, words: &[&str]) -> Serve {
    let path = directory.path().join("onrush.toml");
    fs::write(&path, text(log, routes)).expect("it is ours");
    Serve::start(&[&["--config", &path.display().to_string()], words].concat())
}

fn text(log: &str, routes: &str) -> String {
    format!("log = {{ {log} }}\n[[listen]]\naddress = \"127.0.0.1:0\"\n{routes}")
}

fn responding() -> String {
    "[[route]]\npath = \"/quiet\"\nlog = false\nrespond = { status = 204 }\n[[route]]\npath = \"/gone\"\nrespond = { status = 410 }\n[[route]]\nrespond = { status = 200, body = \"hello\" }\n".to_owned()
}

/// Lines of a file, once it has at least this many.
fn lines(path: &Path, count: usize) -> Vec<String> {
    until("lines in the log", || {
        let text = fs::read_to_string(path).unwrap_or_default();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        (text.ends_with('\n') && lines.len() >= count).then_some(lines)
    })
}

#[test]
fn combined_and_json_formats_are_logged() {
    for io in drivers() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("access.log");
        let log = "access = \"access.log\"";
        let serve = start(&directory, log, &responding(), &["--io", io]);
        let mut client = serve.connect();
        client.send(GET);
        let whole = client.receive().expect("a response");
        client.send(b"GET /quiet HTTP/1.1\r\nHost: h\r\n\r\n");
        client.receive().expect("a response");
        client.send(b"nonsense\r\n\r\n");
        let refusal = client.receive().expect("a response");
        let refused = refusal.split_once("\r\n\r\n").expect("a head").1.len();
        let combined = lines(&path, 2);
        let (start, rest) = combined[0]
            .split_once(" - - [")
            .expect("the combined format");
        assert_eq!(start, "127.0.0.1");
        let (date, rest) = rest.split_once("] ").expect("a date");
        assert!(date.ends_with(" +0000") && date.len() == 26, "{date}");
        let expected = format!(
            "\"GET /x?y=1 HTTP/1.1\" 200 {} \"http://b/\" \"t\\x22e\\x5Cst\"",
            "hello".len()
        );
        assert_eq!(rest, expected);
        assert!(
            combined[1].contains(&format!("] \"-\" 400 {refused} "))
                && combined[1].starts_with("127.0.0.1 - - ["),
            "{combined:?}"
        );
        // Another format, in the same file.
        let onrush = directory.path().join("onrush.toml");
        fs::write(
            &onrush,
            text("access = \"access.log\", format = \"json\"", &responding()),
        )
        .expect("it is ours");
        serve.program.signal(Signal::HUP);
        serve.program.err.wait_for("as generation 2");
        let mut client = serve.connect();
        client.send(GET);
        client.receive().expect("a response");
        let all = lines(&path, 3);
        let json: Value = serde_json::from_str(&all[2]).expect("JSON");
        for (name, value) in [
            ("method", "GET"),
            ("target", "/x?y=1"),
            ("host", "a.example"),
            ("version", "HTTP/1.1"),
            ("client", "127.0.0.1"),
            ("route", "/*"),
            ("end", "complete"),
            ("user_agent", "t\"e\\st"),
            ("referer", "http://b/"),
        ] {
            assert_eq!(json[name], value, "{json}");
        }
        assert_eq!(
            (&json["status"], &json["bytes_sent"]),
            (&200.into(), &whole.len().into())
        );
        assert_eq!(json["body_bytes_sent"], 5, "{json}");
        assert!(
            json["duration"]
                .as_f64()
                .is_some_and(|seconds| seconds < 60.0),
            "{json}"
        );
        assert!(
            json.get("group").is_none() && json.get("failure").is_none(),
            "{json}"
        );
        serve.stop();
    }
}

#[test]
fn forwarded_request_logs_server_and_failure() {
    let application = Application::start("one");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("access.log");
    let routes = format!(
        "[[route]]\npath = \"/dead\"\nforward = \"dead\"\n[[route]]\nforward = \"app\"\n[upstream.app]\nservers = [\"{}\"]\n[upstream.dead]\nservers = [\"127.0.0.1:1\"]\n",
        application.address
    );
    let format = "format = \"{group} {server} {status} {failure} {retries} {connect_time} {header:X-Id}|{end}\"";
    let serve = start(
        &directory,
        &format!("access = \"access.log\", {format}"),
        &routes,
        &[],
    );
    let mut client = serve.connect();
    for path in ["/", "/", "/dead"] {
        client.send(format!("GET {path} HTTP/1.1\r\nHost: h\r\nX-Id: 7\r\n\r\n").as_bytes());
        client.receive().expect("a response");
    }
    let all = lines(&path, 3);
    let first: Vec<&str> = all[0].split(' ').collect();
    assert_eq!(first[..5], ["app", &application.address, "200", "-", "0"]);
    assert!(
        first[5].parse::<f64>().is_ok(),
        "a connection was made: {first:?}"
    );
    assert!(all[1].ends_with(" - 7|complete"), "there was one: {all:?}");
    assert!(
        all[2].starts_with("dead 127.0.0.1:1 502 connect "),
        "{all:?}"
    );
    serve.stop();
}

#[test]
fn only_selected_requests_are_logged() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("access.log");
    // Its response is truncated.
    let cutting = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let server = cutting.local_addr().expect("it has one");
    std::thread::spawn(move || {
        for stream in cutting.incoming().flatten() {
            let mut stream = stream;
            let _ = stream.read(&mut [0; 1000]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello");
        }
    });
    let routes = format!(
        "[[route]]\npath = \"/cut\"\nforward = \"http://{server}\"\n{}",
        responding()
    );
    let log = "access = \"access.log\", only = \"errors\", format = \"{status} {target} {failure} {end}\"";
    let serve = start(&directory, log, &routes, &[]);
    let mut client = serve.connect();
    let cut = client.exchange(b"GET /cut HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!(cut.starts_with("HTTP/1.1 200 "), "{cut}");
    // The next client may be on another core, and lines of two cores have no order.
    lines(&path, 1);
    let mut client = serve.connect();
    for path in ["/", "/gone", "/", "/quiet", "/gone/2"] {
        client.send(format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes());
        client.receive().expect("a response");
    }
    let expected = [
        "200 /cut cut off cut off",
        "410 /gone - complete",
        "410 /gone/2 - complete",
    ];
    assert_eq!(lines(&path, 3), expected);
    serve.stop();
}

#[test]
fn rotated_log_loses_no_line() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, old) = (
        directory.path().join("access.log"),
        directory.path().join("old"),
    );
    let log = "access = \"access.log\", format = \"{target}\"";
    let serve = start(&directory, log, &responding(), &[]);
    let mut client = serve.connect();
    let mut ask = |number: usize| {
        client.send(format!("GET /{number} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes());
        client.receive().expect("a response");
    };
    (0..50).for_each(&mut ask);
    fs::rename(&path, &old).expect("it is there");
    (50..100).for_each(&mut ask);
    serve.program.signal(Signal::USR1);
    serve.program.err.wait_for("was reopened");
    (100..150).for_each(&mut ask);
    serve.stop();
    let mut all = lines(&old, 100);
    all.extend(lines(&path, 50));
    let expected: Vec<String> = (0..150).map(|number| format!("/{number}")).collect();
    assert_eq!(all, expected);
}

#[test]
fn full_disk_loses_only_log_lines() {
    // Writes to it fail as on a full disk (full(4)).
    let directory = tempfile::tempdir().expect("a directory");
    let serve = start(&directory, "access = \"/dev/full\"", &responding(), &[]);
    for _ in 0..3 {
        assert_eq!(serve.body(), "hello");
        serve
            .program
            .err
            .wait_for("cannot write the access log /dev/full, lines are lost meanwhile");
    }
    serve.program.signal(Signal::TERM);
    let finished = serve.program.finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(
        finished.err.matches("cannot write").count(),
        1,
        "{finished:?}"
    );
    assert!(
        finished.err.contains("3 lines of the access log were lost"),
        "{finished:?}"
    );
    // A missing directory is reported at the start.
    let path = directory.path().join("onrush.toml");
    fs::write(
        &path,
        text("access = \"no/such/access.log\"", &responding()),
    )
    .expect("it is ours");
    let refused = Program::start(&mut onrush(&[
        "serve",
        "--config",
        &path.display().to_string(),
    ]))
    .finish();
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.err.contains("cannot write the access log")
            && refused.err.contains("no/such/access.log"),
        "{refused:?}"
    );
}

#[test]
fn syslog_receives_messages_and_can_be_absent() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("log");
    let (unix, udp) = (
        UnixDatagram::bind(&socket).expect("it is free"),
        UdpSocket::bind("127.0.0.1:0").expect("a free port"),
    );
    unix.set_read_timeout(Some(TIMEOUT)).expect("not zero");
    udp.set_read_timeout(Some(TIMEOUT)).expect("not zero");
    let address = udp.local_addr().expect("it is bound");
    for (place, is_unix) in [
        (format!("syslog:unix:{}", socket.display()), true),
        (format!("syslog:udp:{address}"), false),
    ] {
        let log = format!("access = \"{place}\", format = \"{{status}} {{target}}\"");
        let serve = start(&directory, &log, &responding(), &[]);
        assert_eq!(serve.body(), "hello");
        let mut bytes = [0; 2000];
        let count = match is_unix {
            true => unix.recv(&mut bytes),
            false => udp.recv(&mut bytes),
        };
        let message = String::from_utf8_lossy(&bytes[..count.expect("a message")]).into_owned();
        assert!(
            message.starts_with("<134>1 20") && message.ends_with(" access - 200 /"),
            "{message}"
        );
        assert_eq!(message.split(' ').nth(3), Some("onrush"), "{message}");
        if is_unix {
            fs::remove_file(&socket).expect("it is there");
            assert_eq!(serve.body(), "hello");
            serve.program.err.wait_for("lines are lost meanwhile");
        }
        serve.stop();
    }
}

/// Creates a named pipe and opens it for reading, but never reads it.
fn unread_pipe(path: &Path) -> fs::File {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.expect("it is there").success());
    let open = fs::OpenOptions::new().read(true).write(true).open(path);
    open.expect("it is ours")
}

/// A log to a pipe, with lines so long that it holds few.
const LONG_LINES: &str = "access = \"pipe\", format = \"{target} LONG\"";

/// Sends 500 requests, far more than a pipe holds, and calls `then`. The lines in the pipe and the reported losses must
/// add up.
fn fills_a_pipe(directory: &TempDir, then: impl FnOnce(&Serve)) {
    let pipe = directory.path().join("pipe");
    let mut reader = unread_pipe(&pipe);
    let log = LONG_LINES.replace("LONG", &"x".repeat(1000));
    let serve = start(directory, &log, &responding(), &[]);
    let mut client = serve.connect();
    for _ in 0..500 {
        client.send(GET);
        client.receive().expect("a response");
    }
    then(&serve);
    serve.program.signal(Signal::TERM);
    let finished = serve.program.finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let mut all = vec![0; 1024 * 1024];
    let count = reader.read(&mut all).expect("there is something");
    let written = all[..count].iter().filter(|&&byte| byte == b'\n').count();
    let lost = finished
        .err
        .lines()
        .find(|line| line.contains(" lines of the access log were lost"));
    let lost = lost.and_then(|line| line.split(' ').rev().nth(7)?.parse::<usize>().ok());
    assert_eq!(written + lost.expect("it is said"), 500, "{finished:?}");
}

#[test]
fn unread_log_pipe_does_not_block() {
    let directory = tempfile::tempdir().expect("a directory");
    fills_a_pipe(&directory, |_| {});
    // A pipe without a reader is an error, and does not block.
    let path = directory.path().join("onrush.toml");
    let refused = Program::start(&mut onrush(&[
        "serve",
        "--config",
        &path.display().to_string(),
    ]))
    .finish();
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.err.contains("cannot write the access log"),
        "{refused:?}"
    );
}

#[test]
fn log_of_previous_configuration_is_flushed() {
    let directory = tempfile::tempdir().expect("a directory");
    fills_a_pipe(&directory, |serve| {
        let text = text("access = \"access.log\"", &responding());
        fs::write(directory.path().join("onrush.toml"), text).expect("it is ours");
        serve.program.signal(Signal::HUP);
        serve.program.err.wait_for("as generation 2");
    });
}

#[test]
fn access_log_is_written_to_stdout() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = "access = \"stdout\", format = \"line: {method} {status}\"";
    let serve = start(&directory, log, &responding(), &[]);
    let mut rest = serve.connect();
    rest.send(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    let mut all = String::new();
    rest.0.read_to_string(&mut all).expect("a response");
    serve.program.out.wait_for("line: GET 200\n");
    serve.stop();
}
