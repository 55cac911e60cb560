//! TCP connections at one moment: queued data, the side that has to send next, and the local ports in use.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr};

use netlink_packet_sock_diag::constants::IPPROTO_TCP;
use serde::Serialize;

use super::socket::{self, INFO, long, number};
use crate::limits::PORT_USES_MAX;

/// The connections of a program, or of a network namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Connections {
    /// Number of open connections.
    pub open: u64,
    /// Connections to a peer outside this network namespace.
    pub remote: u64,
    /// Connections with unread bytes in the receive queue.
    pub unread: u64,
    /// Connections with written bytes that TCP may not send yet (`tcpi_notsent_bytes`).
    pub unsent: u64,
    /// Number of bytes written that TCP may not send yet, on all connections.
    pub unsent_bytes: u64,
    /// Part of `unsent`: connections limited by the peer's receive window for most of their busy time.
    pub refused: u64,
    /// Connections accepted on a listening port.
    pub served: u64,
    /// Part of `served`: connections whose last data was received, not sent. Their clients wait for a response.
    pub held: u64,
    /// Part of `served`: connections that sent and received in the same kernel tick. The order is unknown.
    pub unclear: u64,
    /// Outgoing connections that wait for a response, by server.
    pub awaited: BTreeMap<SocketAddr, u64>,
    /// Outgoing connections.
    pub asking: u64,
    /// Local ports in use, the fullest destination first.
    pub ports: Vec<PortUse>,
}

/// Local ports in use for one destination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PortUse {
    /// The local address.
    pub from: IpAddr,
    /// The destination; `None` for all destinations, which matters to programs that bind before they connect.
    pub to: Option<SocketAddr>,
    /// Ports of the range in use, without TIME-WAIT ports that the kernel would reuse.
    pub used: u64,
    /// Part of the used ports: ports of the given process; `None` without a process.
    pub own: Option<u64>,
    /// Part of the used ports: ports in TIME-WAIT, which belong to no process.
    pub closed: u64,
    /// Size of the range.
    pub range: u64,
}

/// The range for outgoing connections (`ip_local_port_range`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Range {
    /// First and last port.
    pub ends: (u16, u16),
    /// Excluded ports (`ip_local_reserved_ports`).
    pub reserved: BTreeSet<u16>,
    /// Reuse of TIME-WAIT ports after one second (`tcp_tw_reuse`).
    pub reuse: Reuse,
}

/// Connections whose TIME-WAIT port the kernel reuses early.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Reuse {
    #[default]
    Never,
    Always,
    Loopback,
}

/// States of include/net/tcp_states.h.
const ESTABLISHED: u8 = 1;
const TIME_WAIT: u8 = 6;
const CLOSE_WAIT: u8 = 8;
const LISTEN: u8 = 10;
/// Length of TIME-WAIT (TCP_TIMEWAIT_LEN) and the age for reuse (`tcp_tw_reuse_delay`), in milliseconds.
const TIME_WAIT_LENGTH: u32 = 60_000;
const REUSE_AFTER: u32 = 1_000;
/// Ratio of received to sent bytes above which a connection is an upload, which gets no response until it ends.
const UPLOAD: u64 = 4;

struct Row {
    state: u8,
    local: SocketAddr,
    peer: SocketAddr,
    expires: u32,
    unread: u32,
    inode: u64,
    progress: Option<Progress>,
}

/// Fields of `struct tcp_info` (include/uapi/linux/tcp.h).
#[derive(Clone, Copy, Default)]
struct Progress {
    unsent: u64,
    /// Milliseconds since the last data sent, the last data received and the last ACK received.
    sent: u32,
    received: u32,
    acknowledged: u32,
    /// Segments in flight.
    unacknowledged: u32,
    sent_bytes: u64,
    received_bytes: u64,
    /// Microseconds with data to send, and the part limited by the peer's receive window.
    busy: u64,
    refused: u64,
}

#[derive(Debug, PartialEq, Eq)]
enum Last {
    Sent,
    Received,
    Unclear,
}

impl Progress {
    /// Compares the times of the last data. Kernel ticks are 1 to 10 ms; within one tick the ACKs decide: a request carries
    /// the ACK of the response before it, so a segment in flight or a later pure ACK belongs to a response.
    fn last(&self) -> Last {
        match self.sent.cmp(&self.received) {
            Ordering::Less => Last::Sent,
            Ordering::Greater => Last::Received,
            Ordering::Equal if self.unacknowledged > 0 || self.acknowledged < self.received => {
                Last::Sent
            }
            Ordering::Equal => Last::Unclear,
        }
    }
}

