//! Listening sockets: queue lengths, limits and drops, by sock_diag(7). /proc/net/tcp contains only the queue lengths,
//! and is used for other network namespaces.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;

use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{
    ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags,
};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use serde::{Deserialize, Serialize};

use super::netlink;

/// A listening socket.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Listening {
    /// Local port.
    pub port: u16,
    /// Socket inode, which identifies its process.
    pub inode: u64,
    /// Length of the accept queue.
    pub waiting: u64,
    /// Limit of the accept queue: the backlog given to listen(), capped by net.core.somaxconn at that time. The kernel
    /// accepts one more. `None` if unknown.
    pub limit: Option<u64>,
    /// Connections and packets dropped since the socket was created; `None` if unknown.
    pub dropped: Option<u64>,
}

/// All sockets of one port: one per address family, and any number with SO_REUSEPORT.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Port {
    /// Port number.
    pub number: u16,
    /// Number of sockets.
    pub sockets: usize,
    /// Number of sockets with a full accept queue.
    pub full: usize,
    /// Sum of the queue lengths.
    pub waiting: u64,
    /// Sum of the limits; `None` unless all are known.
    pub limit: Option<u64>,
    /// Smallest limit.
    pub limit_min: Option<u64>,
    /// Connections and packets dropped between two readings.
    pub dropped: u64,
}

/// Groups sockets by port, with the drops since an earlier reading; most drops first, then longest queues.
pub fn ports(before: &[Listening], after: &[Listening]) -> Vec<Port> {
    let then: BTreeMap<u64, u64> = before
        .iter()
        .filter_map(|socket| Some((socket.inode, socket.dropped?)))
        .collect();
    let mut ports: BTreeMap<u16, Port> = BTreeMap::new();
    for socket in after {
        let port = ports.entry(socket.port).or_insert_with(|| Port {
            number: socket.port,
            limit: Some(0),
            ..Port::default()
        });
        let dropped = socket.dropped.unwrap_or(0);
        // A new socket has dropped everything since.
        let before = then.get(&socket.inode).copied().unwrap_or(0);
        port.sockets += 1;
        port.full += usize::from(socket.limit.is_some_and(|limit| socket.waiting > limit));
        port.waiting = port.waiting.saturating_add(socket.waiting);
        port.limit = port
            .limit
            .zip(socket.limit)
            .map(|(sum, limit)| sum.saturating_add(limit));
        port.limit_min = port.limit_min.into_iter().chain(socket.limit).min();
        port.dropped = port.dropped.saturating_add(dropped.saturating_sub(before));
    }
    let mut ports: Vec<Port> = ports.into_values().collect();
    ports.sort_by_key(|port| Reverse((port.dropped, port.waiting)));
    ports
}

/// Lists the listening sockets of the current network namespace; `None` if the kernel does not answer.
pub(super) fn ask() -> Option<Vec<Listening>> {
    let questions = [
        (AF_INET, SocketId::new_v4()),
        (AF_INET6, SocketId::new_v6()),
    ];
    let answers = questions.map(|(family, any)| of_family(family, any).ok());
    // A kernel without IPv6 still lists IPv4.
    let known: Vec<Vec<Listening>> = answers.into_iter().flatten().collect();
    (!known.is_empty()).then(|| known.concat())
}

fn of_family(family: u8, any: SocketId) -> io::Result<Vec<Listening>> {
    let question = SockDiagMessage::InetRequest(InetRequest {
        family,
        protocol: IPPROTO_TCP,
        extensions: ExtensionFlags::SKMEMINFO,
        states: StateFlags::LISTEN,
        socket_id: any,
    });
    netlink::list(NETLINK_SOCK_DIAG, &question, |answer| match answer {
        SockDiagMessage::InetResponse(answer) => Some(listening(&answer)),
        _ => None,
    })
}

fn listening(answer: &InetResponse) -> Listening {
    let dropped = |attribute: &Nla| match attribute {
        Nla::MemInfo(memory) => Some(u64::from(memory.drops)),
        _ => None,
    };
    Listening {
        port: answer.header.socket_id.source_port,
        inode: u64::from(answer.header.inode),
        // For a listening socket these two fields are numbers of connections, not bytes.
        waiting: u64::from(answer.header.recv_queue),
        limit: Some(u64::from(answer.header.send_queue)),
        dropped: answer.nlas.iter().find_map(dropped),
    }
}

/// Parses a row of /proc/net/tcp or tcp6 of a listening socket. The second queue is its accept queue.
///
/// `0: 0100007F:1F90 00000000:0000 0A 00000000:00000005 00:00000000 00000000 0 0 777 …`
pub(super) fn row(line: &str) -> Option<Listening> {
    const LISTEN: &str = "0A";
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, local, _, LISTEN, queues, _, _, _, _, inode, ..] = words[..] else {
        return None;
    };
    let (_, port) = local.rsplit_once(':')?;
    let (_, waiting) = queues.split_once(':')?;
    Some(Listening {
        port: u16::from_str_radix(port, 16).ok()?,
        inode: inode.parse().ok()?,
        waiting: u64::from_str_radix(waiting, 16).ok()?,
        limit: None,
        dropped: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reuseport_sockets_are_summed_by_port() {
        let socket = |inode: u64, port: u16, waiting: u64, dropped: u64| Listening {
            port,
            inode,
            waiting,
            limit: Some(128),
            dropped: Some(dropped),
        };
        let before = [socket(1, 80, 0, 100), socket(9, 443, 0, 5)];
        // The third is new; the fourth has the inode of a closed one, so its counter starts again.
        let after = [
            socket(1, 80, 129, 117),
            socket(2, 80, 3, 0),
            socket(3, 8080, 4, 2),
            socket(9, 443, 0, 3),
        ];
        let port = |number, sockets, full, waiting, limit, dropped| Port {
            number,
            sockets,
            full,
            waiting,
            limit: Some(limit),
            limit_min: Some(128),
            dropped,
        };
        assert_eq!(
            ports(&before, &after),
            [
                port(80, 2, 1, 132, 256, 17),
                port(8080, 1, 0, 4, 128, 2),
                port(443, 1, 0, 0, 128, 0),
            ]
        );
        let unknown = Listening {
            limit: None,
            ..socket(4, 80, 1, 0)
        };
        let both = ports(&[], &[socket(1, 80, 129, 117), unknown]);
        assert_eq!((both[0].limit, both[0].limit_min), (None, Some(128)));
    }

    #[test]
    fn only_listening_sockets_have_accept_queue() {
        let line = |state: &str| {
            format!(
                "   0: 0100007F:1F90 00000000:0000 {state} 00000000:00000005 00:00000000 00000000     0        0 777 1 0 100"
            )
        };
        let expected = Listening {
            port: 8080,
            inode: 777,
            waiting: 5,
            ..Listening::default()
        };
        assert_eq!(row(&line("0A")), Some(expected));
        assert_eq!(row(&line("01")), None);
        assert_eq!(row("  sl  local_address rem_address   st tx_queue"), None);
    }
}
