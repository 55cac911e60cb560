//! The process that undoes a run when its time is over. When that process was killed, the run is left to the next one
//! that changes the machine.

use std::fs;

use serde::{Deserialize, Serialize};

/// A process that undoes a run, told from another that gets its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guard {
    /// Its number.
    pub process: u32,
    /// When it started, in ticks since the start of the machine.
    pub(super) started: u64,
}

impl Guard {
    /// This process; none where /proc does not show it.
    pub fn own() -> Option<Guard> {
        let process = std::process::id();
        Some(Guard {
            process,
            started: started(process)?,
        })
    }

    /// Whether it still runs.
    pub fn runs(&self) -> bool {
        started(self.process) == Some(self.started)
    }
}

/// When a process started; none when it has ended (proc_pid_stat(5): the state is the third field, the time the 22nd).
fn started(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?;
    let is_over = state.starts_with(['Z', 'X']);
    fields.nth(18)?.parse().ok().filter(|_| !is_over)
}
