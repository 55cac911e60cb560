//! SIGUSR2: the program is started again and replaces the running process.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use crate::application::{Application, echo_frame, open_websocket};
use crate::program::{Client, Program, Serve, TIMEOUT, drivers, until};

const BINARY: &str = env!("CARGO_BIN_EXE_onrush");
/// A program that ignores its arguments and does nothing.
const SLEEPER: &str = "sleeper";

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// The successor of a process, ended on drop.
pub(crate) struct Successor(pub(crate) Pid);

impl Successor {
    /// Waits until the log reports this many upgrades, and returns the last successor.
    pub(crate) fn of(serve: &Serve, count: usize) -> Successor {
        let said = until("an upgrade", || {
            let said = serve.program.err.wait_for("SIGUSR2");
            (said.matches(" serves now, finishing").count() == count).then_some(said)
        });
        let line = said
            .lines()
            .rfind(|line| line.contains(" serves now, finishing"));
        let words = line.expect("it was there").split("process ").nth(1);
        let number = words.and_then(|words| words.split(' ').next());
        let number = number
            .and_then(|number| number.parse().ok())
            .expect("a number");
        Successor(Pid::from_raw(number).expect("not zero"))
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.0, signal).expect("it is ours");
    }
}

impl Drop for Successor {
    fn drop(&mut self) {
        // It is not our child: init waits for it, if there is one.
        let _ = kill_process(self.0, Signal::TERM);
        let stat = format!("/proc/{}/stat", self.0.as_raw_nonzero());
        until("the end of the next process", || {
            let stat = fs::read_to_string(&stat).unwrap_or_default();
            let state = stat
                .rsplit_once(") ")
                .map(|(_, state)| state.starts_with('Z'));
            state.unwrap_or(true).then_some(())
        });
    }
}

#[test]
fn upgrade_reads_current_includes() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("onrush.toml");
    let first = "include = \"sites/*.toml\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nrespond = { status = 200, body = \"last\" }\n";
    fs::write(&path, first).expect("it is ours");
    let serve = Serve::start(&["--config", &path.display().to_string()]);
    assert_eq!(serve.body(), "last");
    let sites = directory.path().join("sites");
    fs::create_dir(&sites).expect("it is ours");
    let site = "[[route]]\npath = \"/\"\nrespond = { status = 200, body = \"included\" }\n";
    fs::write(sites.join("a.toml"), site).expect("it is ours");
    serve.program.signal(Signal::USR2);
    let _next = Successor::of(&serve, 1);
    serve.program.out.wait_for("served ");
    assert_eq!(serve.body(), "included");
}

#[test]
fn upgrade_serves_current_file() {
    for io in drivers() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("onrush.toml");
        let socket = directory.path().join("socket");
        let text = |body: &str| {
            format!(
                "[[listen]]\naddress = \"127.0.0.1:0\"\n[[listen]]\naddress = \"unix:{}\"\n[[route]]\nrespond = {{ status = 200, body = \"{body}\" }}\n",
                socket.display()
            )
        };
        fs::write(&path, text("one")).expect("it is ours");
        let serve = Serve::start(&["--config", &path.display().to_string(), "--io", io]);
        let mut kept = serve.connect();
        kept.send(GET);
        assert!(kept.receive().expect("a response").ends_with("\r\n\r\none"));
        fs::write(&path, text("two")).expect("it is ours");
        serve.program.signal(Signal::USR2);
        let next = Successor::of(&serve, 1);
        // Clients of the old process learn of its end by a response or by an orderly close.
        until("the end of the connection", || {
            kept.0.write_all(GET).ok();
            let response = kept.receive();
            response
                .is_none_or(|response| response.contains("\r\nConnection: close\r\n"))
                .then_some(())
        });
        until("the end of the last process", || {
            serve
                .program
                .out
                .wait_for("served ")
                .contains(" requests on ")
                .then_some(())
        });
        assert_eq!(serve.body(), "two");
        let mut client = Client::connect(&socket);
        client.send(GET);
        assert!(
            client
                .receive()
                .expect("a response")
                .ends_with("\r\n\r\ntwo")
        );
        drop(client);
        // The new process reloads, and removes the socket's file at its end.
        fs::write(&path, text("three")).expect("it is ours");
        next.signal(Signal::HUP);
        serve.program.err.wait_for("as generation 2");
        assert_eq!(serve.body(), "three");
        drop(next);
        assert!(!socket.exists());
        assert_eq!(serve.program.finish().code, Some(0));
    }
}

