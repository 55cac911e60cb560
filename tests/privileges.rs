//! `[process]` and `--user`: root's rights are given up after the start, and later work succeeds without them. These
//! tests need root and are skipped otherwise.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Signal, geteuid};
use tempfile::TempDir;

use crate::program::{Client, Finished, Program, Serve, drivers, onrush, run_onrush, until};
use crate::upgrading::Successor;

const BINARY: &str = env!("CARGO_BIN_EXE_onrush");
/// The user `nobody`.
const USER: u32 = 65_534;
/// CAP_NET_BIND_SERVICE (capabilities(7)).
const BIND_ONLY: &str = "0000000000000400";

/// Whether these tests can run; prints a message otherwise.
fn is_root() -> bool {
    let is_root = geteuid().is_root();
    if !is_root {
        eprintln!("skipped: only root can give up its rights");
    }
    is_root
}

/// A directory that everybody can read, with a subdirectory that belongs to the user.
struct Place {
    directory: TempDir,
}

impl Place {
    fn new() -> Place {
        let directory = tempfile::tempdir().expect("a directory");
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(directory.path(), open).expect("it is ours");
        let own = directory.path().join("own");
        fs::create_dir(&own).expect("it is ours");
        chown(&own, Some(USER), Some(USER)).expect("root may");
        Place { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, text: &str) -> String {
        let path = self.path("onrush.toml");
        fs::write(&path, text).expect("it is ours");
        path.display().to_string()
    }

    /// Creates a certificate, and a key that only root can read.
    fn certificate(&self) -> PathBuf {
        let made =
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("it is made");
        fs::write(self.path("site.pem"), made.cert.pem()).expect("it is ours");
        let key = self.path("site.key");
        fs::write(&key, made.signing_key.serialize_pem()).expect("it is ours");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("it is ours");
        key
    }
}

fn process() -> String {
    format!("threads = 2\nprocess = {{ user = {USER}, group = {USER} }}\n")
}

/// A status field (proc_pid_status(5)) of each thread of a process.
fn of_all_threads(process: u32, field: &str) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).expect("it runs");
    let of_task = |task: fs::DirEntry| {
        // A thread may have ended meanwhile.
        let status = fs::read_to_string(task.path().join("status")).ok()?;
        let mut lines = status.lines();
        let value = lines.find_map(|line| line.strip_prefix(&format!("{field}:")))?;
        Some(value.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    tasks.flatten().filter_map(of_task).collect()
}

/// Checks that no thread of the process has root's rights, and that none can regain them.
fn check_rights(process: u32) {
    let four = [USER; 4].map(|id| id.to_string()).join(" ");
    let groups = USER.to_string();
    for (field, expected) in [
        ("Uid", &*four),
        ("Gid", &*four),
        ("Groups", &*groups),
        ("CapPrm", BIND_ONLY),
        ("CapEff", BIND_ONLY),
        ("CapInh", BIND_ONLY),
        ("CapAmb", BIND_ONLY),
        ("CapBnd", BIND_ONLY),
        ("NoNewPrivs", "1"),
    ] {
        let found = of_all_threads(process, field);
        assert!(found.len() > 3, "{field} of {} threads", found.len());
        assert!(
            found.iter().all(|value| value == expected),
            "{field}: {found:?}, expected {expected}"
        );
    }
}

/// A free port below 1024 on an unused loopback address.
fn low_address() -> String {
    let host = Ipv4Addr::from(0x7f40_0000 | (std::process::id() & 0xffff) << 4);
    let free = (600..1024).find(|&port| TcpListener::bind((host, port)).is_ok());
    format!("{host}:{}", free.expect("a free port"))
}

fn body(address: &str) -> String {
    let stream = TcpStream::connect(address).expect("it listens");
    let mut client = Client(stream);
    let said = client.exchange(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    said.split("\r\n\r\n").nth(1).unwrap_or_default().to_owned()
}

fn ctl(process: u32, words: &[&str]) -> Finished {
    let process = process.to_string();
    run_onrush(&[&["ctl", "--pid", &process], words].concat())
}

#[test]
fn unreadable_file_is_403_and_logged_once() {
    if !is_root() {
        return;
    }
    for io in drivers() {
        let place = Place::new();
        let root = place.path("www");
        fs::create_dir(&root).expect("it is ours");
        let secret = root.join("secret.txt");
        fs::write(&secret, "secret").expect("it is ours");
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).expect("it is ours");
        let file = place.write(&format!(
            "io = \"{io}\"\n{}[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nfiles = {{ root = \"{}\" }}\n",
            process(),
            root.display()
        ));
        let serve = Serve::start(&["--config", &file]);
        let mut client = serve.connect();
        for _ in 0..3 {
            client.send(b"GET /secret.txt HTTP/1.1\r\nHost: h\r\n\r\n");
            let response = client.receive().expect("a response");
            assert!(response.starts_with("HTTP/1.1 403 "), "{response}");
        }
        serve.program.signal(Signal::TERM);
        let log = serve.program.finish().err;
        let warning = "the file for /secret.txt is 403: ";
        assert_eq!(log.matches(warning).count(), 1, "{log}");
        assert!(log.contains("Permission denied"), "{log}");
    }
}

#[test]
fn threads_drop_root_privileges() {
    if !is_root() {
        return;
    }
    for io in drivers() {
        let place = Place::new();
        let socket = place.path("own/socket");
        let text = |body: &str, more: &str| {
            format!(
                "io = \"{io}\"\n{}[[listen]]\naddress = \"127.0.0.1:0\"\n[[listen]]\naddress = \"unix:{}\"\n{more}[[route]]\nrespond = {{ status = 200, body = \"{body}\" }}\n",
                process(),
                socket.display()
            )
        };
        let file = place.write(&text("one", ""));
        let serve = Serve::start(&["--config", &file]);
        let mut lines = serve.start_up_lines.lines();
        let line = lines.find(|line| line.starts_with("  runs as "));
        let line = line.expect("what it is");
        let whole = format!("({USER}); capabilities: CAP_NET_BIND_SERVICE only");
        assert!(line.ends_with(&whole), "{line}");
        check_rights(serve.program.pid());
        assert_eq!(serve.body(), "one");
        let owner = |path: &Path| fs::metadata(path).expect("it is there").uid();
        assert_eq!(owner(&socket), USER);
        // A port that needs CAP_NET_BIND_SERVICE, on every core.
        let low = low_address();
        let added = format!("[[listen]]\naddress = \"{low}\"\n");
        place.write(&text("two", &added));
        serve.program.signal(Signal::HUP);
        serve.program.err.wait_for("as generation 2");
        assert_eq!(body(&low), "two");
        // The upgrade is started by the reduced process, so the new one has the same rights.
        let upgraded = ctl(serve.program.pid(), &["upgrade"]);
        assert_eq!(upgraded.code, Some(0), "{upgraded:?}");
        serve.program.out.wait_for("served ");
        let process = Successor::of(&serve, 1);
        let next = process.0.as_raw_nonzero().get().cast_unsigned();
        check_rights(next);
        assert_eq!(body(&low), "two");
        place.write(&text("three", &added));
        let reloaded = ctl(next, &["reload"]);
        assert_eq!(reloaded.code, Some(0), "{reloaded:?}");
        assert_eq!(serve.body(), "three");
        let status = ctl(next, &["--json", "status"]);
        let kept = "\"CAP_NET_BIND_SERVICE\"";
        assert!(status.out.contains(kept), "{status:?}");
        drop(process);
        assert!(!socket.exists());
        serve.program.finish();
    }
}

#[test]
fn reload_with_root_only_key_gives_advice() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let key = place.certificate();
    let text = |body: &str| {
        format!(
            "{}[[listen]]\naddress = \"127.0.0.1:0\"\ntls = {{ certificate = \"site.pem\", key = \"site.key\" }}\n[[route]]\nrespond = {{ status = 200, body = \"{body}\" }}\n",
            process()
        )
    };
    let file = place.write(&text("one"));
    let may_not = format!("user nobody ({USER}) may not read {}", key.display());
    let checked = run_onrush(&["check", &file]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let said = format!("onrush.toml:5:41: warning: {may_not}: a reload will fail");
    assert!(checked.err.contains(&said), "{checked:?}");
    let serve = Serve::start(&["--config", &file]);
    serve.program.err.wait_for(&said);
    let fetched = || {
        let url = serve.tls_url("/");
        let out = Command::new("curl").args(["-sk", &url]).output();
        String::from_utf8(out.expect("curl is there").stdout).expect("text")
    };
    assert_eq!(fetched(), "one");
    place.write(&text("two"));
    let refused = ctl(serve.program.pid(), &["reload"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.err.contains(&may_not) && refused.err.contains("chgrp"),
        "{refused:?}"
    );
    let upgraded = ctl(serve.program.pid(), &["upgrade"]);
    assert_eq!(upgraded.code, Some(1), "{upgraded:?}");
    assert_eq!(fetched(), "one", "nothing has changed");
    // The advice in the message helps.
    chown(&key, None, Some(USER)).expect("root may");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).expect("it is ours");
    let reloaded = ctl(serve.program.pid(), &["reload"]);
    assert_eq!(reloaded.code, Some(0), "{reloaded:?}");
    assert_eq!(fetched(), "two");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("it is ours");
    let refused = ctl(serve.program.pid(), &["reload"]);
    let may_not = format!("user nobody ({USER}) may not read {file}");
    assert!(refused.err.contains(&may_not), "{refused:?}");
}

#[test]
fn unreadable_watched_files_are_reported_once() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    place.certificate();
    let routes = place.path("conf.d");
    fs::create_dir(&routes).expect("it is ours");
    let route =
        |body: &str| format!("[[route]]\nrespond = {{ status = 200, body = \"{body}\" }}\n");
    fs::write(routes.join("one.toml"), route("one")).expect("it is ours");
    let secret = place.path("secret");
    fs::create_dir(&secret).expect("it is ours");
    for file in ["site.pem", "site.key"] {
        fs::rename(place.path(file), secret.join(file)).expect("it is ours");
    }
    let file = place.write(&format!(
        "include = \"conf.d/*.toml\"\n{}[[listen]]\naddress = \"127.0.0.1:0\"\n\
         [[listen]]\naddress = \"127.0.0.1:0\"\nname = \"secure\"\ntls = {{ certificate = \"secret/site.pem\", key = \"secret/site.key\" }}\n",
        process()
    ));
    for directory in [&routes, &secret] {
        let closed = fs::Permissions::from_mode(0o700);
        fs::set_permissions(directory, closed).expect("it is ours");
    }
    let serve = Serve::start(&["--config", &file, "--watch"]);
    let pattern = format!("--watch cannot access {}", routes.join("*.toml").display());
    let certificate = format!("cannot watch {}", secret.join("site.pem").display());
    for said in [&pattern, &certificate] {
        serve.program.err.wait_for(said);
    }
    // Files that cannot be looked at count as unchanged.
    fs::write(routes.join("one.toml"), route("two")).expect("it is ours");
    for path in [&secret.join("site.key"), &secret, &routes] {
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(path, open).expect("it is ours");
    }
    let log = serve.program.err.wait_for("as generation 2");
    assert_eq!(serve.body(), "two");
    for said in [&pattern, &certificate] {
        assert_eq!(log.matches(said.as_str()).count(), 1, "{log}");
    }
    assert!(!log.contains("was rejected, generation"), "{log}");
    serve.stop();
}

