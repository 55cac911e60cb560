//! Child processes. No program started here outlives the run.
//!
//! Each program is the leader of its own process group, so that Ctrl-C in a terminal reaches only bench, and so that
//! its own children are stopped with it. With `setpriv` installed, the kernel stops programs even if bench is killed.
//! Programs are signalled only by the ids returned when they were started, never by name.
//!
//! SIGTERM comes first; SIGKILL to the whole group follows after a bounded wait. CPU time is read from the CPU clock of
//! each process, which includes its ended threads, by one thread whose own time is part of the result.

use std::cell::Cell;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};

use serde::{Deserialize, Serialize};

use super::leftover_processes::VARIABLE;
use crate::collect::client::last_second;
use crate::environment::cpu_list;
use crate::limits::{OUTPUT_BYTES_MAX, OUTPUT_TAIL_BYTES, READY_POLL, STOP_WAIT_MAX};

/// A running program. Dropping it stops it.
#[derive(Debug)]
pub(super) struct Child {
    process: std::process::Child,
    pid: Pid,
    output: PathBuf,
    /// Whether its output was truncated.
    was_truncated: Cell<bool>,
    is_stopped: bool,
}

/// Command line that runs `command` on `cpus`.
pub(super) fn pinned(cpus: &[usize], command: Vec<String>) -> Vec<String> {
    let mut line: Vec<String> = ["taskset", "-c", &cpu_list(cpus)].map(String::from).into();
    line.extend(command);
    line
}

impl Child {
    /// Starts a command line with standard output and standard error in `directory/output.txt`.
    ///
    /// An environment variable identifies the run, also in its descendants: [`super::leftover_processes`].
    pub(super) fn start(line: &[String], directory: &Path, run: &str) -> io::Result<Child> {
        let output = directory.join("output.txt");
        // In append mode, output continues at the start after truncation.
        let file = OpenOptions::new().create(true).append(true).open(&output)?;
        file.set_len(0)?;
        let (program, arguments) = line.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let process = command_with_pdeathsig(program)
            .args(arguments)
            .env(VARIABLE, run)
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .process_group(0)
            .spawn()?;
        Ok(Child {
            pid: Pid::from_child(&process),
            process,
            output,
            was_truncated: Cell::new(false),
            is_stopped: false,
        })
    }

    /// Its process id. `setpriv` and `taskset` exec the program, so this is the program's id.
    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(super) fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(self.pid), options), Ok(None))
    }

    /// Its exit status or terminating signal if it ended without success.
    pub(super) fn failure(&self) -> Option<UnsuccessfulExit> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(self.pid), options).ok().flatten()?;
        match (status.exit_status(), status.terminating_signal()) {
            (Some(0), _) | (None, None) => None,
            (Some(code), _) => Some(UnsuccessfulExit::Status(code)),
            (None, Some(signal)) => Some(UnsuccessfulExit::Signal(signal)),
        }
    }

    pub(super) fn exceeds_output_limit(&self) -> bool {
        fs::metadata(&self.output).is_ok_and(|found| found.len() > OUTPUT_BYTES_MAX)
    }

    /// Truncates output that exceeds the limit, so that it does not fill the disk. A server's output is not a result.
    pub(super) fn truncate_output(&self) {
        if self.exceeds_output_limit() {
            let file = OpenOptions::new().write(true).open(&self.output);
            // Tried again at the next call if it fails.
            let cut = file.and_then(|file| file.set_len(0));
            self.was_truncated
                .set(self.was_truncated.get() || cut.is_ok());
        }
    }

    pub(super) fn was_truncated(&self) -> bool {
        self.was_truncated.get()
    }

    pub(super) fn output(&self) -> String {
        self.output_from(0, OUTPUT_BYTES_MAX)
    }

    fn output_from(&self, start: u64, bytes_max: u64) -> String {
        let mut bytes = Vec::new();
        if let Ok(mut file) = File::open(&self.output)
            && file.seek(SeekFrom::Start(start)).is_ok()
        {
            let _ = file.take(bytes_max).read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The last second that it reported, if it prints one.
    pub(super) fn last_second(&self) -> Option<String> {
        let length = fs::metadata(&self.output).ok()?.len();
        let part = OUTPUT_TAIL_BYTES as u64;
        let head = self.output_from(0, part);
        let tail = self.output_from(length.saturating_sub(part), part);
        last_second(&head, &tail)
    }

    /// The first non-empty line of its output, without control characters.
    pub(super) fn first_line(&self) -> Option<String> {
        let head = self.output_from(0, OUTPUT_TAIL_BYTES as u64);
        let mut lines = head.lines().map(str::trim);
        let line = lines.find(|line| !line.is_empty())?;
        Some(printable(line).trim().to_owned())
    }

    pub(super) fn output_tail(&self) -> String {
        let length = fs::metadata(&self.output).map_or(0, |found| found.len());
        let tail = OUTPUT_TAIL_BYTES as u64;
        let output = self.output_from(length.saturating_sub(tail), tail);
        match last_lines(&output) {
            words if words.is_empty() => "it printed nothing".into(),
            words => format!("it printed: {words}"),
        }
    }

    /// Sends SIGTERM, waits, and then kills its process group.
    pub(super) fn stop(&mut self) {
        if self.is_stopped {
            return;
        }
        self.is_stopped = true;
        // Until it is reaped its id cannot be reused, so no signal can reach another process.
        let _ = kill_process(self.pid, Signal::TERM);
        let deadline = Instant::now() + STOP_WAIT_MAX;
        while !self.has_ended() && Instant::now() < deadline {
            thread::sleep(READY_POLL);
        }
        let _ = kill_process_group(self.pid, Signal::KILL);
        let _ = self.process.wait();
    }
}

/// An unsuccessful exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum UnsuccessfulExit {
    Status(i32),
    Signal(i32),
}

