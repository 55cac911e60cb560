//! UDP sockets: receive queue and drops of each.

use std::io;

use netlink_packet_sock_diag::constants::IPPROTO_UDP;
use serde::Serialize;

use super::socket::{self, MEMORY, number};

/// A UDP socket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Datagrams {
    /// Local port.
    pub port: u16,
    /// Socket inode.
    pub inode: u64,
    /// Unread bytes.
    pub unread: u64,
    /// Datagrams dropped since the socket was created.
    pub dropped: u64,
    /// Size of the receive buffer (SO_RCVBUF).
    pub room: u64,
}

/// Offsets of `drops` and `rcvbuf` in INET_DIAG_SKMEMINFO (SK_MEMINFO_* of include/uapi/linux/sock_diag.h).
const DROPS: usize = 8 * 4;
const ROOM: usize = 4;

pub(super) fn ask() -> io::Result<Vec<Datagrams>> {
    socket::list(IPPROTO_UDP, u32::MAX, MEMORY, |socket| {
        let memory = |at: usize| number(socket.attribute(MEMORY)?, at).map(u64::from);
        Some(Datagrams {
            port: socket.local.port(),
            inode: socket.inode,
            unread: u64::from(socket.unread),
            dropped: memory(DROPS).unwrap_or(0),
            room: memory(ROOM).unwrap_or(0),
        })
    })
}