#[test]
fn reload_warns_of_unreadable_files() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let closed = place.path("closed");
    fs::create_dir(&closed).expect("it is ours");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).expect("it is ours");
    let text = |root: &str| {
        format!(
            "process = {{ user = {USER}, group = {USER} }}\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nfiles = {{ root = \"{root}\" }}\n"
        )
    };
    let file = place.write(&text("own"));
    let serve = Serve::start(&["--config", &file]);
    place.write(&text("closed"));
    serve.program.signal(Signal::HUP);
    let said = serve.program.err.wait_for("as generation 2");
    let may_not = format!("may not enter {}", closed.display());
    assert!(said.contains(&may_not), "{said}");
    serve.stop();
}

#[test]
fn access_log_belongs_to_user() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let serve_with = |log: &Path| {
        let file = place.write(&format!(
            "{}log = {{ access = \"{}\" }}\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nrespond = {{ status = 200, body = \"x\" }}\n",
            process(),
            log.display()
        ));
        Serve::start(&["--config", &file])
    };
    let lines = |path: &Path| fs::read_to_string(path).unwrap_or_default().lines().count();
    // In a directory that only root can write to.
    let log = place.path("access.log");
    let serve = serve_with(&log);
    serve.body();
    until("a line", || (lines(&log) == 1).then_some(()));
    let metadata = fs::metadata(&log).expect("it is there");
    assert_eq!((metadata.uid(), metadata.gid()), (USER, USER));
    serve
        .program
        .err
        .wait_for("may not create files in the directory of the access log");
    serve.stop();
    // In a directory of the user, which allows rotation.
    let log = place.path("own/access.log");
    let serve = serve_with(&log);
    serve.body();
    until("a line", || (lines(&log) == 1).then_some(()));
    fs::rename(&log, place.path("own/access.log.1")).expect("it is there");
    serve.program.signal(Signal::USR1);
    serve.program.err.wait_for("was reopened");
    serve.body();
    until("a line in the new file", || {
        (lines(&log) == 1).then_some(())
    });
    assert_eq!(fs::metadata(&log).expect("it is there").uid(), USER);
    serve.stop();
    // A file of another user.
    let log = place.path("others.log");
    fs::write(&log, "").expect("it is ours");
    let file = place.path("onrush.toml").display().to_string();
    place.write(&format!(
        "{}log = {{ access = \"{}\" }}\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nsynthetic = true\n",
        process(),
        log.display()
    ));
    for command in [&["check", &*file][..], &["serve", "--config", &file]] {
        let refused = run_onrush(command);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        let said = format!("user nobody ({USER}) may not write the access log");
        assert!(refused.err.contains(&said), "{refused:?}");
    }
    assert_eq!(
        fs::metadata(&log).expect("it is there").uid(),
        0,
        "left alone"
    );
}

