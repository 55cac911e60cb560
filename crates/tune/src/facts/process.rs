//! A running program, i.e. a process and its descendants: threads and their CPUs, open files, listening sockets.
//! Servers often run a process per CPU below a master process.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::listening::{Listening, row};
use crate::limits::{DESCRIPTORS_MAX, PROCESSES_MAX, THREADS_MAX};
use crate::tree::Tree;
use onrush_machine::cpus::CpuSet;
use onrush_machine::process::{field, name, on_cpu_and_queued, state, ticks, value};

/// Snapshot of a program: a process and its descendants.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Process {
    /// PID of the first process.
    pub number: u32,
    /// Program name, at most 15 characters.
    pub name: String,
    /// CPUs on which any of its threads may run.
    pub allowed: CpuSet,
    /// Threads by TID.
    pub threads: BTreeMap<u32, Thread>,
    /// Number of open files, including sockets, of the process nearest to its limit; `None` if it cannot be read.
    pub files: Option<u64>,
    /// Limit of that process; `None` if unlimited or unknown.
    pub files_max: Option<u64>,
    /// Listening sockets without duplicates.
    pub listening: Vec<Listening>,
}

impl Process {
    /// Whether all its threads are stopped, by a signal or a debugger.
    pub fn is_stopped(&self) -> bool {
        let is_stopped = |thread: &Thread| matches!(thread.state, Some('T' | 't'));
        !self.threads.is_empty() && self.threads.values().all(is_stopped)
    }
}

/// A thread.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Thread {
    /// Thread name.
    pub name: String,
    /// PID of its process.
    pub process: u32,
    /// Start time in ticks of 10 ms since boot. It distinguishes threads that had the same TID.
    pub started: u64,
    /// State: running (`R`), sleeping (`S`, `D`, `I`) or stopped (`T`, `t`), see proc_pid_stat(5).
    pub state: Option<char>,
    /// CPU time in ticks.
    pub ticks: u64,
    /// Nanoseconds spent waiting on a run queue (`schedstat`); `None` if the kernel does not count it.
    pub delayed: Option<u64>,
    /// CPU on which it ran last.
    pub cpu: usize,
    /// CPUs on which it may run.
    pub allowed: CpuSet,
}

/// Reads a program; `None` if the process does not exist. `known` are the listening sockets of the current network
/// namespace, if the kernel could be asked.
pub fn read(tree: &Tree, number: u32, known: Option<&[Listening]>) -> Option<Process> {
    let name = tree.text(&format!("/proc/{number}/comm"))?;
    let family = family(tree, number);
    let threads = threads_of(tree, &family);
    let (mut files, mut files_max, mut inodes) = (None, None, BTreeSet::new());
    let share = |files: Option<u64>, most: Option<u64>| match (files, most) {
        (Some(files), Some(most)) => files as f64 / most.max(1) as f64,
        _ => -1.0,
    };
    for member in family {
        let names = tree.names(&format!("/proc/{member}/fd"));
        let limits = super::system::limits(tree, member);
        let most = limits.get("Max open files");
        let most = most.and_then(|(soft, _)| soft.parse().ok());
        let open = (!names.is_empty()).then_some(names.len() as u64);
        if member == number || share(open, most) > share(files, files_max) {
            (files, files_max) = (open, most);
        }
        inodes.extend(sockets(tree, member, &names));
    }
    Some(Process {
        number,
        name,
        allowed: threads
            .values()
            .fold(CpuSet::new(), |all, thread| all.union(&thread.allowed)),
        threads,
        files,
        files_max,
        listening: listening(tree, number, &inodes, known),
    })
}

/// Threads of a process and its descendants by TID; empty if the process does not exist.
pub fn threads(tree: &Tree, number: u32) -> BTreeMap<u32, Thread> {
    threads_of(tree, &family(tree, number))
}

fn threads_of(tree: &Tree, family: &[u32]) -> BTreeMap<u32, Thread> {
    let mut threads = BTreeMap::new();
    for process in family {
        let path = format!("/proc/{process}/task");
        let numbers = tree.numbers(&path, "").into_iter().take(THREADS_MAX);
        threads.extend(numbers.filter_map(|number| {
            let text = |file: &str| tree.text(&format!("{path}/{number}/{file}"));
            let thread = self::thread(*process, &text("stat")?, &text("status")?)?;
            let delayed = text("schedstat").and_then(|text| Some(on_cpu_and_queued(&text)?.1));
            let thread = Thread { delayed, ..thread };
            Some((u32::try_from(number).ok()?, thread))
        }));
    }
    threads
}

/// A process and its descendants, parents first.
fn family(tree: &Tree, process: u32) -> Vec<u32> {
    let mut children: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    let processes = tree.numbers("/proc", "").into_iter().take(PROCESSES_MAX);
    for number in processes.filter_map(|number| u32::try_from(number).ok()) {
        let stat = tree.text(&format!("/proc/{number}/stat"));
        if let Some(parent) = stat.as_deref().and_then(|stat| field(stat, 4)) {
            children.entry(parent).or_default().push(number);
        }
    }
    let mut family = vec![process];
    let mut at = 0;
    while let Some(parent) = family.get(at) {
        let next = children.remove(&u64::from(*parent)).unwrap_or_default();
        // A recording may contain a cycle.
        let is_new = |child: &u32| !family.contains(child);
        let next: Vec<u32> = next.into_iter().filter(is_new).collect();
        family.extend(next);
        at += 1;
    }
    family
}

