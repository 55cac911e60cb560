//! How many rules packets may have to pass: those of nftables, among which are those that today's iptables makes. By
//! nf_tables' netlink messages (include/uapi/linux/netfilter/nf_tables.h); what a rule says is not read.

use std::io;

use super::packet_rules::{Rules, ask};
use crate::tree::Tree;

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