#[test]
fn admin_interface_allows_root_and_user_only() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let socket = place.path("own/admin");
    let admin = format!("unix:{}", socket.display());
    let file = place.write(&format!(
        "{}admin = {{ address = \"{admin}\" }}\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nsynthetic = true\n",
        process()
    ));
    let serve = Serve::start(&["--config", &file]);
    serve.program.out.wait_for("admin interface on");
    // Another user could connect if only the file's mode decided.
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o777)).expect("root may");
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(place.path("own"), open).expect("root may");
    if !runs_as(USER) {
        return;
    }
    for (user, code) in [(0, Some(0)), (USER, Some(0)), (33, Some(1))] {
        let mut command = as_user(user);
        command.args([BINARY, "ctl", "--address", &admin, "status"]);
        let finished = Program::start(&mut command).finish();
        assert_eq!(finished.code, code, "{user}: {finished:?}");
    }
    serve.stop();
    assert!(!socket.exists());
}

#[test]
fn non_root_cannot_change_user() {
    if !is_root() || !runs_as(USER) {
        return;
    }
    let mut command = as_user(USER);
    command.args([BINARY, "serve", "--respond", "200", "--user", "33:33"]);
    let refused = Program::start(command.args(["--listen", "127.0.0.1:0"])).finish();
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused
            .err
            .contains(&format!("this process is user {USER}"))
            && refused.err.contains("start it as root, or as that user"),
        "{refused:?}"
    );
    assert_eq!(refused.err.lines().count(), 1, "{refused:?}");
    // Nor can it check for another user.
    let place = Place::new();
    let file = place.write("process = { user = 33, group = 33 }\n[[route]]\nsynthetic = true\n");
    let mut command = as_user(USER);
    let checked = Program::start(command.args([BINARY, "check", &file])).finish();
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(
        checked.err.contains("cannot check whether") && checked.err.contains("as root"),
        "{checked:?}"
    );
    // A process that already runs as that user has nothing to give up.
    let user = format!("{USER}:{USER}");
    let mut command = as_user(USER);
    command.args([BINARY, "serve", "--respond", "200:x", "--user", &user]);
    let serve =
        Serve::wait_until_listening(Program::start(command.args(["--listen", "127.0.0.1:0"])));
    assert!(
        serve.start_up_lines.contains("; capabilities: none\n"),
        "{}",
        serve.start_up_lines
    );
    assert_eq!(serve.body(), "x");
    serve.stop();
}

