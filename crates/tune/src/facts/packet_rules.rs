//! Counts nftables rules by netlink.

use std::collections::BTreeMap;
use std::io;

use netlink_sys::protocols::NETLINK_NETFILTER;

use super::netlink::{self, Raw};

/// Rules by family and table: `inet firewall`.
pub type Rules = BTreeMap<String, u64>;

// NFNL_SUBSYS_NFTABLES in the high byte, NFT_MSG_NEWRULE and NFT_MSG_GETRULE in the low one.
const RULE_NEW: u16 = 10 << 8 | 6;
const RULE_GET: u16 = 10 << 8 | 7;
/// Size of `struct nfgenmsg`, which precedes the attributes. Its first byte is the family; 0 means all.
const HEADER_BYTES: usize = 4;
const RULE_TABLE: u16 = 1;

pub(super) fn ask() -> io::Result<Rules> {
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

/// Family and table of a rule, in the spelling of nft.
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
    fn rule_has_family_and_table() {
        // Message for `nft add rule inet t c counter` on a little-endian machine: length 6, type 1, "t" and NUL.
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
