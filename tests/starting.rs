//! The start: its output, and that failures give one clear line, the right exit code and nothing else.

use std::fs;
use std::net::TcpListener;
use std::process::Command;

use rustix::process::Signal;

use crate::program::{Finished, Program, Serve, Totals, drivers, onrush, run_onrush};

/// Runs `onrush serve` with these arguments, which must fail; returns its line on standard error.
fn refused(arguments: &[&str]) -> String {
    said_refusing(run_onrush(&[&["serve"], arguments].concat()))
}

fn said_refusing(finished: Finished) -> String {
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert_eq!(finished.out, "", "nothing on a half start");
    assert_eq!(
        finished.err.lines().count(),
        1,
        "one sentence: {finished:?}"
    );
    finished.err
}

#[test]
fn start_up_lines_describe_server() {
    let serve = Serve::start(&["--respond", "200:hello", "--threads", "1", "--io", "epoll"]);
    let lines: Vec<&str> = serve.start_up_lines.lines().collect();
    assert_eq!(lines[0], "onrush serves status 200 with 5 bytes");
    assert_eq!(lines[1], format!("  listening on {}", serve.address));
    assert!(!serve.address.ends_with(":0"), "the port that was chosen");
    assert!(lines[2].starts_with("  1 core, "), "{lines:?}");
    assert_eq!(lines[3], "  driver epoll (as asked)");
    let serve = Serve::start(&["--synthetic", "--cpus", "0", "--threads", "2"]);
    assert!(
        serve
            .start_up_lines
            .starts_with("onrush serves synthetic responses\n"),
        "{}",
        serve.start_up_lines
    );
    assert!(
        serve.start_up_lines.contains("\n  2 cores, on CPU 0,0\n"),
        "{}",
        serve.start_up_lines
    );
    // The driver and the reason in parentheses.
    assert!(
        serve.start_up_lines.contains(" (auto"),
        "{}",
        serve.start_up_lines
    );
    let serve = Serve::start(&[
        "--forward",
        "http://127.0.0.1:9",
        "--forward",
        "127.0.0.1:19",
    ]);
    let first = serve.start_up_lines.lines().next();
    assert_eq!(
        first,
        Some("onrush serves the responses of 127.0.0.1:9, 127.0.0.1:19")
    );
}

#[test]
fn start_up_lines_describe_accept_mode() {
    let said = |arguments: &[&str]| {
        let serve = Serve::start(&[&["--respond", "200"], arguments].concat());
        let mut lines = serve.start_up_lines.lines();
        let line = lines.find(|line| line.starts_with("  connections to cores "));
        line.map(str::to_owned)
    };
    // With one core, or on a Unix socket, there is nothing to choose.
    assert_eq!(said(&["--threads", "1", "--accept", "hash"]), None);
    let shared = "  connections to cores by hash (auto: cores share CPU 0)";
    let two = ["--cpus", "0", "--threads", "2"];
    assert_eq!(said(&two).as_deref(), Some(shared));
    let asked = "  connections to cores by hash (as asked)";
    let hash = said(&[&two[..], &["--accept", "hash"]].concat());
    assert_eq!(hash.as_deref(), Some(asked));
    let refused = refused(&[&["--respond", "200", "--accept", "cpu"], &two[..]].concat());
    assert!(
        refused.contains("cannot distribute connections by CPU (accept = \"cpu\"): cores share CPU 0; 2 threads need 2 CPUs"),
        "{refused}"
    );
    // One core on each CPU that this process may use.
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1) {
        let asked = "  connections to cores by CPU (as asked)";
        assert_eq!(said(&["--accept", "cpu"]).as_deref(), Some(asked));
        let auto = said(&[]).expect("there are several cores");
        // By hash if this process may use only some of the CPUs.
        let expected = [
            "  connections to cores by CPU (auto: one core per CPU that receives packets)",
            "  connections to cores by hash (auto: CPU ",
        ];
        let is_one = expected.iter().any(|part| auto.starts_with(part));
        assert!(is_one, "{auto}");
    }
}

