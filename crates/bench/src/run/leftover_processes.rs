//! Finds leftover processes: each program of a run has the run's name in its environment, which its descendants
//! inherit. Processes of a finished trial or run are killed.
//!
//! This also covers processes outside of the program's process group, such as after setsid(2), and without a parent.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, PidfdFlags, Signal, geteuid, pidfd_open, pidfd_send_signal};

/// The environment variable; its value is the name of the run's scratch directory, which contains the process id.
pub(super) const VARIABLE: &str = "ONRUSH_BENCH_RUN";

pub(super) fn run_name(scratch: &Path) -> String {
    let name = scratch.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Kills all processes of this user whose run satisfies `is_over`, and returns their number.
pub(super) fn end(is_over: impl Fn(&str) -> bool) -> usize {
    let own = std::process::id();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let others = ids.filter(|id| u32::try_from(*id) != Ok(own));
    others.filter(|id| end_one(*id, &is_over)).count()
}

/// Uses a pidfd, so that the id cannot be reused between check and signal.
fn end_one(id: i32, is_over: impl Fn(&str) -> bool) -> bool {
    let Some(pid) = Pid::from_raw(id) else {
        return false;
    };
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
        return false;
    };
    let is_stray = run_of(id).is_some_and(|run| is_over(&run));
    is_stray && pidfd_send_signal(&process, Signal::KILL).is_ok()
}

/// The run of a process. Processes of other users are skipped; their environment is not readable.
fn run_of(id: i32) -> Option<String> {
    let directory = format!("/proc/{id}");
    let owner = fs::metadata(&directory).ok()?;
    if std::os::unix::fs::MetadataExt::uid(&owner) != geteuid().as_raw() {
        return None;
    }
    let environment = fs::read(Path::new(&directory).join("environ")).ok()?;
    let mut entries = environment.split(|byte| *byte == 0);
    let value = entries.find_map(|entry| {
        let text = std::str::from_utf8(entry).ok()?;
        text.strip_prefix(VARIABLE)?.strip_prefix('=')
    })?;
    Some(value.to_owned())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn process_in_new_session_is_found() {
        let run = format!("onrush-bench-test-{}", std::process::id());
        let mut child = Command::new("setsid")
            .args(["sleep", "1000"])
            .env(VARIABLE, &run)
            .stdin(Stdio::null())
            .spawn()
            .expect("setsid is there");
        assert_eq!(end(|name| name == "another run"), 0);
        // The environment changes only when the child has called exec.
        while end(|name| name == run) == 0 {
            std::thread::yield_now();
        }
        let status = child.wait().expect("ours");
        assert!(!status.success());
        assert_eq!(end(|name| name == run), 0);
    }
}
