//! SIGHUP: the configuration is read again, and applied if all of it is valid.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::application::{Application, echo_frame, open_websocket};
use crate::program::{Serve, drivers, until};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";

struct Reloaded {
    serve: Serve,
    path: PathBuf,
    _directory: TempDir,
}

impl Reloaded {
    fn start(io: &str, text: &str) -> Reloaded {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("onrush.toml");
        fs::write(&path, text).expect("it is ours");
        let serve = Serve::start(&["--config", &path.display().to_string(), "--io", io]);
        Reloaded {
            serve,
            path,
            _directory: directory,
        }
    }

    /// Writes `text`, reloads, and returns the log once it contains `words`.
    fn reload(&self, text: &str, words: &str) -> String {
        fs::write(&self.path, text).expect("it is ours");
        self.serve.program.signal(Signal::HUP);
        self.serve.program.err.wait_for(words)
    }
}

fn responding(body: &str) -> String {
    format!(
        "threads = 2\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nrespond = {{ status = 200, body = \"{body}\" }}\n"
    )
}

/// Resident memory of a process in KiB (VmRSS of proc_pid_status(5)).
fn resident(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it is running");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let digits = line.and_then(|line| line.trim().strip_suffix(" kB"));
    digits.expect("a number").parse().expect("a number")
}

#[test]
#[ignore = "slow: make test-all"]
fn memory_of_old_configurations_is_freed() {
    for io in drivers() {
        let route = |number| {
            let group = format!(
                "forward = \"g{number}\"\n[upstream.g{number}]\nservers = [\"127.0.0.1:9\"]\n"
            );
            let fixed = "respond = { status = 204 }\n".to_owned();
            let what = if number < 2000 { group } else { fixed };
            format!("[[route]]\npath = \"/{number}/\"\n{what}")
        };
        let text = (0..9000).map(route).collect::<String>();
        let server = Reloaded::start(io, &format!("{}{text}", responding("one")));
        let process = server.serve.program.pid();
        let first = resident(process);
        for generation in 2..8 {
            let body = generation.to_string();
            let in_force = format!("as generation {generation}");
            server.reload(&format!("{}{text}", responding(&body)), &in_force);
            // An earlier configuration that stays in memory would add half as much again.
            until("memory that is returned", || {
                (resident(process) * 4 <= first * 5).then_some(())
            });
            assert_eq!(server.serve.body(), body);
        }
        server.serve.stop();
    }
}

#[test]
fn reload_serves_new_file_and_keeps_connections() {
    for io in drivers() {
        let server = Reloaded::start(io, &responding("one"));
        let mut kept = server.serve.connect();
        kept.send(GET);
        assert!(kept.receive().expect("a response").ends_with("\r\n\r\none"));
        let said = server.reload(&responding("two"), "as generation 2");
        assert!(
            said.contains("onrush.toml is in force as generation 2: 1 change"),
            "{said}"
        );
        server
            .serve
            .program
            .err
            .wait_for("route[1].respond.body: \"one\" -> \"two\"");
        kept.send(GET);
        let response = kept.receive().expect("a response");
        assert!(response.ends_with("\r\n\r\ntwo"), "{response}");
        assert!(!response.contains("Connection: close"), "{response}");
        assert_eq!(server.serve.body(), "two");
        let said = server.reload(&responding("two"), "as generation 3");
        assert!(said.contains("no changes in the file"), "{said}");
        drop(kept);
        assert_eq!(server.serve.stop().requests(), 3);
    }
}

#[test]
fn invalid_reload_changes_nothing() {
    let server = Reloaded::start("auto", &responding("one"));
    for (text, words) in [
        (
            "[[route]]\nforwrad = \"x\"\n".to_owned(),
            "onrush.toml:2:1: unknown key \"forwrad\"",
        ),
        (
            responding("two").replace("threads = 2", "threads = 3"),
            "threads cannot change while the server runs",
        ),
        (
            responding("two") + "[[listen]]\naddress = \"192.0.2.1:80\"\n",
            "cannot listen on 192.0.2.1:80: this machine does not have that address",
        ),
        (
            "[[route]]\nfiles = { root = \"/nowhere/at/all\" }\n".to_owned(),
            "onrush.toml:2:18: cannot serve the directory /nowhere/at/all",
        ),
    ] {
        let said = server.reload(&text, words);
        assert!(
            said.contains("was rejected, generation 1 stays in force: "),
            "{said}"
        );
        assert_eq!(server.serve.body(), "one");
    }
    fs::remove_file(&server.path).expect("it is there");
    server.serve.program.signal(Signal::HUP);
    server
        .serve
        .program
        .err
        .wait_for("cannot read the configuration");
    assert_eq!(server.serve.body(), "one");
    server.reload(&responding("two"), "as generation 2");
    assert_eq!(server.serve.body(), "two");
}

#[test]
fn reload_without_file_does_nothing() {
    let serve = Serve::start(&["--respond", "200:hello"]);
    serve.program.signal(Signal::HUP);
    serve
        .program
        .err
        .wait_for("was started without --config FILE");
    let mut client = serve.connect();
    client.send(GET);
    assert!(client.receive().expect("a response").ends_with("hello"));
}

#[test]
fn flags_override_reloaded_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("onrush.toml");
    fs::write(&path, responding("one")).expect("it is ours");
    let words = [
        "--config",
        &path.display().to_string(),
        "--listen",
        "127.0.0.1:0",
    ];
    let serve = Serve::start(&words);
    let moved = responding("two").replace("127.0.0.1:0", "127.0.0.1:1");
    fs::write(&path, moved).expect("it is ours");
    serve.program.signal(Signal::HUP);
    let said = serve.program.err.wait_for("as generation 2");
    assert!(!said.contains("listening"), "{said}");
    let mut client = serve.connect();
    client.send(GET);
    assert!(client.receive().expect("a response").ends_with("two"));
}