#[test]
fn address_in_use_is_refused() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("bound").to_string();
    let said = refused(&["--respond", "200", "--listen", &address]);
    assert!(
        said.contains(&format!(
            "cannot listen on {address}: another program uses it"
        )),
        "{said}"
    );
    // Also when the other program is an onrush, which shares its port among its own cores.
    let serve = Serve::start(&["--respond", "200"]);
    let said = refused(&["--respond", "200", "--listen", &serve.address]);
    assert!(said.contains("another program uses it"), "{said}");
}

#[test]
fn failed_start_leaves_no_socket() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("bound").to_string();
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("socket");
    let unix = format!("unix:{}", socket.display());
    refused(&["--respond", "200", "--listen", &unix, "--listen", &address]);
    assert!(!socket.exists());
}

#[test]
fn unix_socket_of_killed_server_is_reused() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("socket");
    let unix = format!("unix:{}", socket.display());
    let arguments = ["--respond", "200", "--listen", &unix];
    let first = Serve::start(&arguments);
    assert!(refused(&arguments).contains("another program uses it"));
    // Killed, so that the file stays.
    drop(first);
    assert!(socket.exists());
    Serve::start(&arguments).stop();
    assert!(!socket.exists());
    fs::write(&socket, "a file of somebody").expect("it is ours");
    assert!(refused(&arguments).contains("a file that is not a socket"));
    assert_eq!(
        fs::read(&socket).expect("it is still there"),
        b"a file of somebody"
    );
}

#[test]
fn killed_server_restarts_at_once() {
    for io in drivers() {
        let first = Serve::start(&["--respond", "200:hello", "--io", io]);
        let address = first.address.clone();
        let mut client = first.connect();
        client.send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        assert!(client.receive().is_some());
        drop(first);
        Serve::start(&["--respond", "200:hello", "--io", io, "--listen", &address]);
    }
}

#[test]
fn invalid_content_arguments_are_refused() {
    for (arguments, part) in [
        (
            &["/nonexistent"][..],
            "the directory /nonexistent: it does not exist",
        ),
        (&["/etc/passwd"], "the directory /etc/passwd: it is a file"),
        (&["--forward", "http://h:80/path"], "has a path"),
        (&["--forward", "ftp://h"], "unknown scheme"),
        (
            &[
                "--forward",
                "127.0.0.1:9",
                "--forward",
                "http://127.0.0.1:9",
            ],
            "given twice",
        ),
        (&["--respond", "99"], "expected 200 to 599"),
        (&["--respond", "204:body"], "has no body"),
        (
            &["--respond", "200", "--listen", "somewhere"],
            "not an address to listen on",
        ),
        (
            &["--respond", "200", "--listen", "192.0.2.1:0"],
            "does not have that address",
        ),
        (
            &["--respond", "200", "--listen", "unix:/nonexistent/a"],
            "directory of the socket",
        ),
        (
            &["--respond", "200", "--threads", "0"],
            "expected auto, or 1 to 1024",
        ),
        (
            &["--respond", "200", "--threads", "many"],
            "expected auto, or 1 to 1024",
        ),
        (
            &["--respond", "200", "--cpus", "1000"],
            "this machine has no CPU 1000",
        ),
        (&["--respond", "200", "--cpus", "a"], "not a list of CPUs"),
        (
            &["--config", "/nonexistent.toml"],
            "cannot read the configuration /nonexistent.toml",
        ),
        (&[], "nothing to serve"),
    ] {
        // On a free port unless set otherwise: none of these may get as far as binding.
        let said = refused(arguments);
        assert!(said.starts_with("onrush serve: "), "{said}");
        assert!(said.contains(part), "{arguments:?}: {said}");
    }
}

#[test]
fn unknown_flags_are_usage_errors() {
    for (arguments, part) in [
        (&["serve", "--forwrad", "x"][..], "--forward"),
        (
            &["serve", "--respond", "200", "--synthetic"],
            "cannot be used with",
        ),
        (
            &["serve", "--respond", "200", "directory"],
            "cannot be used with",
        ),
        (
            &["serve", "--io", "kqueue", "--synthetic"],
            "epoll, io_uring",
        ),
        (&["sevre"], "serve"),
        (&["serve", "--listen"], "--listen <ADDR>"),
    ] {
        let finished = run_onrush(arguments);
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert_eq!(finished.out, "", "{finished:?}");
        assert!(finished.err.contains(part), "{arguments:?}: {finished:?}");
    }
}

