//! Sockets that wait for connections: how many wait at each, how many can, and how many were turned away. By sock_diag(7),
//! which alone knows the last two; /proc/net/tcp has the first for networks that we cannot ask.

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

/// A socket that waits for connections.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Listening {
    /// The port.
    pub port: u16,
    /// The number of its file, by which the process is found that has it open.
    pub inode: u64,
    /// Connections that are complete and not accepted yet.
    pub waiting: u64,
    /// How many may wait: what was given to listen(), and no more than net.core.somaxconn was then. The kernel takes one
    /// more. None when it cannot be asked.
    pub limit: Option<u64>,
    /// Connections and packets that it turned away since it was made. None when it cannot be asked.
    pub dropped: Option<u64>,
}

/// The sockets of one port together: one for each family of addresses, and any number that share it (SO_REUSEPORT).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Port {
    /// The port.
    pub number: u16,
    /// How many sockets it has.
    pub sockets: usize,
    /// How many of them can take no further connection.
    pub full: usize,
    /// Connections that wait at all of them.
    pub waiting: u64,
    /// How many may wait at all of them; none when that is not known of each.
    pub limit: Option<u64>,
    /// The smallest limit of one of them.
    pub limit_min: Option<u64>,
    /// What they turned away between two readings.
    pub dropped: u64,
}

/// Sockets by port, with what they turned away since an earlier reading: those that dropped or keep the most waiting
/// first.
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
        // One that was not there before has dropped everything since.
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

/// Asks the kernel about the network namespace we are in; none when it does not answer.
pub(super) fn ask() -> Option<Vec<Listening>> {
    let questions = [
        (AF_INET, SocketId::new_v4()),
        (AF_INET6, SocketId::new_v6()),
    ];
    let answers = questions.map(|(family, any)| of_family(family, any).ok());
    // A kernel without IPv6 still knows the others.
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
        // Of a listening socket these two are counts of connections, not of bytes.
        waiting: u64::from(answer.header.recv_queue),
        limit: Some(u64::from(answer.header.send_queue)),
        dropped: answer.nlas.iter().find_map(dropped),
    }
}

/// A row of /proc/net/tcp or tcp6, when it is of a listening socket. Its queue of connections stands where others have
/// the bytes that wait to be read.
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
    fn the_sockets_of_a_port_are_summed() {
        let socket = |inode: u64, port: u16, waiting: u64, dropped: u64| Listening {
            port,
            inode,
            waiting,
            limit: Some(128),
            dropped: Some(dropped),
        };
        let before = [socket(1, 80, 0, 100), socket(9, 443, 0, 5)];
        // The third is new, the fourth has the number of one that is gone, and begins to count anew.
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
    fn only_sockets_that_listen_have_a_queue_of_connections() {
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