#[test]
fn failed_upgrade_changes_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("onrush.toml");
    let text = "threads = 2\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nrespond = { status = 200, body = \"one\" }\n";
    fs::write(&path, text).expect("it is ours");
    let serve = Serve::start(&["--config", &path.display().to_string()]);
    for (wrong, words) in [
        ("[[route]]\nforwrad = 1\n", "unknown key \"forwrad\""),
        (
            &*text.replace("threads = 2", "threads = 1"),
            "the number of cores must stay the same",
        ),
        (
            &*format!("{text}[[listen]]\naddress = \"192.0.2.1:80\"\n"),
            "cannot listen on 192.0.2.1:80",
        ),
    ] {
        let before = serve
            .program
            .err
            .wait_for("")
            .matches("this process keeps serving")
            .count();
        fs::write(&path, wrong).expect("it is ours");
        serve.program.signal(Signal::USR2);
        let said = until("the end of the upgrade", || {
            let said = serve.program.err.wait_for("");
            (said.matches("this process keeps serving").count() > before).then_some(said)
        });
        assert!(
            said.contains(words) && said.contains("failed to start serving (exit status: 1)"),
            "{said}"
        );
        for _ in 0..20 {
            assert_eq!(serve.body(), "one");
        }
    }
    assert_eq!(serve.stop().requests(), 60);
}

#[test]
fn upgrades_under_load_lose_no_request() {
    const UPGRADES: usize = 3;
    for io in drivers() {
        let serve = Serve::start(&["--respond", "200:hello", "--io", io]);
        let ends = AtomicBool::new(false);
        let asked: u64 = thread::scope(|scope| {
            let client = || {
                let (mut client, mut asked, mut lost) = (serve.connect(), 0, 0);
                while !ends.load(Ordering::Relaxed) {
                    client.send(GET);
                    match client.receive() {
                        Some(response) => {
                            assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
                            asked += 1;
                            if !response.contains("\r\nConnection: close\r\n") {
                                continue;
                            }
                        }
                        // An orderly close that crossed the request, which may be sent again (RFC 9112 section 9.3.1).
                        None => lost += 1,
                    }
                    client = serve.connect();
                }
                assert!(lost <= UPGRADES, "{lost}");
                asked
            };
            let clients = [(); 8].map(|()| scope.spawn(client));
            let mut last: Option<Successor> = None;
            for count in 1..=UPGRADES {
                match &last {
                    None => serve.program.signal(Signal::USR2),
                    Some(last) => last.signal(Signal::USR2),
                }
                let next = Successor::of(&serve, count);
                for _ in 0..50 {
                    assert_eq!(serve.body(), "hello");
                }
                // The predecessor finishes its requests; a signal would cut that short.
                last.replace(next).into_iter().for_each(std::mem::forget);
            }
            ends.store(true, Ordering::Relaxed);
            let asked = clients.map(|client| client.join().expect("no request is lost"));
            drop(last);
            asked.into_iter().sum()
        });
        let finished = serve.program.finish();
        assert_eq!(finished.code, Some(0), "{finished:?}");
        let served = finished
            .out
            .lines()
            .filter_map(|line| line.strip_prefix("served "));
        let served = served.filter_map(|line| line.split(' ').next()?.parse::<u64>().ok());
        assert_eq!(
            served.sum::<u64>(),
            asked + 50 * UPGRADES as u64,
            "{finished:?}"
        );
    }
}