#[test]
fn help_and_version_exit_0() {
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["serve", "--help"],
        &["load", "--help"],
        &["bench", "--help"],
        &["help", "serve"],
    ] {
        let finished = run_onrush(arguments);
        assert_eq!(
            (finished.code, finished.err.as_str()),
            (Some(0), ""),
            "{arguments:?}"
        );
        assert!(!finished.out.is_empty());
    }
}

#[test]
fn configuration_errors_have_position() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("onrush.toml");
    let path_text = path.display().to_string();
    for (text, place, part) in [
        (
            "[[route]]\nrespnd = { status = 200 }\n",
            "2:1",
            "nearest: \"respond\"",
        ),
        (
            "[[route]]\nrespond = { status = 99 }\n",
            "2:22",
            "expected 200 to 599",
        ),
        (
            "threads = 0\n[[route]]\nrespond = { status = 200 }\n",
            "1:11",
            "1 to 1024",
        ),
        ("[[route]]\nforward = \"nowhere\"\n", "2:11", "nowhere"),
        ("[[route]\n", "1:9", "not TOML"),
        (
            "[timeouts]\nconnect = \"fast\"\n[[route]]\nsynthetic = true\n",
            "2:11",
            "duration",
        ),
    ] {
        fs::write(&path, text).expect("it is ours");
        let finished = run_onrush(&["serve", "--config", &path_text]);
        assert_eq!(
            (finished.code, finished.out.as_str()),
            (Some(1), ""),
            "{finished:?}"
        );
        let place = format!("{path_text}:{place}: ");
        assert!(finished.err.contains(&place), "{place} in {finished:?}");
        assert!(finished.err.contains(part), "{finished:?}");
    }
}

#[test]
fn configured_files_are_checked_at_start() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("onrush.toml");
    let place = directory.path().display().to_string();
    let text = "[[route]]\npath = \"/a/\"\nfiles = { root = \"nowhere\" }\n\
        [[route]]\nbasic_auth = { file = \"htpasswd\" }\nsynthetic = true\n";
    fs::write(&path, text).expect("it is ours");
    let path = path.display().to_string();
    let users = directory.path().join("htpasswd");
    fs::write(&users, "# staff\nali:open sesame\n").expect("it is ours");
    let run = |arguments: &[&str]| run_onrush(arguments);
    for finished in [run(&["check", &path]), run(&["serve", "--config", &path])] {
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert_eq!(finished.out, "", "{finished:?}");
        let missing =
            format!("{path}:3:18: cannot serve the directory {place}/nowhere: it does not exist");
        assert!(finished.err.contains(&missing), "{finished:?}");
        let malformed =
            format!("{path}:5:23: {place}/htpasswd:2: ali: this is not a password hash");
        assert!(finished.err.contains(&malformed), "{finished:?}");
        assert!(!finished.err.contains("sesame"), "{finished:?}");
    }
    fs::create_dir(directory.path().join("nowhere")).expect("it is ours");
    let hash = "$5$rounds=1000$0123456789abcdef$hMqyugAVjDQo776SPDVVKvzB/HICJXIdagCAitBHeU8";
    fs::write(&users, format!("ali:{hash}\n")).expect("it is ours");
    let finished = run(&["check", &path]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
}

/// A directory with valid and invalid certificates, and their keys.
fn certificates() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        fs::write(directory.path().join(name), text).expect("it is ours");
    };
    for (name, last_year) in [("good", 2200), ("other", 2200), ("old", 1999)] {
        let key = rcgen::KeyPair::generate().expect("a key");
        let mut params =
            rcgen::CertificateParams::new(["localhost".to_owned()]).expect("it is a name");
        params.not_before = rcgen::date_time_ymd(1998, 1, 1);
        params.not_after = rcgen::date_time_ymd(last_year, 1, 1);
        let certificate = params.self_signed(&key).expect("its own key");
        write(&format!("{name}.pem"), &certificate.pem());
        write(&format!("{name}.key"), &key.serialize_pem());
    }
    write("empty.pem", "");
    write("htpasswd", "ali:open sesame\n");
    directory
}

