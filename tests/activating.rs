//! Socket activation (sd_listen_fds(3)), with the test as the service manager.

use std::fs;
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::program::{Client, Finished, Program, Serve, drivers, run_onrush, until};
use crate::upgrading::Successor;

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// Starts `onrush serve` with these named sockets as descriptors from 3 on.
fn activated(sockets: &[(&OwnedFd, &str)], arguments: &[&str]) -> Program {
    let mut script = String::new();
    // Moved to high numbers first: a socket may have a number that another one needs.
    for ((socket, _), number) in sockets.iter().zip(200..) {
        script += &format!("exec {number}<&{}; ", socket.as_raw_fd());
    }
    for (aside, number) in (200..).zip(3..3 + sockets.len()) {
        script += &format!("exec {number}<&{aside} {aside}<&-; ");
    }
    let names: Vec<&str> = sockets.iter().map(|(_, name)| *name).collect();
    script += &format!(
        "export LISTEN_PID=$$ LISTEN_FDS={} LISTEN_FDNAMES={}; exec \"$@\"",
        sockets.len(),
        names.join(":")
    );
    let mut command = Command::new("bash");
    command.args(["-c", &script, "bash", env!("CARGO_BIN_EXE_onrush"), "serve"]);
    command.args(arguments).env("RUST_BACKTRACE", "0");
    let inherit = |flags: FdFlags| {
        for (socket, _) in sockets {
            fcntl_setfd(socket.as_fd(), flags).expect("it is open");
        }
    };
    inherit(FdFlags::empty());
    let program = Program::start(&mut command);
    inherit(FdFlags::CLOEXEC);
    program
}

/// Error message of a server that fails to start.
fn refused(sockets: &[(&OwnedFd, &str)], arguments: &[&str]) -> String {
    let finished: Finished = activated(sockets, arguments).finish();
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert_eq!(finished.out, "", "nothing on a half start");
    assert_eq!(
        finished.err.lines().count(),
        1,
        "one sentence: {finished:?}"
    );
    finished.err
}

fn tcp() -> (OwnedFd, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    (listener.into(), address)
}

fn unix(path: &Path) -> OwnedFd {
    UnixListener::bind(path).expect("it is free").into()
}

/// Sockets of a service manager, and the configuration file of a server.
struct Unit {
    directory: TempDir,
    tcp: OwnedFd,
    unix: OwnedFd,
    address: String,
}