#[test]
fn tunnels_of_old_process_last_until_drain() {
    let application = Application::start("chat");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("onrush.toml");
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nforward = \"http://{}\"\n[timeouts]\ndrain = \"60s\"\n",
        application.address
    );
    fs::write(&path, text).expect("it is ours");
    let serve = Serve::start(&["--config", &path.display().to_string()]);
    let mut tunnels: Vec<_> = (0..20).map(|_| serve.connect()).collect();
    for tunnel in &mut tunnels {
        open_websocket(tunnel, "/chat");
    }
    serve.program.signal(Signal::USR2);
    let next = Successor::of(&serve, 1);
    for tunnel in &mut tunnels {
        echo_frame(tunnel);
    }
    let mut late = serve.connect();
    open_websocket(&mut late, "/chat");
    echo_frame(&mut late);
    // The old process has nothing left to wait for.
    drop(tunnels);
    serve.program.out.wait_for("20 tunnels");
    echo_frame(&mut late);
    drop((late, next));
    assert_eq!(serve.program.finish().code, Some(0));
}

#[test]
fn upgrade_starts_new_binary() {
    let directory = tempfile::tempdir().expect("a directory");
    // Before anything is started: a program that is open for writing cannot be started.
    let copy = directory.path().join("copy");
    fs::copy(BINARY, &copy).expect("there is room");
    let words = ["--respond", "200:hello", "--listen", "127.0.0.1:0"];
    let (serve, program) = replaceable(directory.path(), &words);
    // The program is missing: nothing is started, and nothing changes.
    fs::remove_file(&program).expect("it is there");
    serve.program.signal(Signal::USR2);
    serve.program.err.wait_for("; this process keeps serving");
    assert_eq!(serve.body(), "hello");
    symlink(&copy, &program).expect("it is free");
    serve.program.signal(Signal::USR2);
    let next = Successor::of(&serve, 1);
    let what = fs::read_link(format!("/proc/{}/exe", next.0.as_raw_nonzero())).expect("it runs");
    assert_eq!(what, fs::canonicalize(&copy).expect("it is there"));
    assert_eq!(serve.body(), "hello");
    drop(next);
    assert_eq!(serve.program.finish().code, Some(0));
}

