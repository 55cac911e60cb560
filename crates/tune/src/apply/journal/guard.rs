//! Process that undoes a run at its timeout. If it is killed, the next process that changes the machine undoes the run.

use std::fs;

use onrush_machine::process;
use serde::{Deserialize, Serialize};

/// A process that undoes a run. Its start time distinguishes it from a later process with the same PID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guard {
    /// PID.
    pub process: u32,
    pub(super) started: u64,
}

impl Guard {
    /// This process; `None` if /proc does not show it.
    pub fn own() -> Option<Guard> {
        let process = std::process::id();
        Some(Guard {
            process,
            started: started(process)?,
        })
    }

    /// Whether the process still runs.
    pub fn runs(&self) -> bool {
        started(self.process) == Some(self.started)
    }
}

/// Start time of a process; `None` if it has ended (proc_pid_stat(5): the state is field 3, the start time field 22).
fn started(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let is_over = matches!(process::state(&stat)?, 'Z' | 'X');
    process::field(&stat, 22).filter(|_| !is_over)
}
