//! Versions of programs, from the version commands in the experiment file.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use super::child::{Child, file_of};
use super::interrupt::Interrupt;
use super::leftover_processes::{self, run_name};
use crate::limits::{READY_POLL, STOP_WAIT_MAX, VERSION_WAIT_MAX};

/// Runs version commands. Kills all remaining processes of a command, so that none of them runs during trials.
pub(super) struct Versions<'a> {
    directory: PathBuf,
    run: String,
    interrupt: &'a Interrupt,
}

impl<'a> Versions<'a> {
    pub(super) fn below(root: &Path, interrupt: &'a Interrupt) -> std::io::Result<Versions<'a>> {
        let directory = root.join("version");
        std::fs::create_dir_all(&directory)?;
        Ok(Versions {
            directory,
            run: run_name(root),
            interrupt,
        })
    }

    /// The first line that a version command prints on either output; some exit with an error after it (wrk does). A
    /// command that does not end within [`VERSION_WAIT_MAX`] is killed and its output used.
    ///
    /// `None` if it prints nothing or cannot be started, or if a signal was received.
    pub(super) fn of(&self, command: &[String]) -> Option<String> {
        file_of(command.first()?)?;
        let child = Child::start(command, &self.directory, &self.run).ok()?;
        let deadline = Instant::now() + VERSION_WAIT_MAX;
        while !child.has_ended() && !child.exceeds_output_limit() && Instant::now() < deadline {
            if self.interrupt.is_requested() {
                return None;
            }
            thread::sleep(READY_POLL);
        }
        let said = child.first_line();
        drop(child);
        let deadline = Instant::now() + STOP_WAIT_MAX;
        // A killed process is visible until it has exited.
        while leftover_processes::end(|run| run == self.run) > 0 && Instant::now() < deadline {
            thread::sleep(READY_POLL);
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The version printed by `script`, and the name of its run.
    fn said(script: &str) -> (Option<String>, String) {
        let root = tempfile::tempdir().expect("a directory");
        let interrupt = Interrupt::listen().expect("signals can be listened for");
        let versions = Versions::below(root.path(), &interrupt).expect("there is room");
        let command = ["sh", "-c", script].map(String::from);
        (versions.of(&command), run_name(root.path()))
    }

    #[test]
    fn version_is_first_line_of_stdout_or_stderr() {
        for (script, expected) in [
            ("echo; echo ' wrk 4.1 '; exit 1", Some("wrk 4.1")),
            ("echo nginx version: 1.2 >&2", Some("nginx version: 1.2")),
            ("printf '\\033[31m1.0\\n'", Some("[31m1.0")),
            ("exit 1", None),
        ] {
            assert_eq!(said(script).0.as_deref(), expected, "{script}");
        }
    }

    #[test]
    fn child_processes_of_version_command_are_killed() {
        // A process in its own session keeps the output open; it is running when its line appears.
        let (version, run) =
            said("setsid sh -c 'echo 1.0; kill -STOP $$' & until [ -s /proc/$$/fd/1 ]; do :; done");
        assert_eq!(version.as_deref(), Some("1.0"));
        assert_eq!(
            leftover_processes::end(|name| name == run),
            0,
            "somebody was left"
        );
    }

    #[test]
    fn hanging_version_command_is_killed() {
        let (version, run) = said("echo 1.0; sleep 1000; echo too late");
        assert_eq!(version.as_deref(), Some("1.0"));
        assert_eq!(
            leftover_processes::end(|name| name == run),
            0,
            "somebody was left"
        );
        assert_eq!(said("yes").0.as_deref(), Some("y"));
    }
}
