//! Runs one test in its own process.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use super::suites::Job;

/// Time limit of a test. Waits in end-to-end tests end after 60 s, and a test may have several.
const TIME_MAX: Duration = Duration::from_secs(300);

/// How a test ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) end: End,
    pub(crate) duration: Duration,
    /// Standard output and standard error of a failed test.
    pub(crate) output: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum End {
    Passed,
    Failed,
    Signal(i32),
    TimeLimit,
}

impl Outcome {
    pub(crate) fn is_success(&self) -> bool {
        self.end == End::Passed
    }
}

/// Runs a test to completion. Its output goes to the file `output`, which is overwritten.
pub(crate) fn run(job: Job, output: &Path) -> anyhow::Result<Outcome> {
    let Job { suite, test, seeds } = job;
    let file = File::create(output).with_context(|| format!("creating {}", output.display()))?;
    let start = Instant::now();
    let mut child = Command::new(&suite.program)
        .args(["--exact", "--include-ignored", &test.name])
        .current_dir(&suite.directory)
        .env("CARGO_MANIFEST_DIR", &suite.directory)
        .envs(seeds.variable())
        .stdin(Stdio::null())
        .stdout(file.try_clone().context("sharing the output")?)
        .stderr(file)
        .spawn()
        .with_context(|| format!("starting {}", suite.program.display()))?;
    let end = match wait(&mut child, TIME_MAX)? {
        Some(status) => end(status),
        None => End::TimeLimit,
    };
    let duration = start.elapsed();
    let output = match end {
        End::Passed => String::new(),
        _ => {
            let bytes = fs::read(output).context("reading the output")?;
            String::from_utf8_lossy(&bytes).into_owned()
        }
    };
    Ok(Outcome {
        end,
        duration,
        output,
    })
}

fn end(status: ExitStatus) -> End {
    match status.signal() {
        Some(signal) => End::Signal(signal),
        None if status.success() => End::Passed,
        None => End::Failed,
    }
}

/// Waits for a process to exit; `None` if it exceeded its time limit and was killed with its descendants.
fn wait(child: &mut Child, limit: Duration) -> anyhow::Result<Option<ExitStatus>> {
    let pid = Pid::from_child(child);
    let handle = pidfd_open(pid, PidfdFlags::empty()).context("pidfd_open(2)")?;
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = left.try_into().context("the time limit fits")?;
        let mut waits = [PollFd::new(&handle, PollFlags::IN)];
        match poll(&mut waits, Some(&timeout)) {
            Ok(0) => break,
            Ok(_) => return Ok(Some(child.wait().context("waiting for a test")?)),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("poll(2)"),
        }
    }
    for process in tree(pid) {
        // It may have ended already.
        let _ = kill_process(process, Signal::KILL);
    }
    child.wait().context("waiting for a killed test")?;
    Ok(None)
}

/// A process and its descendants.
fn tree(root: Pid) -> Vec<Pid> {
    let mut found = vec![root];
    let mut at = 0;
    while let Some(process) = found.get(at) {
        let tasks = PathBuf::from(format!("/proc/{process}/task"));
        for task in fs::read_dir(tasks).into_iter().flatten().flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            let pids = children.split_whitespace().map(str::parse);
            found.extend(pids.flatten().filter_map(Pid::from_raw));
        }
        at += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Child {
        Command::new("sh")
            .args(["-c", script])
            .spawn()
            .expect("every system has sh")
    }

    #[test]
    fn exit_code_and_signal_are_distinguished() {
        for (script, expected) in [
            ("exit 0", End::Passed),
            ("exit 101", End::Failed),
            ("kill -9 $$", End::Signal(9)),
        ] {
            let status = wait(&mut shell(script), TIME_MAX).expect("it can be waited for");
            assert_eq!(status.map(end), Some(expected), "{script}");
        }
    }

    #[test]
    fn time_limit_kills_descendants() {
        let mut child = shell("sleep 1000 & wait");
        let pid = Pid::from_child(&child);
        while tree(pid).len() < 2 {
            std::thread::yield_now();
        }
        let processes = tree(pid);
        let status = wait(&mut child, Duration::ZERO).expect("it can be waited for");
        assert_eq!(status, None);
        let is_alive = |process: &Pid| {
            let state = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            !state.is_empty() && !state.contains(") Z ")
        };
        while processes.iter().any(is_alive) {
            std::thread::yield_now();
        }
    }
}
