//! `onrush tune diagnose --pid` for programs that do not run: stopped by a signal, or throttled by a control group.

use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::{onrush, text, wait_until};

struct Running(Child);

impl Running {
    fn number(&self) -> i32 {
        i32::try_from(self.0.id()).expect("a number")
    }

    fn signal(&self, signal: Signal) {
        let number = Pid::from_raw(self.number()).expect("a number");
        kill_process(number, signal).expect("it is ours");
    }

    /// Whether all of its threads are stopped: a signal stops one after another.
    fn is_stopped(&self) -> bool {
        let threads = fs::read_dir(format!("/proc/{}/task", self.number())).expect("it is ours");
        let mut stats = threads.map(|thread| {
            let thread = thread.expect("a thread").path();
            fs::read_to_string(thread.join("stat")).unwrap_or_default()
        });
        stats.all(|stat| {
            stat.rsplit_once(") ")
                .is_some_and(|(_, state)| state.starts_with('T'))
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn stopped_server_is_diagnosed_by_unread_requests() {
    // A free port, because this server cannot choose one.
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("an address");
    drop(free);
    let server = Command::new(env!("CARGO_BIN_EXE_onrush"))
        .args([
            "serve",
            "--respond",
            "200",
            "--listen",
            &address.to_string(),
        ])
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    let server = Running(server);
    let mut client = None;
    wait_until("the server does not listen", || {
        client = TcpStream::connect(address).ok();
        client.is_some()
    });
    let mut client = client.expect("connected");
    server.signal(Signal::STOP);
    wait_until("it does not stop", || server.is_stopped());
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .expect("sent");
    let number = server.number().to_string();
    let found = onrush(&["diagnose", "--pid", &number, "--for", "10ms"]);
    let words = text(&found.stdout);
    assert!(
        words.starts_with("sure     onrush is stopped (by a signal or a debugger), and "),
        "{words}{}",
        text(&found.stderr)
    );
    // Depending on timing the connection was accepted, or still waits for that.
    assert!(
        words.contains("arrived and were not read") || words.contains("were not accepted"),
        "{words}"
    );
    server.signal(Signal::CONT);
}

/// A control group with a tenth of a CPU, removed on drop.
struct Tenth(PathBuf);

impl Tenth {
    /// Creates it in the version 1 hierarchy, or in version 2 if processes may be moved there.
    fn new() -> Option<Tenth> {
        let one = PathBuf::from("/sys/fs/cgroup/cpu");
        let (above, quota) = match one.join("cpu.cfs_quota_us").exists() || one.exists() {
            true => (
                one,
                vec![
                    ("cpu.cfs_period_us", "100000"),
                    ("cpu.cfs_quota_us", "10000"),
                ],
            ),
            false => ("/sys/fs/cgroup".into(), vec![("cpu.max", "10000 100000")]),
        };
        let group = Tenth(above.join(format!("onrush-tune-{}", std::process::id())));
        fs::create_dir(&group.0).ok()?;
        for (file, value) in quota {
            fs::write(group.0.join(file), value).ok()?;
        }
        // The process is in a child group without a quota.
        fs::create_dir(group.below()).ok()?;
        Some(group)
    }

    fn below(&self) -> PathBuf {
        self.0.join("below")
    }
}

impl Drop for Tenth {
    fn drop(&mut self) {
        let _ = fs::remove_dir(self.below());
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn cpu_quota_of_process_is_found() {
    let Some(group) = Tenth::new() else {
        eprintln!(
            "skipped: no control group with a quota can be made here; it takes root and a writable cgroup mount"
        );
        return;
    };
    let group_path = group.0.clone();
    {
        let busy = Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn();
        let busy = Running(busy.expect("sh starts"));
        let number = busy.number().to_string();
        if let Err(error) = fs::write(group.below().join("cgroup.procs"), &number) {
            eprintln!("skipped: a process cannot be put into a control group here: {error}");
            return;
        }
        let throttled = || {
            let stat = fs::read_to_string(group_path.join("cpu.stat")).unwrap_or_default();
            let line = stat
                .lines()
                .find_map(|line| line.strip_prefix("nr_throttled "));
            line.and_then(|count| count.parse::<u64>().ok())
                .unwrap_or(0)
        };
        wait_until("it is never stopped", || throttled() > 0);
        let found = onrush(&["diagnose", "--pid", &number, "--for", "1500ms"]);
        let words = text(&found.stdout);
        let name = group_path
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name");
        assert!(
            words.contains(&format!("{name}, which may use 0.10 CPUs, was stopped in ")),
            "{words}{}",
            text(&found.stderr)
        );
    }
    wait_until("the process is still in its group", || {
        fs::read_to_string(group.below().join("cgroup.procs")).is_ok_and(|text| text.is_empty())
    });
}
