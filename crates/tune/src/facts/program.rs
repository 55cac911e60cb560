//! CPU time of all running processes.

use std::collections::BTreeMap;

use onrush_machine::process;
use serde::Serialize;

use crate::limits::PROCESSES_MAX;
use crate::tree::Tree;

/// A process and its CPU time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Program {
    /// Program name, at most 15 bytes.
    pub name: String,
    /// CPU time in ticks of 10 ms.
    pub ticks: u64,
    /// Start time in ticks since boot.
    pub started: u64,
}

/// Reads the CPU time of every process, by PID. It opens one file per process: call it at the start and the end of a run.
pub fn read(tree: &Tree) -> BTreeMap<u32, Program> {
    let numbers = tree.numbers("/proc", "").into_iter().take(PROCESSES_MAX);
    let program = |number: usize| {
        let stat = tree.text(&format!("/proc/{number}/stat"))?;
        let (user, system) = process::ticks(&stat)?;
        let program = Program {
            name: process::name(&stat)?.to_owned(),
            ticks: user.saturating_add(system),
            started: process::field(&stat, 22)?,
        };
        Some((u32::try_from(number).ok()?, program))
    };
    numbers.filter_map(program).collect()
}