/// Parses a thread's `stat` and `status`.
pub(crate) fn thread(process: u32, stat: &str, status: &str) -> Option<Thread> {
    let (user, system) = ticks(stat)?;
    Some(Thread {
        name: name(stat)?.to_owned(),
        process,
        state: state(stat),
        started: field(stat, 22)?,
        ticks: user.saturating_add(system),
        delayed: None,
        cpu: usize::try_from(field(stat, 39)?).ok()?,
        allowed: CpuSet::parse_list(value(status, "Cpus_allowed_list:")?)?,
    })
}

/// Inodes of the sockets that a process and its descendants have open.
pub(super) fn sockets_of(tree: &Tree, number: u32) -> BTreeSet<u64> {
    let of = |member: u32| {
        let names = tree.names(&format!("/proc/{member}/fd"));
        sockets(tree, member, &names)
    };
    family(tree, number).into_iter().flat_map(of).collect()
}

/// Inodes of the sockets among the open files of a process.
fn sockets(tree: &Tree, process: u32, files: &[String]) -> Vec<u64> {
    let inode = |file: &String| {
        let target = tree.link(&format!("/proc/{process}/fd/{file}"))?;
        let inode = target.strip_prefix("socket:[")?.strip_suffix(']')?;
        inode.parse().ok()
    };
    let files = files.iter().take(DESCRIPTORS_MAX);
    files.filter_map(inode).collect()
}

/// Listening sockets among these inodes: from `known` if the process is in our network namespace, else from its
/// /proc/PID/net, which has a row per connection.
fn listening(
    tree: &Tree,
    process: u32,
    inodes: &BTreeSet<u64>,
    known: Option<&[Listening]>,
) -> Vec<Listening> {
    let path = format!("/proc/{process}");
    let network = |path: &str| tree.link(&format!("{path}/ns/net"));
    let is_ours = || network(&path).is_some_and(|its| network("/proc/self") == Some(its));
    let mut sockets = match known.filter(|_| is_ours()) {
        Some(known) => known.to_vec(),
        None => rows(tree, &path),
    };
    sockets.retain(|socket| inodes.contains(&socket.inode));
    sockets
}

fn rows(tree: &Tree, path: &str) -> Vec<Listening> {
    let mut rows = Vec::new();
    for table in ["tcp", "tcp6"] {
        let text = tree.text(&format!("{path}/net/{table}"));
        rows.extend(text.unwrap_or_default().lines().filter_map(row));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Snapshot;

    #[test]
    fn sockets_are_read_from_their_network_namespace() {
        let row =
            "0: 00000000:1F90 00000000:0000 0A 00000000:00000005 00:00000000 00000000 0 0 777 1";
        let found = |network: &str| {
            let links = [
                ("/proc/self/ns/net", "net:[1]"),
                ("/proc/7/ns/net", network),
                ("/proc/7/fd/3", "socket:[777]"),
                ("/proc/7/fd/4", "socket:[778]"),
            ];
            let tree = Tree::of_snapshot(Snapshot {
                files: [("/proc/7/net/tcp".to_owned(), row.to_owned())].into(),
                links: links
                    .map(|(path, to)| (path.to_owned(), to.to_owned()))
                    .into(),
                ..Snapshot::default()
            });
            let known = [777, 779].map(|inode| Listening {
                inode,
                limit: Some(128),
                ..Listening::default()
            });
            let files = ["3", "4"].map(str::to_owned);
            let inodes = sockets(&tree, 7, &files).into_iter().collect();
            let sockets = listening(&tree, 7, &inodes, Some(&known));
            let seen = sockets
                .iter()
                .map(|socket| (socket.inode, socket.waiting, socket.limit));
            seen.collect::<Vec<_>>()
        };
        assert_eq!(found("net:[1]"), [(777, 0, Some(128))]);
        assert_eq!(found("net:[2]"), [(777, 5, None)]);
    }

    #[test]
    fn thread_name_may_contain_parentheses() {
        let stat = "17 (a) b (c) S 1 1 1 0 -1 0 0 0 0 0 120 30 0 0 20 0 4 0 99 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 5 0 0";
        let status = "Name:\ta) b (c\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\n";
        let expected = Thread {
            name: "a) b (c".to_owned(),
            process: 17,
            state: Some('S'),
            started: 99,
            ticks: 150,
            delayed: None,
            cpu: 5,
            allowed: [0, 1].into_iter().collect(),
        };
        assert_eq!(thread(17, stat, status), Some(expected));
        for end in 0..stat.len() - 6 {
            assert_eq!(thread(17, &stat[..end], status), None, "cut at {end}");
        }
        assert_eq!(thread(17, stat, ""), None);
    }

    fn machine(processes: &[(u32, u32, &[u32])]) -> Tree {
        let mut snapshot = Snapshot::default();
        let directories = &mut snapshot.directories;
        for (process, parent, threads) in processes {
            let stat = |number: u32| {
                let zeros = |count: usize| "0 ".repeat(count);
                format!(
                    "{number} (a) b) S {parent} {}{number}00 {}",
                    zeros(17),
                    zeros(30)
                )
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
        let threads = threads(&machine(processes), 5);
        let found: Vec<_> = threads
            .iter()
            .map(|(number, thread)| (thread.process, *number, thread.started))
            .collect();
        assert_eq!(found, expected);
        for thread in threads.values() {
            assert_eq!(thread.allowed.len(), thread.process as usize + 1);
        }
    }

    #[test]
    fn program_includes_descendant_processes() {
        check(&[(4, 1, &[4])], &[]);
        check(
            &[
                (1, 0, &[1]),
                (5, 1, &[5, 9]),
                (6, 5, &[6]),
                (7, 1, &[7]),
                (8, 6, &[8]),
            ],
            &[(5, 5, 500), (6, 6, 600), (8, 8, 800), (5, 9, 900)],
        );
        check(&[(5, 6, &[5]), (6, 5, &[6])], &[(5, 5, 500), (6, 6, 600)]);
    }
}
