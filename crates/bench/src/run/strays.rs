//! Programs that left their parents: each program of a run carries its name in its environment, and so does all that it
//! starts. Whatever still runs with the name of a trial that is over, or of a run that is gone, is ended.
//!
//! A process group does not hold who makes a session of its own (setsid(2)), and the kernel tells only children that
//! their parent has died.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, PidfdFlags, Signal, geteuid, pidfd_open, pidfd_send_signal};

/// The variable; its value is the name of the run's scratch directory, which begins with its process.
pub(super) const VARIABLE: &str = "ONRUSH_BENCH_RUN";

/// The name of the run whose scratch directory this is.
pub(super) fn run_name(scratch: &Path) -> String {
    let name = scratch.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Ends all processes of our user whose run `is_over` is said of; how many there were.
pub(super) fn end(is_over: impl Fn(&str) -> bool) -> usize {
    let own = std::process::id();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let others = ids.filter(|id| u32::try_from(*id) != Ok(own));
    others.filter(|id| end_one(*id, &is_over)).count()
}

/// The process is held by a descriptor while it is looked at, so that its number cannot become another's.
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

/// The run that a process belongs to. The environment of others cannot be read, nor is it ours to look at.
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
    fn who_made_a_session_of_its_own_is_found_by_its_run() {
        let run = format!("onrush-bench-test-{}", std::process::id());
        let mut child = Command::new("setsid")
            .args(["sleep", "1000"])
            .env(VARIABLE, &run)
            .stdin(Stdio::null())
            .spawn()
            .expect("setsid is there");
        assert_eq!(end(|name| name == "another run"), 0);
        // The environment is the program's from its exec on.
        while end(|name| name == run) == 0 {
            std::thread::yield_now();
        }
        let status = child.wait().expect("ours");
        assert!(!status.success());
        assert_eq!(end(|name| name == run), 0);
    }
}