#[test]
fn unknown_user_error_is_one_line() {
    for (user, part) in [
        ("no-such-user", "user no-such-user is not in /etc/passwd"),
        ("4294967294", "set one (group, or --user 4294967294:GROUP)"),
        ("root", "user root is root"),
        (
            "nobody:no-such-group",
            "group no-such-group is not in /etc/group",
        ),
        ("", "\"\" is not a user or group"),
    ] {
        let words = ["serve", "--respond", "200", "--listen", "127.0.0.1:0"];
        let refused = Program::start(onrush(&words).args(["--user", user])).finish();
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert_eq!(refused.err.lines().count(), 1, "{refused:?}");
        assert!(refused.err.contains(part), "{user}: {refused:?}");
    }
}

/// A command prefix that runs a program as this user.
fn as_user(user: u32) -> Command {
    let mut command = Command::new("setpriv");
    let (user, group) = (format!("--reuid={user}"), format!("--regid={user}"));
    command.args([&user, &group, "--clear-groups"]);
    command.env_remove("XDG_RUNTIME_DIR");
    command
}

/// Whether this user can start the binary, which may be in a directory that others cannot read.
pub(crate) fn runs_as(user: u32) -> bool {
    let tried = as_user(user).args(["test", "-x", BINARY]).status();
    let runs = tried.is_ok_and(|status| status.success());
    if !runs {
        eprintln!("skipped: user {user} cannot start {BINARY}, or there is no setpriv");
    }
    runs
}