#[test]
fn service_manager_is_notified() {
    let directory = tempfile::tempdir().expect("a directory");
    let manager = directory.path().join("notify");
    let manager_socket = UnixDatagram::bind(&manager).expect("it is free");
    manager_socket
        .set_read_timeout(Some(TIMEOUT))
        .expect("not zero");
    let hear = || {
        let mut bytes = [0; 4096];
        let count = manager_socket.recv(&mut bytes).expect("it says something");
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    };
    let path = directory.path().join("onrush.toml");
    let text = "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nrespond = { status = 200 }\n";
    fs::write(&path, text).expect("it is ours");
    let mut command = Command::new(BINARY);
    command.args(["serve", "--config"]).arg(&path);
    let serve = Serve::wait_until_listening(Program::start(command.env("NOTIFY_SOCKET", &manager)));
    let ready = |process: u32| format!("MAINPID={process}\nREADY=1");
    assert_eq!(hear().trim_end(), ready(serve.program.pid()));
    for text in [text, "nonsense"] {
        fs::write(&path, text).expect("it is ours");
        serve.program.signal(Signal::HUP);
        let said = hear();
        assert!(said.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{said}");
        assert_eq!(hear().trim_end(), ready(serve.program.pid()));
    }
    fs::write(&path, text).expect("it is ours");
    serve.program.signal(Signal::USR2);
    let next = Successor::of(&serve, 1);
    let number = u32::try_from(next.0.as_raw_nonzero().get()).expect("a number");
    // The old process sends nothing: it is no longer the main process.
    assert_eq!(hear().trim_end(), ready(number));
    next.signal(Signal::TERM);
    assert_eq!(hear().trim_end(), "STOPPING=1");
    drop(next);
    assert_eq!(serve.program.finish().code, Some(0));
}

#[test]
fn watchdog_notifications_survive_upgrade() {
    let directory = tempfile::tempdir().expect("a directory");
    let manager = directory.path().join("notify");
    let socket = UnixDatagram::bind(&manager).expect("it is free");
    socket.set_read_timeout(Some(TIMEOUT)).expect("not zero");
    // Waits for this many watchdog notifications, with nothing else but READY among them.
    let hear = |count: usize| {
        let mut alive = 0;
        while alive < count {
            let mut bytes = [0; 4096];
            let length = socket.recv(&mut bytes).expect("it says something");
            match String::from_utf8_lossy(&bytes[..length]).trim_end() {
                "WATCHDOG=1" => alive += 1,
                said => assert!(said.contains("READY=1"), "{said}"),
            }
        }
    };
    let mut command = Command::new(BINARY);
    command.args(["serve", "--respond", "200:hello", "--listen", "127.0.0.1:0"]);
    command.env("NOTIFY_SOCKET", &manager);
    command.env("WATCHDOG_USEC", "300000");
    let mut serve = Serve::wait_until_listening(Program::start(&mut command));
    hear(3);
    serve.program.signal(Signal::USR2);
    let next = Successor::of(&serve, 1);
    until("the end of the one before", || {
        (!serve.program.is_running()).then_some(())
    });
    // Discards the notifications of the old process.
    socket.set_nonblocking(true).expect("it is a socket");
    while socket.recv(&mut [0; 4096]).is_ok() {}
    socket.set_nonblocking(false).expect("it is a socket");
    hear(3);
    drop(next);
    assert_eq!(serve.program.finish().code, Some(0));
}

/// A server whose program is a link that can be changed; a [`SLEEPER`] is beside it.
fn replaceable(directory: &Path, arguments: &[&str]) -> (Serve, PathBuf) {
    let (program, sleeper) = (directory.join("onrush"), directory.join(SLEEPER));
    fs::write(&sleeper, "#!/bin/sh\nexec sleep 600\n").expect("it is ours");
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(&sleeper, executable).expect("it is ours");
    symlink(BINARY, &program).expect("it is free");
    let mut command = Command::new(&program);
    command.arg("serve").args(arguments);
    (
        Serve::wait_until_listening(Program::start(&mut command)),
        program,
    )
}

/// Points the link to another program.
fn replace(program: &Path, by: impl AsRef<Path>) {
    fs::remove_file(program).expect("it is there");
    symlink(by, program).expect("it is free");
}

#[test]
fn hung_new_process_is_killed_with_old_process() {
    let directory = tempfile::tempdir().expect("a directory");
    let words = ["--respond", "200:hello", "--listen", "127.0.0.1:0"];
    let (serve, program) = replaceable(directory.path(), &words);
    replace(&program, SLEEPER);
    serve.program.signal(Signal::USR2);
    serve.program.err.wait_for("to replace this one");
    assert_eq!(serve.body(), "hello");
    serve.program.signal(Signal::USR2);
    serve.program.err.wait_for("is already starting");
    let address = serve.address.clone();
    assert_eq!(serve.stop().requests(), 1);
    until("nobody listens", || {
        TcpStream::connect(&address).is_err().then_some(())
    });
}

#[test]
fn reload_during_upgrade_runs_in_surviving_process() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("onrush.toml");
    let text = |body: &str| {
        format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nrespond = {{ status = 200, body = \"{body}\" }}\n"
        )
    };
    fs::write(&path, text("one")).expect("it is ours");
    let words = ["--config", &path.display().to_string()];
    let (serve, program) = replaceable(directory.path(), &words);
    // A successor that fails: it is killed by a signal.
    replace(&program, SLEEPER);
    serve.program.signal(Signal::USR2);
    let said = serve.program.err.wait_for("to replace this one");
    let number = said
        .split("process ")
        .nth(1)
        .and_then(|words| words.split(' ').next());
    let number: i32 = number
        .and_then(|number| number.parse().ok())
        .expect("a number");
    fs::write(&path, text("two")).expect("it is ours");
    serve.program.signal(Signal::HUP);
    serve
        .program
        .err
        .wait_for("the process that serves then reloads the configuration");
    kill_process(Pid::from_raw(number).expect("not zero"), Signal::KILL).expect("it is ours");
    serve.program.err.wait_for("as generation 2");
    assert_eq!(serve.body(), "two");
    // A successor that serves: it reads the new file at its start or on the signal.
    replace(&program, BINARY);
    serve.program.signal(Signal::USR2);
    // Atomically: the next process may be reading it.
    let three = directory.path().join("three");
    fs::write(&three, text("three")).expect("it is ours");
    fs::rename(&three, &path).expect("it is ours");
    serve.program.signal(Signal::HUP);
    let next = Successor::of(&serve, 1);
    until("the last configuration", || {
        (serve.body() == "three").then_some(())
    });
    drop(next);
    assert_eq!(serve.program.finish().code, Some(0));
}
