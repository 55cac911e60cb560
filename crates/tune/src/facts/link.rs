//! Links of a network namespace: traffic and queueing disciplines, by rtnetlink(7).

use std::collections::BTreeMap;
use std::io;

use netlink_sys::protocols::NETLINK_ROUTE;
use serde::Serialize;

use super::netlink::{self, Raw};
use super::qdisc::{
    INGRESS, LINK_BYTES, LINK_GET, LINK_NAME, LINK_NEW, QDISC_BYTES, QDISC_GET, QDISC_KIND,
    QDISC_NEW,
};
use super::socket::{long, number};

/// A link and its traffic counters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Packets received.
    pub received_packets: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Queueing disciplines; empty for `noqueue`.
    pub disciplines: Vec<Discipline>,
}

/// A queueing discipline and its counters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Discipline {
    /// Handle and parent, unique on the link.
    pub handle: (u32, u32),
    /// Kind: `tbf`, `fq_codel`.
    pub kind: String,
    /// Rate limit in bytes per second; `None` without one, or when the rate is in classes (`htb`).
    pub rate: Option<u64>,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Queued bytes (`backlog`).
    pub waiting: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// Packets delayed by a rate limit (`overlimits`).
    pub held: u64,
}

// Attributes of include/uapi/linux/if_link.h, rtnetlink.h, gen_stats.h and pkt_sched.h.
const STATS: u16 = 23;
const OPTIONS: u16 = 2;
const STATS2: u16 = 7;
const BASIC: u16 = 1;
const QUEUE: u16 = 3;
const TBF_PARAMETERS: u16 = 1;
const TBF_RATE: u16 = 4;
const CAKE_RATE: u16 = 2;
/// Offset of `rate.rate` in `struct tc_tbf_qopt`.
const RATE: usize = 8;

/// Lists the links of the thread's network namespace except the loopback.
pub(super) fn ask() -> io::Result<BTreeMap<String, Link>> {
    let question = |kind: u16, bytes: usize| Raw {
        kind,
        bytes: vec![0; bytes],
    };
    let links = question(LINK_GET, LINK_BYTES);
    let links = netlink::list(NETLINK_ROUTE, &links, |message| link(&message))?;
    let disciplines = question(QDISC_GET, QDISC_BYTES);
    // A kernel without traffic control rejects the message.
    let disciplines = netlink::list(NETLINK_ROUTE, &disciplines, |message| discipline(&message));
    let mut by_number: BTreeMap<u32, (String, Link)> = links
        .into_iter()
        .map(|(number, name, link)| (number, (name, link)))
        .collect();
    for (number, discipline) in disciplines.unwrap_or_default() {
        if let Some((_, link)) = by_number.get_mut(&number) {
            link.disciplines.push(discipline);
        }
    }
    let mut links: BTreeMap<String, Link> = by_number.into_values().collect();
    links.remove("lo");
    Ok(links)
}

fn link(message: &Raw) -> Option<(u32, String, Link)> {
    (message.kind == LINK_NEW).then_some(())?;
    let (header, attributes) = message.bytes.split_at_checked(LINK_BYTES)?;
    // `struct rtnl_link_stats64`: rx_packets, tx_packets, rx_bytes, tx_bytes.
    let stats = netlink::attribute(attributes, STATS)?;
    let link = Link {
        received_packets: long(stats, 0)?,
        sent_packets: long(stats, 8)?,
        received_bytes: long(stats, 16)?,
        sent_bytes: long(stats, 24)?,
        disciplines: Vec::new(),
    };
    Some((
        number(header, 4)?,
        netlink::text(attributes, LINK_NAME)?,
        link,
    ))
}

fn discipline(message: &Raw) -> Option<(u32, Discipline)> {
    (message.kind == QDISC_NEW).then_some(())?;
    let (header, attributes) = message.bytes.split_at_checked(QDISC_BYTES)?;
    let handle = (number(header, 8)?, number(header, 12)?);
    (handle.1 != INGRESS).then_some(())?;
    let kind = netlink::text(attributes, QDISC_KIND)?;
    let stats = netlink::attribute(attributes, STATS2)?;
    let (basic, queue) = (
        netlink::attribute(stats, BASIC)?,
        netlink::attribute(stats, QUEUE)?,
    );
    let queue = |at: usize| number(queue, at).map(u64::from);
    let options = netlink::attribute(attributes, OPTIONS);
    let discipline = Discipline {
        handle,
        rate: options.and_then(|options| rate(&kind, options)),
        sent_bytes: long(basic, 0)?,
        sent_packets: u64::from(number(basic, 8)?),
        // `struct gnet_stats_queue`: qlen, backlog, drops, requeues, overlimits.
        waiting: queue(4)?,
        dropped: queue(8)?,
        held: queue(16)?,
        kind,
    };
    Some((number(header, 4)?, discipline))
}

fn rate(kind: &str, options: &[u8]) -> Option<u64> {
    let of = |attribute: u16| netlink::attribute(options, attribute);
    let rate = match kind {
        "tbf" => match of(TBF_RATE) {
            Some(rate) => long(rate, 0),
            None => number(of(TBF_PARAMETERS)?, RATE).map(u64::from),
        },
        "cake" => long(of(CAKE_RATE)?, 0),
        _ => None,
    };
    rate.filter(|rate| *rate > 0)
}
