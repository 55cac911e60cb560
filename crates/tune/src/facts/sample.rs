//! A sample of queues and tables at one moment. Several samples distinguish a standing queue from a burst.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use onrush_machine::process::number;
use serde::Serialize;

use super::connection::{self, Connections, Range};
use super::datagram::{self, Datagrams};
use super::link::{self, Link};
use super::neighbour::{self, Neighbours};
use super::{listening, namespace, process};
use crate::tree::Tree;

/// Samples in one diagnosis after the first. Each lists every connection, so there are few; eight are enough to distinguish a
/// standing queue from chance.
pub const SAMPLES: u32 = 8;

/// Queues and tables of the network namespace of the given process, or of this program. `None` marks what could not be read.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Sample {
    /// Lengths of the accept queues, by port.
    pub unaccepted: Option<BTreeMap<u16, u64>>,
    /// TCP connections.
    pub connections: Option<Connections>,
    /// UDP sockets.
    pub datagrams: Option<Vec<Datagrams>>,
    /// Links except the loopback.
    pub links: Option<BTreeMap<String, Link>>,
    /// Neighbour tables.
    pub neighbours: Option<Vec<Neighbours>>,
    /// Connection tracking; `None` without the module.
    pub tracked: Option<ConnectionTracking>,
    /// Threads in uninterruptible sleep (state `D`), of the process or of the machine.
    pub blocked: Option<u64>,
    /// Whether the process is in another network namespace, or its namespace is unknown.
    pub is_elsewhere: bool,
}

/// The connection tracking table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ConnectionTracking {
    /// Entries.
    pub entries: u64,
    /// Maximum number of entries.
    pub most: u64,
    /// Packets dropped and entries evicted because the table was full.
    pub dropped: u64,
}

/// Takes a sample. It lists every socket: call it a few times in a run.
pub fn read(tree: &Tree, process: Option<u32>) -> Sample {
    let mut sample = Sample {
        blocked: blocked(tree, process),
        ..Sample::default()
    };
    if !tree.is_live() {
        return sample;
    }
    let inodes = process.map(|process| process::sockets_of(tree, process));
    let is_other = match process {
        Some(process) => namespace::is_other(tree, process),
        None => Some(false),
    };
    sample.is_elsewhere = is_other != Some(false);
    let network = match (is_other, process) {
        (Some(false), _) => Some(network(tree, inodes.as_ref())),
        // /proc/sys/net shows the namespace of the reading thread.
        (Some(true), Some(process)) => namespace::within(process, || {
            let tree = Tree::open(Path::new("/")).ok()?;
            Some(network(&tree, inodes.as_ref()))
        })
        .flatten(),
        _ => None,
    };
    Sample {
        // A wait may be shorter than this function: check again at its end.
        blocked: sample.blocked.max(blocked(tree, process)),
        is_elsewhere: sample.is_elsewhere,
        ..network.unwrap_or_default()
    }
}

/// Reads the thread's network namespace.
fn network(tree: &Tree, inodes: Option<&BTreeSet<u64>>) -> Sample {
    let setting = |name: &str| tree.text(&format!("/proc/sys/net/ipv4/{name}"));
    let range = setting("ip_local_port_range").and_then(|range| {
        let reserved = setting("ip_local_reserved_ports").unwrap_or_default();
        Range::of(&range, &reserved, setting("tcp_tw_reuse").as_deref())
    });
    Sample {
        unaccepted: listening::ask().map(|sockets| {
            let mut ports = BTreeMap::new();
            let is_meant =
                |inode: u64| inodes.is_none_or(|inodes: &BTreeSet<u64>| inodes.contains(&inode));
            for socket in sockets.iter().filter(|socket| is_meant(socket.inode)) {
                *ports.entry(socket.port).or_default() += socket.waiting;
            }
            ports
        }),
        connections: range.and_then(|range| connection::ask(&range, inodes).ok()),
        datagrams: datagram::ask().ok().map(|mut sockets| {
            sockets.retain(|socket| inodes.is_none_or(|inodes| inodes.contains(&socket.inode)));
            sockets
        }),
        links: link::ask().ok(),
        neighbours: neighbour::ask().ok().filter(|tables| !tables.is_empty()),
        tracked: tracked(tree),
        ..Sample::default()
    }
}

fn tracked(tree: &Tree) -> Option<ConnectionTracking> {
    let number = |name: &str| tree.value(&format!("/proc/sys/net/netfilter/{name}"));
    let text = tree.text("/proc/thread-self/net/stat/nf_conntrack");
    Some(ConnectionTracking {
        entries: number("nf_conntrack_count")?,
        most: number("nf_conntrack_max")?,
        dropped: text.map_or(0, |text| untracked(&text)),
    })
}

/// Sums `drop` and `early_drop`: a line of names, then one line per CPU in hexadecimal.
fn untracked(text: &str) -> u64 {
    let mut lines = text.lines();
    let names: Vec<&str> = lines
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let is_meant = |name: &str| ["drop", "early_drop"].contains(&name);
    let row = |line: &str| {
        let columns = names.iter().zip(line.split_whitespace());
        columns
            .filter(|(name, _)| is_meant(name))
            .filter_map(|(_, word)| u64::from_str_radix(word, 16).ok())
            .fold(0, u64::saturating_add)
    };
    lines.map(row).fold(0, u64::saturating_add)
}

/// Threads in state `D` of a process and its descendants, or of the machine (`procs_blocked`).
fn blocked(tree: &Tree, process: Option<u32>) -> Option<u64> {
    let Some(process) = process else {
        let stat = tree.text("/proc/stat")?;
        return number(&stat, "procs_blocked ");
    };
    let threads = process::threads(tree, process);
    let blocked = threads.values().filter(|thread| thread.state == Some('D'));
    (!threads.is_empty()).then(|| blocked.count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracking_drops_are_summed_over_cpus() {
        let text = "entries searched insert drop early_drop\n0000000a 00 00 00000010 01\n0000000a 00 00 00 02\n";
        assert_eq!(untracked(text), 0x13);
        assert_eq!(untracked(""), 0);
    }
}