impl fmt::Display for UnsuccessfulExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnsuccessfulExit::Status(code) => write!(f, "exit status {code}"),
            UnsuccessfulExit::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The last lines of text joined into one, within the limit for quotes.
pub(super) fn last_lines(text: &str) -> String {
    let start = text.floor_char_boundary(text.len().saturating_sub(OUTPUT_TAIL_BYTES));
    let lines = text[start..].lines().map(str::trim);
    let lines: Vec<_> = lines.filter(|line| !line.is_empty()).collect();
    printable(&lines[lines.len().saturating_sub(4)..].join(" | "))
}

/// Replaces control characters, which could affect a terminal or a page.
fn printable(words: &str) -> String {
    let printable = |letter: char| if letter.is_control() { ' ' } else { letter };
    words.chars().map(printable).collect()
}

/// A command that ends when bench ends, if `setpriv` is installed.
pub(super) fn command_with_pdeathsig(program: &str) -> Command {
    if has_setpriv() {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", program]);
        return command;
    }
    Command::new(program)
}

fn has_setpriv() -> bool {
    use std::sync::OnceLock;
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| file_of("setpriv").is_some())
}

/// Executable of a command: itself if it is a path, else the first on `PATH`.
pub(super) fn file_of(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        let path = PathBuf::from(program);
        return path.is_file().then_some(path);
    }
    // Debian installs daemons in sbin, which may be missing from a user's PATH.
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|directory| directory.join(program))
        .find(|path| path.is_file())
}

pub(super) fn sleep_until_at_most(length: Duration, deadline: Instant) {
    thread::sleep(length.min(deadline.saturating_duration_since(Instant::now())));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(script: &str) -> (tempfile::TempDir, Child) {
        let directory = tempfile::tempdir().expect("a directory");
        let line = ["sh", "-c", script].map(String::from);
        let child = Child::start(&line, directory.path(), "a test").expect("sh starts");
        (directory, child)
    }

    fn wait_for(what: &str, condition: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !condition() {
            assert!(Instant::now() < deadline, "{what}");
            thread::sleep(READY_POLL);
        }
    }

    fn is_alive(pid: u32) -> bool {
        fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| !crate::collect::process::has_ended(&stat))
    }

    #[test]
    fn ended_child_keeps_output_tail() {
        let (_directory, child) = start("echo first; echo last >&2");
        wait_for("the end", || child.has_ended());
        assert_eq!(child.output_tail(), "it printed: first | last");
    }

    #[test]
    fn long_output_is_truncated() {
        let bytes = OUTPUT_BYTES_MAX + 1;
        let (_directory, child) = start(&format!(
            "head -c {bytes} /dev/zero; trap 'echo last; exit' TERM; while :; do sleep 0.05; done"
        ));
        wait_for("all of it", || child.exceeds_output_limit());
        child.truncate_output();
        assert!(child.was_truncated() && !child.exceeds_output_limit());
        kill_process(child.pid, Signal::TERM).expect("it lives");
        wait_for("its end", || child.has_ended());
        assert_eq!(child.output_tail(), "it printed: last");
    }

    #[test]
    fn sigkill_follows_ignored_sigterm() {
        let (_directory, mut child) =
            start("trap '' TERM; sleep 1000 & echo $!; wait; wait; sleep 1000");
        wait_for("its output", || child.output().contains('\n'));
        let grandchild: u32 = child.output().trim().parse().expect("a pid");
        let pid = child.id();
        assert!(is_alive(grandchild) && is_alive(pid));
        child.stop();
        wait_for("both to be gone", || {
            !is_alive(pid) && !is_alive(grandchild)
        });
    }
}