#[test]
fn certificate_errors_have_position() {
    let directory = certificates();
    let path = directory.path().join("onrush.toml");
    let path_text = path.display().to_string();
    let shown = |pair: &str| format!("[[listen]]\naddress = \"127.0.0.1:0\"\ntls = {{ {pair} }}");
    let to_server = |keys: &str| {
        format!(
            "[[route]]\nforward = \"a\"\n[upstream.a]\nservers = [\"127.0.0.1:1\"]\ntls = {{ {keys} }}"
        )
    };
    let pair = |certificate: &str, key: &str| {
        format!("certificate = \"{certificate}.pem\", key = \"{key}.key\"")
    };
    let asking = |file: &str| shown(&format!("{}, client_ca = \"{file}\"", pair("good", "good")));
    let several = "certificates = [\n{ certificate = \"good.pem\", key = \"good.key\" },\n{ certificate = \"other.pem\", key = \"old.key\" }]";
    for (text, place, part) in [
        (
            shown(&pair("good", "other")),
            "3:41",
            "this key does not belong to the certificate",
        ),
        (
            shown(&pair("none", "good")),
            "3:23",
            "none.pem: it cannot be read",
        ),
        (
            shown(&pair("good", "none")),
            "3:41",
            "none.key: it cannot be read",
        ),
        (
            shown(&pair("empty", "good")),
            "3:23",
            "it contains no certificate",
        ),
        (shown(several), "5:36", "old.key: this key does not belong"),
        (asking("none.pem"), "3:65", "none.pem: it cannot be read"),
        (
            asking("good.key"),
            "3:65",
            "it holds a private key: expected PEM with -----BEGIN CERTIFICATE-----",
        ),
        (
            to_server("ca = \"empty.pem\""),
            "5:14",
            "it contains no certificate",
        ),
        (
            to_server(&pair("none", "good")),
            "5:23",
            "none.pem: it cannot be read",
        ),
        (
            to_server(&pair("good", "other")),
            "5:41",
            "this key does not belong to the certificate",
        ),
    ] {
        let text = format!("{text}\n[[route]]\npath = \"=/last\"\nsynthetic = true\n");
        fs::write(&path, &text).expect("it is ours");
        let place = format!("the configuration cannot be used\n{path_text}:{place}: ");
        for verb in [&["check"][..], &["serve", "--config"]] {
            let finished = run_onrush(&[verb, &[&path_text]].concat());
            assert_eq!(
                (finished.code, finished.out.as_str()),
                (Some(1), ""),
                "{finished:?}"
            );
            assert!(finished.err.contains(&place), "{place} in {finished:?}");
            assert!(finished.err.contains(part), "{finished:?}");
        }
    }
}

#[test]
fn all_certificate_errors_are_reported() {
    let directory = certificates();
    let path = directory.path().join("onrush.toml");
    let pair = |name: &str| format!("certificate = \"{name}.pem\", key = \"{name}.key\"");
    let (none, gone) = (pair("none"), pair("gone"));
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = {{ {none} }}\n[[route]]\nforward = \"a\"\n\
        [upstream.a]\nservers = [\"127.0.0.1:1\"]\ntls = {{ ca = \"empty.pem\", {gone} }}\n"
    );
    fs::write(&path, text).expect("it is ours");
    let path = path.display().to_string();
    let finished = run_onrush(&["check", &path]);
    let lines = finished.err.lines();
    let places: Vec<&str> = lines
        .filter_map(|line| line.strip_prefix(&format!("{path}:")))
        .map(|line| line.split(": ").next().expect("split gives one"))
        .collect();
    assert_eq!(
        places,
        ["3:23", "3:41", "8:14", "8:41", "8:59"],
        "{finished:?}"
    );
}

