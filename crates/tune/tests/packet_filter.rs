//! Rules of packet filters in a network namespace, counted by the kernel that has them.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{self, Command};
use std::thread;

use onrush_tune::advise::{self, Request};
use onrush_tune::facts::{self, Facts};
use onrush_tune::tree::{Snapshot, Tree};
use rustix::thread::{
    CapabilitySet, CapabilitySets, LinkNameSpaceType, move_into_link_name_space, set_capabilities,
};

/// A network namespace of a test's own; gone with the value.
struct Namespace(String);

impl Namespace {
    /// `None`, with a line that says why, where that is not permitted or a step cannot be done.
    fn after(steps: &[&str]) -> Option<Namespace> {
        let namespace = Namespace(format!("onrush-tune-rules-{}", process::id()));
        let add = format!("ip netns add {}", namespace.0);
        let inside = |step: &&str| format!("ip netns exec {} {step}", namespace.0);
        for line in [add].into_iter().chain(steps.iter().map(inside)) {
            let output = Command::new("sh").args(["-c", &line]).output();
            if !output.as_ref().is_ok_and(|output| output.status.success()) {
                eprintln!(
                    "skipped: `{line}` failed ({output:?}); this takes root, iproute2 and nftables"
                );
                return None;
            }
        }
        Some(namespace)
    }

    /// What is asked by netlink is answered of the namespace that a thread is in.
    fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let file = File::open(Path::new("/run/netns").join(&self.0)).expect("it was made");
        let work = || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
                .expect("as who made it");
            work()
        };
        thread::scope(|scope| scope.spawn(work).join().expect("a result"))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).output();
    }
}

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
    let Some(namespace) = Namespace::after(&[
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
    ]) else {
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
        words
            .contains("nftables has 4 rules (inet firewall 3, ip nat 1): each packet goes through"),
        "{words}"
    );

    let text = serde_json::to_string(&snapshot).expect("JSON");
    let snapshot: Snapshot = serde_json::from_str(&text).expect("a snapshot");
    let again = facts::read(&Tree::of_snapshot(snapshot), None).expect("facts");
    assert_eq!(again.system.packet_rules, facts.system.packet_rules);
}

#[test]
fn rules_that_may_not_be_counted_are_absent() {
    let read = || {
        // Of this thread only.
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
    // Where nothing shows that there are any, not knowing them is not worth a word.
    let users = fs::read_to_string("/sys/module/nf_tables/refcnt").unwrap_or_default();
    let is_used = !["", "0"].contains(&users.trim()) || !facts.system.packet_tables.is_empty();
    assert!(is_used || !facts.troubles.contains_key("nftables"));
}