impl Unit {
    fn new() -> Unit {
        let directory = tempfile::tempdir().expect("a directory");
        let (tcp, address) = tcp();
        Unit {
            unix: unix(&directory.path().join("socket")),
            directory,
            tcp,
            address,
        }
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    /// Writes a configuration that listens on both sockets and on an address of its own.
    fn write(&self, io: &str, body: &str) {
        let text = format!(
            "io = \"{io}\"\nthreads = 2\n[[listen]]\naddress = \"{}\"\n[[listen]]\naddress = \"unix:{}\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nrespond = {{ status = 200, body = \"{body}\" }}\n",
            self.address,
            self.path("socket")
        );
        fs::write(self.path("onrush.toml"), text).expect("it is ours");
    }

    fn start(&self) -> Serve {
        let sockets = [(&self.unix, "onrush.socket"), (&self.tcp, "onrush.socket")];
        Serve::wait_until_listening(activated(
            &sockets,
            &["--config", &self.path("onrush.toml")],
        ))
    }

    fn check_both(&self, serve: &Serve, body: &str) {
        // More connections than one core is woken for.
        let mut clients: Vec<_> = (0..32).map(|_| serve.connect()).collect();
        clients.iter_mut().for_each(|client| client.send(GET));
        for client in &mut clients {
            let response = client.receive().expect("a response");
            assert!(response.ends_with(&format!("\r\n\r\n{body}")), "{response}");
        }
        let mut client = Client::connect(Path::new(&self.path("socket")));
        client.send(GET);
        assert!(client.receive().expect("a response").ends_with(body));
    }
}

#[test]
fn passed_sockets_are_served_by_all_cores() {
    for io in drivers() {
        let unit = Unit::new();
        unit.write(io, "one");
        let serve = unit.start();
        assert_eq!(serve.address, unit.address);
        let line = format!(
            "\n  sockets of the service manager: {}, unix:{}; all cores share their queues\n",
            unit.address,
            unit.path("socket")
        );
        assert!(
            serve.start_up_lines.contains(&line),
            "{}",
            serve.start_up_lines
        );
        unit.check_both(&serve, "one");
        unit.write(io, "two");
        serve.program.signal(Signal::HUP);
        serve.program.err.wait_for("as generation 2");
        unit.check_both(&serve, "two");
        // The next process received the sockets in the handover, not through the variables.
        unit.write(io, "three");
        serve.program.signal(Signal::USR2);
        let next = Successor::of(&serve, 1);
        serve.program.out.wait_for("served ");
        unit.check_both(&serve, "three");
        let environment = format!("/proc/{}/environ", next.0.as_raw_nonzero());
        let environment = fs::read(environment).expect("it runs");
        assert!(!String::from_utf8_lossy(&environment).contains("LISTEN_"));
        drop(next);
        assert_eq!(serve.program.finish().code, Some(0));
        // The sockets still listen: clients that connect now wait for the next server.
        let mut early = Client::connect(Path::new(&unit.path("socket")));
        early.send(GET);
        let stream = std::net::TcpStream::connect(&unit.address).expect("it listens");
        let mut early_tcp = Client(stream);
        early_tcp.send(GET);
        let serve = unit.start();
        for response in [early.receive(), early_tcp.receive()] {
            assert!(response.expect("a response").ends_with("three"));
        }
        unit.check_both(&serve, "three");
        serve.stop();
        assert!(Path::new(&unit.path("socket")).exists());
    }
}

#[test]
fn upgrade_after_reload_works_with_passed_sockets() {
    for io in drivers() {
        let (socket, address) = tcp();
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("onrush.toml");
        let text = format!(
            "io = \"{io}\"\nthreads = 2\n[[listen]]\naddress = \"{address}\"\n[[route]]\nrespond = {{ status = 200, body = \"one\" }}\n"
        );
        fs::write(&file, text).expect("it is ours");
        let sockets = [(&socket, "onrush.socket")];
        let serve = Serve::wait_until_listening(activated(
            &sockets,
            &["--config", &file.display().to_string()],
        ));
        serve.program.signal(Signal::HUP);
        serve.program.err.wait_for("as generation 2");
        serve.program.signal(Signal::USR2);
        let next = Successor::of(&serve, 1);
        serve.program.out.wait_for("served ");
        assert_eq!(serve.body(), "one");
        drop(next);
        assert_eq!(serve.program.finish().code, Some(0));
    }
}

#[test]
fn reload_cannot_drop_passed_address() {
    let unit = Unit::new();
    unit.write("epoll", "one");
    let serve = unit.start();
    let text = fs::read_to_string(unit.path("onrush.toml")).expect("it is ours");
    let without = text.replace(&unit.address, "127.0.0.1:0");
    fs::write(unit.path("onrush.toml"), without).expect("it is ours");
    serve.program.signal(Signal::HUP);
    let said = serve.program.err.wait_for("generation 1 stays");
    let why = format!("{} is a socket of the service manager", unit.address);
    assert!(said.contains(&why), "{said}");
    unit.check_both(&serve, "one");
    serve.stop();
}

#[test]
fn socket_without_matching_listener_is_refused() {
    let (socket, address) = tcp();
    let other = ["--respond", "200", "--listen", "127.0.0.1:0"];
    let said = refused(&[(&socket, "web")], &other);
    let expected = format!(
        "the service manager has passed the socket {address} (web), and no [[listen]] has this address; the [[listen]] 127.0.0.1:0 has no socket: give both the same address"
    );
    assert!(said.contains(&expected), "{said}");
    // Also when the server binds an overlapping address.
    let everywhere = address.replace("127.0.0.1", "0.0.0.0");
    let said = refused(
        &[(&socket, "web")],
        &["--respond", "200", "--listen", &everywhere],
    );
    for part in [
        format!("the socket {address} (web),"),
        format!("the [[listen]] {everywhere} has no socket"),
    ] {
        assert!(said.contains(&part), "{said}");
    }
    let same = ["--respond", "200", "--listen", &address];
    let said = refused(&[(&socket, "web"), (&socket, "again")], &same);
    let expected =
        format!("the socket {address} (again), and every [[listen]] has a socket already");
    assert!(said.contains(&expected), "{said}");
    let two = ["--threads", "2", "--accept", "cpu"];
    let said = refused(&[(&socket, "web")], &[&same[..], &two].concat());
    assert!(
        said.contains(&format!("all cores share the queue of {address}")),
        "{said}"
    );
    let file: OwnedFd = fs::File::open("/dev/null").expect("it is there").into();
    let said = refused(&[(&socket, "web"), (&file, "nothing")], &same);
    assert!(
        said.contains("descriptor 4 (nothing)") && said.contains("ListenStream="),
        "{said}"
    );
}

#[test]
fn malformed_listen_pid_is_reported() {
    for (name, value, why) in [
        ("LISTEN_PID", "abc", "is not a process ID"),
        ("LISTEN_PID", "", "is not a process ID"),
    ] {
        let mut command = crate::program::onrush(&["serve", "--respond", "200:x"]);
        command.args(["--listen", "127.0.0.1:0"]);
        command.env(name, value).env("LISTEN_FDS", "1");
        let finished = Program::start(&mut command).finish();
        assert_eq!(finished.code, Some(1), "{finished:?}");
        let said = format!("onrush serve: {name}={value:?} in the environment {why}");
        assert!(finished.err.starts_with(&said), "{finished:?}");
    }
}

#[test]
fn sockets_for_another_process_are_ignored() {
    let mut command = crate::program::onrush(&["serve", "--respond", "200:x"]);
    command.args(["--listen", "127.0.0.1:0"]);
    command.env("LISTEN_PID", "1").env("LISTEN_FDS", "3");
    let serve = Serve::wait_until_listening(Program::start(&mut command));
    assert_eq!(serve.body(), "x");
    serve.stop();
}

#[test]
fn admin_socket_is_passed_by_name_and_survives_upgrade() {
    let unit = Unit::new();
    unit.write("epoll", "one");
    let path = unit.path("admin");
    let admin = unix(Path::new(&path));
    let sockets = [
        (&unit.unix, "onrush.socket"),
        (&admin, "admin"),
        (&unit.tcp, "onrush.socket"),
    ];
    let file = unit.path("onrush.toml");
    let serve = Serve::wait_until_listening(activated(&sockets, &["--config", &file]));
    let process = || {
        let address = format!("unix:{path}");
        let status = run_onrush(&["ctl", "--json", "--address", &address, "status"]);
        assert_eq!(status.code, Some(0), "{status:?}");
        let at = status.out.find("\"process\":").expect("a number");
        let number = status.out[at + 10..].trim_start();
        let end = number.find(|letter: char| !letter.is_ascii_digit());
        number[..end.expect("more")].to_owned()
    };
    assert_eq!(process(), serve.program.pid().to_string());
    serve.program.signal(Signal::USR2);
    let next = Successor::of(&serve, 1);
    serve.program.out.wait_for("served ");
    let number = next.0.as_raw_nonzero().to_string();
    until("the next interface", || (process() == number).then_some(()));
    drop(next);
    assert!(Path::new(&path).exists(), "it is the manager's");
    // The configuration sets another address.
    let text = fs::read_to_string(&file).expect("it is ours");
    let elsewhere = unit.path("elsewhere");
    fs::write(
        &file,
        format!("admin = {{ address = \"unix:{elsewhere}\" }}\n{text}"),
    )
    .expect("it is ours");
    let said = refused(&sockets, &["--config", &file]);
    assert!(
        said.contains(&format!("unix:{path} (admin)")) && said.contains(&elsewhere),
        "{said}"
    );
}

/// The service manager created the file and removes it: the user need not be able to.
#[test]
fn passed_unix_socket_needs_no_user_permissions() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: only root can give up its rights");
    }
    let directory = TempDir::new().expect("a directory");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(directory.path(), open).expect("it is ours");
    let path = directory.path().join("web.sock");
    let socket = OwnedFd::from(UnixListener::bind(&path).expect("it is free"));
    let listen = format!("unix:{}", path.display());
    let arguments = [
        "--respond",
        "200:x",
        "--listen",
        &listen,
        "--user",
        "65534:65534",
    ];
    let serve = Serve::wait_until_listening(activated(&[(&socket, "web")], &arguments));
    assert!(
        serve.start_up_lines.contains("runs as user"),
        "{}",
        serve.start_up_lines
    );
    let said = serve.program.err.so_far();
    assert!(!said.contains("may not write"), "{said}");
    serve.stop();
    // The warning applies to a file that the server creates itself.
    fs::remove_file(&path).expect("the manager may");
    let serve = Serve::wait_until_listening(Program::start(
        crate::program::onrush(&["serve"]).args(arguments),
    ));
    serve
        .program
        .err
        .wait_for("may not write to the directory of");
    serve.stop();
}
