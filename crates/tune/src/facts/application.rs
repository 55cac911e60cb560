//! A running program with all its processes: the threads that can be given CPUs.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cpus::CpuSet;
use crate::limits::{PROCESSES_MAX, THREADS_MAX};
use crate::tree::Tree;

/// A thread, and what tells it from another that is given its number later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Thread {
    /// The process it is of.
    pub process: u32,
    /// Its number.
    pub thread: u32,
    /// When it started, in ticks of a hundredth of a second since the machine did.
    pub started: u64,
    /// CPUs it may run on.
    pub allowed: CpuSet,
}

/// The threads of a process and of all that it started, directly or not: servers often run one process for each CPU
/// below one that watches them. By their numbers; empty when there is no such process.
pub fn read(tree: &Tree, process: u32) -> Vec<Thread> {
    let mut threads = Vec::new();
    for process in family(tree, process) {
        let path = format!("/proc/{process}/task");
        let of_process = tree.numbers(&path, "").into_iter().take(THREADS_MAX);
        threads.extend(of_process.filter_map(|thread| {
            let thread = u32::try_from(thread).ok()?;
            Some(Thread {
                process,
                thread,
                started: started(&tree.text(&format!("{path}/{thread}/stat"))?)?,
                allowed: allowed(&tree.text(&format!("{path}/{thread}/status"))?)?,
            })
        }));
    }
    threads
}

/// A process and its descendants, the oldest first.
fn family(tree: &Tree, process: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let processes = tree.numbers("/proc", "").into_iter().take(PROCESSES_MAX);
    for number in processes.filter_map(|number| u32::try_from(number).ok()) {
        let stat = tree.text(&format!("/proc/{number}/stat"));
        if let Some(parent) = stat.as_deref().and_then(|stat| word(stat, 4)) {
            children.entry(parent as u32).or_default().push(number);
        }
    }
    let mut family = vec![process];
    let mut at = 0;
    while let Some(parent) = family.get(at) {
        let next = children.remove(parent).unwrap_or_default();
        // Nobody is his own grandfather, but a recording may say so.
        let is_new = |child: &u32| !family.contains(child);
        let next: Vec<u32> = next.into_iter().filter(is_new).collect();
        family.extend(next);
        at += 1;
    }
    family
}

/// When a thread started, by its `stat`.
pub(crate) fn started(stat: &str) -> Option<u64> {
    word(stat, 22)
}

/// The CPUs a thread may run on, by its `status`.
pub(crate) fn allowed(status: &str) -> Option<CpuSet> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    CpuSet::parse_list(line)
}

/// A number of `17 (name) S …`, counted as proc_pid_stat(5) does. The name may hold anything, brackets too.
fn word(stat: &str, number: usize) -> Option<u64> {
    let (_, behind) = stat.rsplit_once(')')?;
    behind
        .split_whitespace()
        .nth(number.checked_sub(3)?)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Snapshot;

    fn machine(processes: &[(u32, u32, &[u32])]) -> Tree {
        let mut snapshot = Snapshot::default();
        let directories = &mut snapshot.directories;
        for (process, parent, threads) in processes {
            let stat = |number: u32| {
                format!("{number} (a) b) S {parent} 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 {number}00 0")
            };
            let name = |number: &u32| number.to_string();
            let path = format!("/proc/{process}");
            directories
                .entry("/proc".to_owned())
                .or_default()
                .push(name(process));
            directories.insert(format!("{path}/task"), threads.iter().map(name).collect());
            let files = &mut snapshot.files;
            files.insert(format!("{path}/stat"), stat(*process));
            for thread in *threads {
                let path = format!("{path}/task/{thread}");
                files.insert(format!("{path}/stat"), stat(*thread));
                files.insert(
                    format!("{path}/status"),
                    format!("Name:\ta\nCpus_allowed:\tff\nCpus_allowed_list:\t0-{process}\n"),
                );
            }
        }
        Tree::of_snapshot(snapshot)
    }

    #[track_caller]
    fn check(processes: &[(u32, u32, &[u32])], expected: &[(u32, u32, u64)]) {
        let threads = read(&machine(processes), 5);
        let found: Vec<_> = threads
            .iter()
            .map(|thread| (thread.process, thread.thread, thread.started))
            .collect();
        assert_eq!(found, expected);
        for thread in threads {
            assert_eq!(thread.allowed.len(), thread.process as usize + 1);
        }
    }

    #[test]
    fn a_program_is_a_process_with_all_that_it_started() {
        check(&[(4, 1, &[4])], &[]);
        check(
            &[
                (1, 0, &[1]),
                (5, 1, &[5, 9]),
                (6, 5, &[6]),
                (7, 1, &[7]),
                (8, 6, &[8]),
            ],
            &[(5, 5, 500), (5, 9, 900), (6, 6, 600), (8, 8, 800)],
        );
        check(&[(5, 6, &[5]), (6, 5, &[6])], &[(5, 5, 500), (6, 6, 600)]);
    }
}
