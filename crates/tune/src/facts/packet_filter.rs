//! Counts nftables rules, including rules that iptables-nft creates, by netlink
//! (include/uapi/linux/netfilter/nf_tables.h). The contents of rules are not read.

use std::io;

use super::packet_rules::{Rules, ask};
use crate::tree::Tree;

/// Rules of the current network namespace; `None` if they cannot be counted. Missing permission to count existing rules
/// is added to [`Tree::read_errors`].
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
            "its rules could not be counted: this needs CAP_NET_ADMIN".to_owned(),
        );
    }
    rules
}

/// Whether nf_tables is loaded. Asking would load it otherwise, and reading must not change anything.
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

/// Whether nf_tables is used, according to a file that everybody may read.
fn is_used(tree: &Tree) -> bool {
    tree.value::<u64>("/sys/module/nf_tables/refcnt")
        .is_some_and(|users| users > 0)
}
