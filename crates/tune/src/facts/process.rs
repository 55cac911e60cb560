//! One running program: its threads and the CPUs they ran on, its open files, and the connections that wait for it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

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

/// A socket that waits for connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listening {
    /// The port.
    pub port: u16,
    /// Connections that are complete and not accepted yet.
    pub waiting: u64,
}

/// Reads a process; `None` when there is no such one any more.
pub fn read(tree: &Tree, number: u32) -> Option<Process> {
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
        listening: listening(tree, &path, &files),
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

/// The rows of listening sockets that are open in the process. Their queue of connections stands where others have the
/// bytes that wait to be read.
fn listening(tree: &Tree, path: &str, files: &[String]) -> Vec<Listening> {
    let mut sockets = BTreeMap::new();
    for table in ["tcp", "tcp6"] {
        let text = tree
            .text(&format!("{path}/net/{table}"))
            .unwrap_or_default();
        sockets.extend(text.lines().filter_map(listener));
    }
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
    sockets.retain(|inode, _| inodes.contains(inode));
    sockets.into_values().collect()
}

/// `0: 0100007F:1F90 00000000:0000 0A 00000000:00000005 00:00000000 00000000 0 0 777 …`
fn listener(line: &str) -> Option<(u64, Listening)> {
    const LISTEN: &str = "0A";
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, local, _, LISTEN, queues, _, _, _, _, inode, ..] = words[..] else {
        return None;
    };
    let (_, port) = local.rsplit_once(':')?;
    let (_, waiting) = queues.split_once(':')?;
    let listening = Listening {
        port: u16::from_str_radix(port, 16).ok()?,
        waiting: u64::from_str_radix(waiting, 16).ok()?,
    };
    Some((inode.parse().ok()?, listening))
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn only_sockets_that_listen_have_a_queue_of_connections() {
        let row = |state: &str| {
            format!(
                "   0: 0100007F:1F90 00000000:0000 {state} 00000000:00000005 00:00000000 00000000     0        0 777 1 0 100"
            )
        };
        let expected = Listening {
            port: 8080,
            waiting: 5,
        };
        assert_eq!(listener(&row("0A")), Some((777, expected)));
        assert_eq!(listener(&row("01")), None);
        assert_eq!(
            listener("  sl  local_address rem_address   st tx_queue"),
            None
        );
    }
}