/// Sums up the TCP connections of the thread's network namespace: those with the given socket inodes, or all.
pub(super) fn ask(range: &Range, inodes: Option<&BTreeSet<u64>>) -> io::Result<Connections> {
    let rows = socket::list(IPPROTO_TCP, u32::MAX, INFO, |socket| {
        Some(Row {
            state: socket.state,
            local: socket.local,
            peer: socket.peer,
            expires: socket.expires,
            unread: socket.unread,
            inode: socket.inode,
            progress: socket.attribute(INFO).and_then(progress),
        })
    })?;
    Ok(summed(&rows, range, inodes))
}

fn progress(bytes: &[u8]) -> Option<Progress> {
    Some(Progress {
        unsent: u64::from(number(bytes, 144)?),
        sent: number(bytes, 44)?,
        received: number(bytes, 52)?,
        acknowledged: number(bytes, 56)?,
        unacknowledged: number(bytes, 24)?,
        sent_bytes: long(bytes, 120)?,
        received_bytes: long(bytes, 128)?,
        busy: long(bytes, 168).unwrap_or(0),
        refused: long(bytes, 176).unwrap_or(0),
    })
}

fn summed(rows: &[Row], range: &Range, inodes: Option<&BTreeSet<u64>>) -> Connections {
    let listening: BTreeSet<u16> = rows
        .iter()
        .filter(|row| row.state == LISTEN)
        .map(|row| row.local.port())
        .collect();
    let addresses: BTreeSet<IpAddr> = rows.iter().map(|row| row.local.ip()).collect();
    let mut sum = Connections {
        ports: ports(rows, range, inodes, &listening),
        ..Connections::default()
    };
    let is_open = |row: &&Row| matches!(row.state, ESTABLISHED | CLOSE_WAIT);
    let is_meant = |row: &&Row| inodes.is_none_or(|inodes| inodes.contains(&row.inode));
    // Without an inode the connection is still in the accept queue.
    for row in rows
        .iter()
        .filter(is_open)
        .filter(|row| row.inode != 0)
        .filter(is_meant)
    {
        let is_here = row.peer.ip().is_loopback() || addresses.contains(&row.peer.ip());
        sum.open += 1;
        sum.remote += u64::from(!is_here);
        sum.unread += u64::from(row.unread > 0);
        let progress = row.progress.unwrap_or_default();
        sum.unsent += u64::from(progress.unsent > 0);
        sum.unsent_bytes = sum.unsent_bytes.saturating_add(progress.unsent);
        let is_refused = progress.unsent > 0 && progress.refused > progress.busy / 2;
        sum.refused += u64::from(is_refused);
        if listening.contains(&row.local.port()) {
            let is_upload = progress.received_bytes > progress.sent_bytes.saturating_mul(UPLOAD)
                && progress.sent_bytes > 0;
            sum.served += 1;
            match progress.last() {
                _ if is_upload => {}
                Last::Received => sum.held += 1,
                Last::Unclear => sum.unclear += 1,
                Last::Sent => {}
            }
        } else if !(is_here && listening.contains(&row.peer.port())) {
            sum.asking += 1;
            if progress.last() == Last::Sent {
                *sum.awaited.entry(row.peer).or_default() += 1;
            }
        }
    }
    sum
}

/// Ports in use by destination, and by local address over all destinations.
fn ports(
    rows: &[Row],
    range: &Range,
    inodes: Option<&BTreeSet<u64>>,
    listening: &BTreeSet<u16>,
) -> Vec<PortUse> {
    let size = range.size();
    let mut uses: BTreeMap<(IpAddr, Option<SocketAddr>), BTreeMap<u16, &Row>> = BTreeMap::new();
    let is_taken = |row: &&Row| {
        row.state != LISTEN
            && range.has(row.local.port())
            && !listening.contains(&row.local.port())
            && !range.is_reusable(row)
    };
    for row in rows.iter().filter(is_taken) {
        for to in [Some(row.peer), None] {
            let ports = uses.entry((row.local.ip(), to)).or_default();
            ports.insert(row.local.port(), row);
        }
    }
    let of = |((from, to), ports): ((IpAddr, Option<SocketAddr>), BTreeMap<u16, &Row>)| {
        let is_own = |inodes: &BTreeSet<u64>| {
            let own = ports.values().filter(|row| inodes.contains(&row.inode));
            own.count() as u64
        };
        let closed = ports.values().filter(|row| row.state == TIME_WAIT);
        PortUse {
            from,
            to,
            used: ports.len() as u64,
            own: inodes.map(is_own),
            closed: closed.count() as u64,
            range: size,
        }
    };
    let mut uses: Vec<PortUse> = uses.into_iter().map(of).collect();
    // On a tie, prefer the entry with a destination.
    uses.sort_by_key(|one| (Reverse(one.used), one.to.is_none()));
    uses.truncate(PORT_USES_MAX);
    uses
}

impl Range {
    fn has(&self, port: u16) -> bool {
        (self.ends.0..=self.ends.1).contains(&port) && !self.reserved.contains(&port)
    }

