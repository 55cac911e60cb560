//! Neighbour tables (ARP and NDP): entries and limits, by rtnetlink(7). All network namespaces share them.

use std::io;

use netlink_sys::protocols::NETLINK_ROUTE;
use serde::Serialize;

use super::netlink::{self, Raw};
use super::socket::{long, number};

/// A neighbour table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Neighbours {
    /// Name: `arp_cache`, `ndisc_cache`.
    pub name: String,
    /// Entries.
    pub entries: u64,
    /// Maximum number of entries (`gc_thresh3`).
    pub most: u64,
    /// Failed allocations because the table was full (`table_fulls`).
    pub overflows: u64,
}

// Messages and attributes of include/uapi/linux/rtnetlink.h and neighbour.h.
const TABLE_NEW: u16 = 64;
const TABLE_GET: u16 = 66;
const NAME: u16 = 1;
const MOST: u16 = 4;
const CONFIG: u16 = 5;
const STATS: u16 = 7;
/// `struct ndtmsg`, which comes before the attributes.
const HEADER_BYTES: usize = 4;

pub(super) fn ask() -> io::Result<Vec<Neighbours>> {
    let question = Raw {
        kind: TABLE_GET,
        bytes: vec![0; HEADER_BYTES],
    };
    netlink::list(NETLINK_ROUTE, &question, |message| table(&message))
}

/// Parses a table; messages with the parameters of one device are skipped.
fn table(message: &Raw) -> Option<Neighbours> {
    (message.kind == TABLE_NEW).then_some(())?;
    let attributes = message.bytes.get(HEADER_BYTES..)?;
    let of = |kind: u16| netlink::attribute(attributes, kind);
    Some(Neighbours {
        name: netlink::text(attributes, NAME)?,
        // `entries` of `struct ndt_config`, after two 16-bit fields.
        entries: u64::from(number(of(CONFIG)?, 4)?),
        most: u64::from(number(of(MOST)?, 0)?),
        // `ndts_table_fulls` of `struct ndt_stats`, since Linux 4.3.
        overflows: long(of(STATS)?, 80)?,
    })
}
