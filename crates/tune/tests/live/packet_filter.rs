//! Counts packet filter rules in a network namespace.

use std::fs;
use std::path::Path;
use std::thread;

use onrush_tune::advise::{self, Request};
use onrush_tune::facts::{self, Facts};
use onrush_tune::tree::{Snapshot, Tree};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

use crate::namespace::Namespace;

fn notes(facts: &Facts) -> String {
    let plan = advise::plan(facts, &Request::default()).expect("a plan");
    let notes = plan
        .notes
        .iter()
        .map(|note| format!("{} {}\n", note.about, note.text));
    notes.collect()
}

#[test]
fn rules_are_counted_by_family_and_table() {
    let Some(namespace) = Namespace::after(
        "rules",
        &[
            "nft add table inet firewall",
            "nft 'add chain inet firewall input { type filter hook input priority 0; }'",
            "nft 'add chain inet firewall other'",
            "nft add rule inet firewall input tcp dport 80 accept",
            "nft add rule inet firewall input ct state established accept",
            "nft add rule inet firewall other counter",
            "nft add table ip nat",
            "nft 'add chain ip nat out { type nat hook postrouting priority 100; }'",
            "nft add rule ip nat out counter",
            "nft add table ip6 empty",
        ],
    ) else {
        return;
    };
    let read = || {
        let tree = Tree::open(Path::new("/")).expect("this machine");
        tree.record();
        (facts::read(&tree, None).expect("facts"), tree.recorded())
    };
    let (facts, snapshot) = namespace.inside(read);
    let expected = [("inet firewall".to_owned(), 3), ("ip nat".to_owned(), 1)];
    assert_eq!(facts.system.packet_rules, Some(expected.into()));
    let words = notes(&facts);
    assert!(
        words.contains(
            "nftables has 4 rules (inet firewall 3, ip nat 1): each packet passes the rules"
        ),
        "{words}"
    );

    let text = serde_json::to_string(&snapshot).expect("JSON");
    let snapshot: Snapshot = serde_json::from_str(&text).expect("a snapshot");
    let again = facts::read(&Tree::of_snapshot(snapshot), None).expect("facts");
    assert_eq!(again.system.packet_rules, facts.system.packet_rules);
}

#[test]
fn rules_are_absent_without_privilege() {
    let read = || {
        // Drops the capabilities of this thread only.
        let none = CapabilitySets {
            effective: CapabilitySet::empty(),
            permitted: CapabilitySet::empty(),
            inheritable: CapabilitySet::empty(),
        };
        set_capabilities(None, none).expect("nobody needs a right to give one away");
        facts::read(&Tree::open(Path::new("/")).expect("this machine"), None).expect("facts")
    };
    let facts = thread::scope(|scope| scope.spawn(read).join().expect("facts"));
    assert_eq!(facts.system.packet_rules, None);
    // If nothing indicates that there are rules, not being able to count them is not reported.
    let users = fs::read_to_string("/sys/module/nf_tables/refcnt").unwrap_or_default();
    let is_used = !["", "0"].contains(&users.trim()) || !facts.system.packet_tables.is_empty();
    assert!(is_used || !facts.troubles.contains_key("nftables"));
}
