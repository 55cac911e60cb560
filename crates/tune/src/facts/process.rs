//! One running program: its threads and the CPUs they ran on, its open files, and the connections that wait for it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::listening::{Listening, row};
use crate::cpus::CpuSet;
use crate::limits::{DESCRIPTORS_MAX, THREADS_MAX};
use crate::tree::Tree;

/// A process as it was at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Process {
    /// Its number.
    pub number: u32,
    /// The name of its program, 15 letters at most.
    pub name: String,
    /// CPUs it may run on.
    pub allowed: CpuSet,
    /// Its threads, by number.
    pub threads: BTreeMap<u32, Thread>,
    /// Files, sockets among them, that it has open; none when that cannot be seen.
    pub files: Option<u64>,
    /// How many it may have; none is unlimited or unknown.
    pub files_max: Option<u64>,
    /// Its sockets that wait for connections.
    pub listening: Vec<Listening>,
}

/// A thread.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Thread {
    /// Its name.
    pub name: String,
    /// CPU time in ticks of a hundredth of a second.
    pub ticks: u64,
    /// The CPU it ran on last.
    pub cpu: usize,
}

/// Reads a process; `None` when there is no such one any more. With the sockets of the network namespace we are in, where
/// the kernel could be asked about them.
pub fn read(tree: &Tree, number: u32, known: Option<&[Listening]>) -> Option<Process> {
    let path = format!("/proc/{number}");
    let name = tree.text(&format!("{path}/comm"))?;
    let status = tree.text(&format!("{path}/status")).unwrap_or_default();
    let allowed = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .and_then(CpuSet::parse_list)
        .unwrap_or_default();
    let threads = tree.numbers(&format!("{path}/task"), "").into_iter();
    let thread = |thread: usize| {
        let stat = tree.text(&format!("{path}/task/{thread}/stat"))?;
        Some((u32::try_from(thread).ok()?, self::thread(&stat)?))
    };
    let files = tree.names(&format!("{path}/fd"));
    let limits = super::system::limits(tree, number);
    Some(Process {
        number,
        name,
        allowed,
        threads: threads.take(THREADS_MAX).filter_map(thread).collect(),
        listening: listening(tree, &path, &files, known),
        files: (!files.is_empty()).then_some(files.len() as u64),
        files_max: limits
            .get("Max open files")
            .and_then(|(soft, _)| soft.parse().ok()),
    })
}

/// `17 (name) S …`: the name may hold anything, brackets too, and the CPU time is the 14th and 15th word of all, the CPU
/// the 39th (proc_pid_stat(5)).
fn thread(stat: &str) -> Option<Thread> {
    let (head, tail) = stat.rsplit_once(')')?;
    let words: Vec<&str> = tail.split_whitespace().collect();
    let word = |at: usize| words.get(at - 3)?.parse::<u64>().ok();
    Some(Thread {
        name: head.split_once('(')?.1.to_owned(),
        ticks: word(14)?.saturating_add(word(15)?),
        cpu: usize::try_from(word(39)?).ok()?,
    })
}

/// The listening sockets that are open in the process: of those we know already when it is in our network, else of the
/// rows of its own. A busy server has as many rows as connections.
fn listening(
    tree: &Tree,
    path: &str,
    files: &[String],
    known: Option<&[Listening]>,
) -> Vec<Listening> {
    let network = |path: &str| tree.link(&format!("{path}/ns/net"));
    let is_ours = || network(path).is_some_and(|its| network("/proc/self") == Some(its));
    let mut sockets = match known.filter(|_| is_ours()) {
        Some(known) => known.to_vec(),
        None => rows(tree, path),
    };
    let inode = |file: &String| {
        let target = tree.link(&format!("{path}/fd/{file}"))?;
        let inode = target.strip_prefix("socket:[")?.strip_suffix(']')?;
        inode.parse::<u64>().ok()
    };
    let inodes: BTreeSet<u64> = match sockets.is_empty() {
        true => BTreeSet::new(),
        false => files
            .iter()
            .take(DESCRIPTORS_MAX)
            .filter_map(inode)
            .collect(),
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
    fn sockets_of_another_network_are_found_in_the_table_of_their_own() {
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
            let sockets = listening(&tree, "/proc/7", &files, Some(&known));
            let seen = sockets
                .iter()
                .map(|socket| (socket.inode, socket.waiting, socket.limit));
            seen.collect::<Vec<_>>()
        };
        assert_eq!(found("net:[1]"), [(777, 0, Some(128))]);
        assert_eq!(found("net:[2]"), [(777, 5, None)]);
    }

    #[test]
    fn a_thread_may_be_called_anything() {
        let stat = "17 (a) b (c) S 1 1 1 0 -1 0 0 0 0 0 120 30 0 0 20 0 4 0 99 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 5 0 0";
        assert_eq!(
            thread(stat),
            Some(Thread {
                name: "a) b (c".to_owned(),
                ticks: 150,
                cpu: 5
            })
        );
        for end in 0..stat.len() - 6 {
            assert_eq!(thread(&stat[..end]), None, "cut at {end}");
        }
    }
}