#[test]
fn server_works_with_seccomp_filter() {
    for io in drivers() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("onrush.toml");
        let text = |body: &str| {
            format!(
                "io = \"{io}\"\nthreads = 2\nprocess = {{ seccomp = true }}\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nrespond = {{ status = 200, body = \"{body}\" }}\n"
            )
        };
        fs::write(&path, text("one")).expect("it is ours");
        let file = path.display().to_string();
        let serve = Serve::start(&["--config", &file]);
        if !serve.start_up_lines.contains("\n  seccomp filter: ") {
            panic!("{}", serve.start_up_lines);
        }
        let check = |process: u32| {
            let modes = of_all_threads(process, "Seccomp");
            assert!(
                modes.len() > 3 && modes.iter().all(|mode| mode == "2"),
                "{modes:?}"
            );
            let filters = of_all_threads(process, "Seccomp_filters");
            filters.first().cloned()
        };
        let filters = check(serve.program.pid());
        assert_eq!(serve.body(), "one");
        fs::write(&path, text("two")).expect("it is ours");
        serve.program.signal(Signal::HUP);
        serve.program.err.wait_for("as generation 2");
        assert_eq!(serve.body(), "two");
        serve.program.signal(Signal::USR2);
        let next = Successor::of(&serve, 1);
        let process = next.0.as_raw_nonzero().get().cast_unsigned();
        serve.program.out.wait_for("served ");
        // It inherits the filter of this process, and adds none.
        assert_eq!(check(process), filters);
        let status = ctl(process, &["--json", "status"]);
        assert!(status.out.contains("\"seccomp\""), "{status:?}");
        assert_eq!(serve.body(), "two");
        drop(next);
        serve.program.finish();
    }
}
