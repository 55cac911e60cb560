//! Queueing disciplines of interfaces, by rtnetlink(7).

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use netlink_sys::protocols::NETLINK_ROUTE;
use serde::{Deserialize, Serialize};

use super::netlink::{self, Raw};
use super::socket::number;

/// Queueing disciplines of an interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Qdisc {
    /// Root discipline: `fq`, `pfifo_fast`, `noqueue`, or `mq`, which only distributes to one discipline per queue.
    pub root: String,
    /// Kinds of the child disciplines, without duplicates; empty if there are none or they are unknown.
    pub below: Vec<String>,
}

impl Qdisc {
    /// Disciplines in which packets are queued. The children of an `mq`, if unknown, are the default discipline.
    pub fn leaves<'here>(&'here self, default: Option<&'here str>) -> Vec<&'here str> {
        if !self.below.is_empty() {
            return self.below.iter().map(String::as_str).collect();
        }
        match self.root.as_str() {
            "mq" => default.into_iter().collect(),
            root => vec![root],
        }
    }
}

// Messages and attributes of include/uapi/linux/rtnetlink.h and if_link.h.
pub(super) const LINK_NEW: u16 = 16;
pub(super) const LINK_GET: u16 = 18;
pub(super) const QDISC_NEW: u16 = 36;
pub(super) const QDISC_GET: u16 = 38;
pub(super) const LINK_NAME: u16 = 3;
const LINK_QDISC: u16 = 6;
pub(super) const QDISC_KIND: u16 = 1;
/// Sizes of `struct ifinfomsg` and `struct tcmsg`, before the attributes; the interface's number is at offset 4.
pub(super) const LINK_BYTES: usize = 16;
pub(super) const QDISC_BYTES: usize = 20;
/// Parent of a root discipline (include/uapi/linux/pkt_sched.h).
const ROOT: u32 = 0xFFFF_FFFF;
/// Parent of ingress disciplines, which do not queue packets.
pub(super) const INGRESS: u32 = 0xFFFF_FFF1;

/// Reads the disciplines of the current network namespace by interface; `None` if the kernel does not answer.
pub fn ask() -> Option<BTreeMap<String, Qdisc>> {
    let links = list(LINK_GET, LINK_BYTES, link).ok()?;
    // A kernel without traffic control still reports the roots.
    let mut below: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
    for (index, kind) in list(QDISC_GET, QDISC_BYTES, self::below).unwrap_or_default() {
        below.entry(index).or_default().insert(kind);
    }
    let of = |(index, name, root): (u32, String, String)| {
        let below = below.remove(&index).unwrap_or_default();
        let below = below.into_iter().collect();
        (name, Qdisc { root, below })
    };
    Some(links.into_iter().map(of).collect())
}

/// Interface numbers of the current network namespace by name.
pub(super) fn links() -> io::Result<BTreeMap<String, u32>> {
    let links = list(LINK_GET, LINK_BYTES, named)?.into_iter();
    Ok(links.map(|(number, name)| (name, number)).collect())
}

fn list<T>(kind: u16, bytes: usize, understand: fn(&Raw) -> Option<T>) -> io::Result<Vec<T>> {
    let question = Raw {
        kind,
        bytes: vec![0; bytes],
    };
    netlink::list(NETLINK_ROUTE, &question, |message| understand(&message))
}

fn link(message: &Raw) -> Option<(u32, String, String)> {
    let (number, name) = named(message)?;
    let attributes = message.bytes.get(LINK_BYTES..)?;
    Some((number, name, netlink::text(attributes, LINK_QDISC)?))
}

fn named(message: &Raw) -> Option<(u32, String)> {
    (message.kind == LINK_NEW).then_some(())?;
    let (header, attributes) = message.bytes.split_at_checked(LINK_BYTES)?;
    Some((number(header, 4)?, netlink::text(attributes, LINK_NAME)?))
}

/// Number of the interface and kind of a child discipline.
fn below(message: &Raw) -> Option<(u32, String)> {
    (message.kind == QDISC_NEW).then_some(())?;
    let (header, attributes) = message.bytes.split_at_checked(QDISC_BYTES)?;
    let parent = number(header, 12)?;
    (parent != ROOT && parent != INGRESS).then_some(())?;
    Some((number(header, 4)?, netlink::text(attributes, QDISC_KIND)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use netlink_packet_core::{DefaultNla, Emitable};

    fn message(kind: u16, header: &[u32], attributes: &[(u16, &str)]) -> Raw {
        let attribute =
            |(kind, text): &(u16, &str)| DefaultNla::new(*kind, format!("{text}\0").into_bytes());
        let attributes: Vec<DefaultNla> = attributes.iter().map(attribute).collect();
        let mut bytes: Vec<u8> = header.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let start = bytes.len();
        bytes.resize(start + attributes.as_slice().buffer_len(), 0);
        attributes.as_slice().emit(&mut bytes[start..]);
        Raw { kind, bytes }
    }

    #[test]
    fn link_message_gives_name_and_qdisc() {
        let names = [(LINK_NAME, "eth0"), (13, "other"), (LINK_QDISC, "mq")];
        let whole = message(LINK_NEW, &[0, 7, 0, 0], &names);
        assert_eq!(link(&whole), Some((7, "eth0".to_owned(), "mq".to_owned())));
        assert_eq!(link(&message(LINK_NEW, &[0, 7, 0, 0], &names[..2])), None);
        assert_eq!(link(&message(QDISC_NEW, &[0, 7, 0, 0], &names)), None);
        for end in 0..whole.bytes.len() - 1 {
            let cut = Raw {
                bytes: whole.bytes[..end].to_vec(),
                ..whole
            };
            assert_eq!(link(&cut), None, "cut at {end}");
        }
    }

    #[test]
    fn only_child_qdiscs_are_listed() {
        let of = |parent: u32| message(QDISC_NEW, &[0, 7, 0, parent, 0], &[(QDISC_KIND, "fq")]);
        assert_eq!(below(&of(0x0001_0002)), Some((7, "fq".to_owned())));
        // The children of an mq created by the kernel have a parent without a major number: 0:1.
        assert_eq!(below(&of(1)), Some((7, "fq".to_owned())));
        assert_eq!((below(&of(ROOT)), below(&of(INGRESS))), (None, None));
    }
}
