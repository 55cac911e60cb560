//! How many rules packets may have to pass: those of nftables, among which are those that today's iptables makes. By
//! nf_tables' netlink messages (include/uapi/linux/netfilter/nf_tables.h); what a rule says is not read.

use std::collections::BTreeMap;
use std::io;

use netlink_sys::protocols::NETLINK_NETFILTER;

use super::netlink::{self, Raw};
use crate::tree::Tree;

/// Rules by family and table: `inet firewall`.
pub type Rules = BTreeMap<String, u64>;

// NFNL_SUBSYS_NFTABLES in the high byte, NFT_MSG_NEWRULE and NFT_MSG_GETRULE in the low one.
const RULE_NEW: u16 = 10 << 8 | 6;
const RULE_GET: u16 = 10 << 8 | 7;
/// What comes before the attributes: `struct nfgenmsg`, whose first byte is the family; 0 are all.
const HEADER_BYTES: usize = 4;
const RULE_TABLE: u16 = 1;

/// The rules of the network namespace we are in; none when they cannot be counted. That there are some which cannot be
/// counted for want of a right is one of the [`Tree::troubles`].
pub(super) fn read(tree: &Tree, iptables: &[String]) -> Option<Rules> {
    let mut is_refused = false;
    let rules = tree.packet_rules(|| match can_ask(tree).then(ask)? {
        Ok(rules) => Some(rules),
        Err(error) => {
            is_refused = error.kind() == io::ErrorKind::PermissionDenied;
            None
        }
    });
    if is_refused && (is_used(tree) || !iptables.is_empty()) {
        tree.trouble(
            "nftables",
            "its rules could not be counted: that takes CAP_NET_ADMIN".to_owned(),
        );
    }
    rules
}

/// Whether nf_tables is in the kernel already. The question would load it otherwise, and reading changes nothing.
fn can_ask(tree: &Tree) -> bool {
    let has_no_loader = || {
        tree.text("/proc/sys/kernel/modprobe")
            .is_none_or(|program| program.is_empty())
    };
    let is_built_in = || {
        let kernel = tree.text("/proc/sys/kernel/osrelease").unwrap_or_default();
        tree.text(&format!("/lib/modules/{kernel}/modules.builtin"))
            .is_some_and(|names| names.contains("/nf_tables.ko"))
    };
    !tree.names("/sys/module/nf_tables").is_empty() || has_no_loader() || is_built_in()
}

/// Whether somebody has chains in it, as far as everybody may see.
fn is_used(tree: &Tree) -> bool {
    tree.value::<u64>("/sys/module/nf_tables/refcnt")
        .is_some_and(|users| users > 0)
}

fn ask() -> io::Result<Rules> {
    let question = Raw {
        kind: RULE_GET,
        bytes: vec![0; HEADER_BYTES],
    };
    let tables = netlink::list(NETLINK_NETFILTER, &question, |message| table(&message))?;
    let mut rules = Rules::new();
    for table in tables {
        *rules.entry(table).or_default() += 1;
    }
    Ok(rules)
}

/// The family and table of a rule, as the program nft calls them.
fn table(message: &Raw) -> Option<String> {
    (message.kind == RULE_NEW).then_some(())?;
    let (header, attributes) = message.bytes.split_at_checked(HEADER_BYTES)?;
    // NFPROTO_* of include/uapi/linux/netfilter.h.
    let family = match header[0] {
        1 => "inet".to_owned(),
        2 => "ip".to_owned(),
        3 => "arp".to_owned(),
        5 => "netdev".to_owned(),
        7 => "bridge".to_owned(),
        10 => "ip6".to_owned(),
        other => format!("family {other}"),
    };
    Some(format!(
        "{family} {}",
        netlink::text(attributes, RULE_TABLE)?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_of_a_family_and_a_table() {
        // As `nft add rule inet t c counter` is told on a little-endian machine: length 6, kind 1, "t" and its zero.
        if cfg!(target_endian = "big") {
            return;
        }
        let rule = |kind: u16, family: u8, length: usize| {
            let bytes = [family, 0, 0, 5, 6, 0, 1, 0, b't', 0, 0, 0];
            Raw {
                kind,
                bytes: bytes[..length].to_vec(),
            }
        };
        assert_eq!(table(&rule(RULE_NEW, 1, 12)), Some("inet t".to_owned()));
        assert_eq!(
            table(&rule(RULE_NEW, 99, 12)),
            Some("family 99 t".to_owned())
        );
        assert_eq!(table(&rule(RULE_GET, 1, 12)), None);
        for end in 0..10 {
            assert_eq!(table(&rule(RULE_NEW, 1, end)), None, "cut at {end}");
        }
    }
}