#[test]
fn reload_keeps_tunnels_and_changes_addresses() {
    let application = Application::start("chat");
    for io in drivers() {
        let forwarding = |more: &str| {
            format!(
                "[[listen]]\naddress = \"127.0.0.1:0\"\n{more}[[route]]\nforward = \"http://{}\"\n",
                application.address
            )
        };
        let server = Reloaded::start(io, &forwarding(""));
        let mut tunnels: Vec<_> = (0..20).map(|_| server.serve.connect()).collect();
        for tunnel in &mut tunnels {
            open_websocket(tunnel, "/chat");
            echo_frame(tunnel);
        }
        let more = "[[listen]]\naddress = \"127.0.0.2:0\"\n";
        let said = server.reload(&forwarding(more), "listening on 127.0.0.2:");
        assert!(said.contains("listen[2]: added"), "{said}");
        server
            .serve
            .program
            .err
            .wait_for("requests in flight keep their configuration: generation 1");
        server.reload(&forwarding(""), "no longer listening on 127.0.0.2:");
        for tunnel in &mut tunnels {
            echo_frame(tunnel);
        }
        drop(tunnels);
        assert_eq!(server.serve.stop().number_before(" tunnels"), 20);
    }
}

#[test]
fn reloads_under_load_lose_no_request() {
    const RELOADS: usize = 30;
    for io in drivers() {
        let server = Reloaded::start(io, &responding("1"));
        let ends = AtomicBool::new(false);
        let asked: u64 = thread::scope(|scope| {
            let client = || {
                let (mut client, mut asked) = (server.serve.connect(), 0);
                while !ends.load(Ordering::Relaxed) {
                    client.send(GET);
                    let response = client.receive().expect("a response");
                    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
                    asked += 1;
                }
                asked
            };
            let clients = [(); 8].map(|()| scope.spawn(client));
            for number in 2..=RELOADS {
                let text = responding(&number.to_string());
                server.reload(&text, &format!("as generation {number}:"));
                assert_eq!(server.serve.body(), number.to_string());
            }
            ends.store(true, Ordering::Relaxed);
            let asked = clients.map(|client| client.join().expect("no request is lost"));
            asked.into_iter().sum()
        });
        let totals = server.serve.stop();
        assert_eq!(totals.requests(), asked + RELOADS as u64 - 1, "{totals:?}");
    }
}

#[test]
fn watched_file_is_reloaded() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("onrush.toml");
    let users = directory.path().join("users");
    // The password is "secret"; bcrypt with the lowest cost.
    let login = "a:$2y$04$DKqDbgWWCsxpXwzvYvZdZ.RUOrz4jHTcsvLsOa0O7dyGEVAJiYQ8W\n";
    fs::write(&users, login).expect("it is ours");
    let guarded = |body: &str| format!("{}basic_auth = {{ file = \"users\" }}\n", responding(body));
    fs::write(&path, responding("one")).expect("it is ours");
    let serve = Serve::start(&["--config", &path.display().to_string(), "--watch"]);
    // Replaced atomically, as editors do.
    let next = directory.path().join("next");
    fs::write(&next, guarded("two")).expect("it is ours");
    fs::rename(&next, &path).expect("it is ours");
    serve.program.err.wait_for("as generation 2: 2 changes");
    // A mistake is reported once, and the file is still watched.
    fs::write(&path, "threads = zero").expect("it is ours");
    serve
        .program
        .err
        .wait_for("was rejected, generation 2 stays in force");
    fs::write(&path, guarded("three")).expect("it is ours");
    serve.program.err.wait_for("as generation 3: 1 change");
    fs::write(&users, login.replace("a:", "b:")).expect("it is ours");
    let said = serve
        .program
        .err
        .wait_for("as generation 4: no changes in the file");
    assert_eq!(
        said.matches("was rejected, generation").count(),
        1,
        "{said}"
    );
    let mut client = serve.connect();
    client.send(GET);
    let response = client.receive().expect("a response");
    assert!(response.starts_with("HTTP/1.1 401 "), "{response}");
}

/// Anonymous memory in KiB (RssAnon of proc_pid_status(5)).
fn memory(serve: &Serve) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", serve.program.pid()));
    let status = status.expect("it is running");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let digits = line.and_then(|line| line.split_whitespace().next());
    digits
        .and_then(|digits| digits.parse().ok())
        .expect("a number")
}

#[test]
fn reloads_leak_nothing() {
    const RELOADS: usize = 300;
    for io in drivers() {
        let text = |number: usize| {
            let more =
                "[[listen]]\naddress = \"127.0.0.3:0\"\ntls = \"self-signed\"\n".repeat(number % 2);
            let group = "[[route]]\nforward = \"app\"\n[upstream.app]\nservers = [\"127.0.0.1:1\"]\nhealth = { tcp = true }\n";
            format!("{}{more}{group}", responding(&number.to_string()))
        };
        let server = Reloaded::start(io, &text(1));
        let mut before = (0, 0);
        for number in 2..=RELOADS {
            server.reload(&text(number), &format!("as generation {number}:"));
            if number == 20 {
                before = (memory(&server.serve), server.serve.descriptors());
            }
        }
        let after = (memory(&server.serve), server.serve.descriptors());
        assert!(after.0 < before.0 + 1024, "{io}: {before:?} and {after:?}");
        // The last configuration has one address less; listeners of earlier ones may still be closing.
        assert!(after.1 <= before.1 + 10, "{io}: {before:?} and {after:?}");
    }
}