    fn size(&self) -> u64 {
        let (first, last) = self.ends;
        let reserved = self.reserved.range(first..=last.max(first)).count() as u64;
        (u64::from(last) + 1).saturating_sub(u64::from(first) + reserved)
    }

    /// Whether the kernel would reuse the port of this TIME-WAIT connection.
    fn is_reusable(&self, row: &Row) -> bool {
        let is_old = row.expires < TIME_WAIT_LENGTH - REUSE_AFTER;
        row.state == TIME_WAIT
            && is_old
            && match self.reuse {
                Reuse::Never => false,
                Reuse::Always => true,
                Reuse::Loopback => row.local.ip().is_loopback() && row.peer.ip().is_loopback(),
            }
    }

    /// Parses `ip_local_port_range`, `ip_local_reserved_ports` and `tcp_tw_reuse`.
    pub(super) fn of(range: &str, reserved: &str, reuse: Option<&str>) -> Option<Range> {
        let mut ends = range.split_whitespace().map(str::parse);
        let ends = (ends.next()?.ok()?, ends.next()?.ok()?);
        let mut out = BTreeSet::new();
        for part in reserved.trim().split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            out.extend(first.parse::<u16>().ok()?..=last.parse().ok()?);
        }
        Some(Range {
            ends,
            reserved: out,
            reuse: match reuse {
                Some("1") => Reuse::Always,
                Some("2") => Reuse::Loopback,
                _ => Reuse::Never,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(state: u8, local: &str, peer: &str) -> Row {
        Row {
            state,
            local: local.parse().expect("an address"),
            peer: peer.parse().expect("an address"),
            expires: 0,
            unread: 0,
            inode: 7,
            progress: None,
        }
    }

    #[test]
    fn used_ports_are_counted_by_destination() {
        let range = |reuse: &str| {
            Range::of("40000 40009", "40001,40008-40009", Some(reuse)).expect("a range")
        };
        let mut rows = vec![
            row(ESTABLISHED, "10.0.0.1:40000", "10.0.0.2:80"),
            row(2, "10.0.0.1:40002", "10.0.0.2:80"),
            row(ESTABLISHED, "10.0.0.1:40002", "10.0.0.3:80"),
            // Reserved, and out of the range.
            row(ESTABLISHED, "10.0.0.1:40001", "10.0.0.2:80"),
            row(ESTABLISHED, "10.0.0.1:50000", "10.0.0.2:80"),
        ];
        for (port, expires) in [(40_003, 59_500), (40_004, 20_000)] {
            rows.push(Row {
                expires,
                inode: 0,
                ..row(TIME_WAIT, &format!("10.0.0.1:{port}"), "10.0.0.2:80")
            });
        }
        let used = |reuse: &str| {
            let found = summed(&rows, &range(reuse), Some(&[7].into())).ports;
            let first = &found[0];
            assert_eq!(first.to, Some("10.0.0.2:80".parse().expect("an address")));
            assert_eq!((first.range, first.own), (7, Some(2)));
            (first.used, first.closed)
        };
        assert_eq!(used("0"), (4, 2));
        assert_eq!(used("1"), (3, 1));
        assert_eq!(used("2"), (4, 2), "it is not the loopback");
        assert_eq!(Range::of("1 2", "x", None), None);
    }

    #[test]
    fn last_data_decides_which_side_must_send() {
        let with = |local: &str, peer: &str, sent: u32, received: u32| Row {
            progress: Some(Progress {
                sent,
                received,
                acknowledged: received,
                sent_bytes: 100,
                received_bytes: 100,
                ..Progress::default()
            }),
            ..row(ESTABLISHED, local, peer)
        };
        let rows = [
            row(LISTEN, "10.0.0.1:80", "0.0.0.0:0"),
            with("10.0.0.1:80", "10.0.0.9:5000", 40, 12),
            with("10.0.0.1:80", "10.0.0.9:5001", 12, 12),
            with("10.0.0.1:5002", "10.0.0.8:5432", 12, 40),
            with("10.0.0.1:5003", "10.0.0.8:5432", 12, 12),
        ];
        let found = summed(&rows, &Range::default(), None);
        assert_eq!((found.open, found.served, found.held), (4, 2, 1));
        assert_eq!(found.unclear, 1);
        let answered = Progress {
            unacknowledged: 1,
            ..Progress::default()
        };
        assert_eq!(answered.last(), Last::Sent);
        let acknowledged = Progress {
            sent: 50,
            received: 50,
            acknowledged: 10,
            ..Progress::default()
        };
        assert_eq!(acknowledged.last(), Last::Sent);
        let server = "10.0.0.8:5432".parse().expect("an address");
        assert_eq!((found.asking, found.awaited), (2, [(server, 1)].into()));
    }
}
