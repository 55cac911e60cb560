//! Connections with unread data, as a stalled program leaves them.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::tree::Tree;

/// Unread data at the time of a sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Unread {
    /// Number of connections with unread bytes.
    pub connections: u64,
    /// Number of unread bytes on all connections.
    pub bytes: u64,
}

/// Reads the unread data of a process and its descendants, or of the current network namespace. It reads a row per
/// connection: call it once at the end of a run.
pub fn read(tree: &Tree, process: Option<u32>) -> Unread {
    let inodes = process.map(|process| super::process::sockets_of(tree, process));
    let place = process.map_or_else(|| "/proc".to_owned(), |process| format!("/proc/{process}"));
    let mut unread = Unread::default();
    for table in ["tcp", "tcp6"] {
        let text = tree
            .text(&format!("{place}/net/{table}"))
            .unwrap_or_default();
        let bytes = text
            .lines()
            .filter_map(|line| waiting(line, inodes.as_ref()));
        for bytes in bytes.filter(|bytes| *bytes > 0) {
            unread.connections += 1;
            unread.bytes = unread.bytes.saturating_add(bytes);
        }
    }
    unread
}

/// Unread bytes in a row of /proc/net/tcp, if its inode is among these.
///
/// `0: 0100007F:1F90 0100007F:C350 01 00000000:00000075 00:00000000 00000000 0 0 777 …`
fn waiting(line: &str, inodes: Option<&BTreeSet<u64>>) -> Option<u64> {
    /// ESTABLISHED and CLOSE_WAIT (include/net/tcp_states.h).
    const STATES: [&str; 2] = ["01", "08"];
    let mut words = line.split_whitespace();
    let state = words.nth(3).filter(|state| STATES.contains(state));
    let (_, queue) = state.and(words.next())?.split_once(':')?;
    let inode: u64 = words.nth(4)?.parse().ok()?;
    let is_meant = inodes.is_none_or(|inodes| inodes.contains(&inode));
    u64::from_str_radix(queue, 16).ok().filter(|_| is_meant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unread_bytes_are_parsed_from_proc_net_tcp() {
        let row = |state: &str, queue: &str| {
            format!(
                "   0: 0100007F:1F90 0100007F:C350 {state} 00000000:{queue} 00:00000000 00000000  1000        0 777 1 0"
            )
        };
        let ours: BTreeSet<u64> = [777].into();
        let theirs: BTreeSet<u64> = [778].into();
        assert_eq!(waiting(&row("01", "00000075"), Some(&ours)), Some(0x75));
        assert_eq!(waiting(&row("08", "00000001"), None), Some(1));
        assert_eq!(waiting(&row("0A", "00000081"), None), None, "it listens");
        assert_eq!(waiting(&row("01", "00000075"), Some(&theirs)), None);
        assert_eq!(waiting("  sl  local_address rem_address   st", None), None);
        assert_eq!(waiting("", None), None);
    }
}