#[test]
fn expired_certificate_is_a_warning() {
    let directory = certificates();
    let path = directory.path().join("onrush.toml");
    let text = "[[listen]]\naddress = \"127.0.0.1:0\"\n\
        tls = { certificate = \"old.pem\", key = \"old.key\" }\n[[route]]\nsynthetic = true\n";
    fs::write(&path, text).expect("it is ours");
    let path = path.display().to_string();
    let place = format!("{path}:3:23: warning: ");
    let sentence = "old.pem: the certificate has expired";
    let checked = run_onrush(&["check", &path]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let serve = Serve::start(&["--config", &path]);
    serve.program.signal(rustix::process::Signal::TERM);
    for said in [checked.err, serve.program.finish().err] {
        assert!(said.contains(&place) && said.contains(sentence), "{said}");
    }
}

#[test]
fn flag_errors_have_no_position() {
    let directory = certificates();
    let path = directory.path().join("onrush.toml");
    fs::write(
        &path,
        "[[route]]\nbasic_auth = { file = \"htpasswd\" }\nsynthetic = true\n",
    )
    .expect("it is ours");
    let path = path.display().to_string();
    let pem = directory.path().join("empty.pem").display().to_string();
    let flags = ["--listen", "127.0.0.1:0", "--tls", &format!("{pem},{pem}")];
    let refused = run_onrush(&[&["serve", "--config", &path], &flags[..]].concat());
    assert_eq!(
        (refused.code, refused.out.as_str()),
        (Some(1), ""),
        "{refused:?}"
    );
    let lines: Vec<&str> = refused.err.lines().collect();
    for (line, beginning) in lines[1..].iter().zip([
        format!("{pem}: it contains no certificate"),
        format!("{pem}: it contains no private key"),
        format!("{path}:2:23: "),
    ]) {
        assert!(line.starts_with(&beginning), "{refused:?}");
    }
}

#[test]
fn low_descriptor_limit_is_raised_or_refused() {
    let under = |limit: &str, arguments: &[&str]| {
        let mut command = Command::new("prlimit");
        command.arg(format!("--nofile={limit}"));
        command.arg(env!("CARGO_BIN_EXE_onrush")).args(arguments);
        Program::start(&mut command)
    };
    let arguments = [
        "serve",
        "--respond",
        "200:hello",
        "--listen",
        "127.0.0.1:0",
        "--threads",
        "4",
    ];
    let said = said_refusing(under("16:16", &arguments).finish());
    assert!(said.contains("too few file descriptors"), "{said}");
    assert!(said.contains("ulimit -n") && said.contains("16"), "{said}");
    // A low soft limit is not a failure: it is raised to the hard limit.
    let serve = Serve::wait_until_listening(under("16:1000", &arguments));
    let mut clients: Vec<_> = (0..100).map(|_| serve.connect()).collect();
    for client in &mut clients {
        client.send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        assert!(
            client
                .receive()
                .is_some_and(|response| response.ends_with("\r\n\r\nhello"))
        );
    }
}

/// `onrush serve` with a limit of 64 open files.
fn serve_within_64_files(arguments: &[&str]) -> Serve {
    let mut command = Command::new("prlimit");
    command.args(["--nofile=64:64", env!("CARGO_BIN_EXE_onrush"), "serve"]);
    command.args(["--listen", "127.0.0.1:0", "--threads", "2"]);
    Serve::wait_until_listening(Program::start(command.args(arguments)))
}

const ASK: &[u8] = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";

#[test]
fn few_descriptors_serve_many_clients() {
    for io in drivers() {
        let server = Serve::start(&["--respond", "200:hello"]);
        let proxy = serve_within_64_files(&["--forward", &server.url("/"), "--io", io]);
        proxy
            .program
            .out
            .wait_for("clients at a time (64 open files)");
        let ask = |_| {
            let mut client = proxy.connect();
            client.send(ASK);
            client
        };
        let mut clients: Vec<_> = (0..200).map(ask).collect();
        // All clients stay until all have been served.
        for client in &mut clients {
            let response = client.receive().expect("a response");
            assert!(
                response.starts_with("HTTP/1.1 200 OK\r\n"),
                "{io}: {response}"
            );
        }
        drop(clients);
        proxy.program.signal(Signal::TERM);
        let finished = proxy.program.finish();
        let told = finished.err.matches("accepting is paused").count();
        assert_eq!(told, 1, "{finished:?}");
        assert!(
            !finished.err.contains("too many open files"),
            "{finished:?}"
        );
        assert_eq!(Totals::wait_until_listening(&finished).requests(), 200);
    }
}

#[test]
fn idle_clients_are_closed_at_descriptor_limit() {
    for io in drivers() {
        let serve = serve_within_64_files(&["--respond", "200:hello", "--io", io]);
        let mut clients: Vec<_> = (0..100).map(|_| serve.connect()).collect();
        // The first ones use up all connections and send nothing.
        let last = clients.last_mut().expect("a hundred");
        last.send(ASK);
        let response = last.receive().expect("a response");
        assert!(
            response.starts_with("HTTP/1.1 200 OK\r\n"),
            "{io}: {response}"
        );
        drop(clients);
        serve.program.err.wait_for("clients are accepted again");
        serve.stop();
    }
}

#[test]
fn server_recovers_from_descriptor_exhaustion() {
    for io in drivers() {
        let mut command = Command::new("prlimit");
        command.args(["--nofile=40:40", env!("CARGO_BIN_EXE_onrush")]);
        command.args(["serve", "--respond", "200:hello", "--listen", "127.0.0.1:0"]);
        command.args(["--threads", "1", "--io", io]);
        let serve = Serve::wait_until_listening(Program::start(&mut command));
        let clients: Vec<_> = (0..60).map(|_| serve.connect()).collect();
        let said = serve.program.err.wait_for("raise the limit on open files");
        assert!(said.contains("accept"), "{said}");
        drop(clients);
        let mut client = serve.connect();
        client.send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        assert!(
            client
                .receive()
                .is_some_and(|response| response.ends_with("\r\n\r\nhello")),
            "{io}"
        );
        drop(client);
        serve.stop();
    }
}

#[test]
fn server_runs_with_closed_stdout() {
    let mut command = onrush(&[
        "serve",
        "--forward",
        "127.0.0.1:9",
        "--listen",
        "127.0.0.1:0",
    ]);
    let mut child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    // Like `| head -2`: after the address nothing reads either stream any more.
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    lines.next();
    let address = lines.next().expect("a second line").expect("of text");
    let address = address.trim_start_matches("  listening on ").to_owned();
    drop(lines);
    drop(child.stderr.take());
    for _ in 0..3 {
        // Each failure writes a line to the log, which is closed.
        let response = crate::peer::curl(&["-i", &format!("http://{address}/")]).out;
        assert!(response.starts_with("HTTP/1.1 502 "), "{response}");
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it is ours");
    let status = crate::program::until("its end", || child.try_wait().expect("it is ours"));
    assert_eq!(status.code(), Some(0));
}

#[test]
fn server_with_full_output_exits() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("socket");
    let (_reader, output) = std::io::pipe().expect("a pipe");
    rustix::fs::fcntl_setfl(&output, rustix::fs::OFlags::NONBLOCK).expect("a flag");
    while rustix::io::write(&output, &[b'x'; 4096]).is_ok() {}
    rustix::fs::fcntl_setfl(&output, rustix::fs::OFlags::empty()).expect("a flag");
    let listen = format!("unix:{}", socket.display());
    let mut command = onrush(&["serve", "--respond", "200", "--listen", &listen]);
    let mut child = command.stdout(output).spawn().expect("it starts");
    crate::program::until("a connection", || {
        std::os::unix::net::UnixStream::connect(&socket).ok()
    });
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it is ours");
    let status = crate::program::until("its end", || child.try_wait().expect("it is ours"));
    assert_eq!(status.code(), Some(0));
}

#[test]
fn requested_driver_is_used() {
    for io in drivers() {
        let serve = Serve::start(&["--respond", "200:hello", "--io", io]);
        assert!(
            serve
                .start_up_lines
                .contains(&format!("\n  driver {io} (as asked)\n"))
        );
    }
}
