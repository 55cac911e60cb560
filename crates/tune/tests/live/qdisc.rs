//! Queueing disciplines of this machine, compared with `tc`.

use std::fs;
use std::path::Path;
use std::process::Command;

use onrush_tune::facts::{self, qdisc};
use onrush_tune::tree::{Snapshot, Tree};

use crate::namespace::Namespace;

#[test]
fn qdiscs_match_tc_output() {
    let Ok(shown) = Command::new("tc").args(["qdisc", "show"]).output() else {
        eprintln!("skipped: tc is not installed (Debian's package is iproute2)");
        return;
    };
    let tree = Tree::open(Path::new("/")).expect("this machine");
    tree.record();
    let facts = facts::read(&tree, None).expect("facts");
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    let mut compared = 0;
    for interface in &facts.interfaces {
        let qdisc = interface.qdisc.as_ref().expect("each has one");
        // `qdisc mq 0: dev eth0 root`; an interface that is down has `noop`, which tc does not show.
        let line = text
            .lines()
            .find(|line| line.contains(&format!(" dev {} root", interface.name)));
        if let Some(line) = line {
            assert_eq!(line.split(' ').nth(1), Some(qdisc.root.as_str()), "{line}");
            compared += 1;
        }
    }
    assert!(
        compared > 0 || facts.interfaces.is_empty() || text.is_empty(),
        "{text}"
    );

    let text = serde_json::to_string(&tree.recorded()).expect("JSON");
    let snapshot: Snapshot = serde_json::from_str(&text).expect("a snapshot");
    let again = facts::read(&Tree::of_snapshot(snapshot), None).expect("facts");
    for (one, other) in facts.interfaces.iter().zip(&again.interfaces) {
        assert_eq!(one.qdisc, other.qdisc, "{}", one.name);
    }
}

#[test]
fn child_qdiscs_are_read() {
    let Some(namespace) = Namespace::after(
        "qdisc",
        &[
            "ip link add v0 numtxqueues 4 type veth peer name v1",
            "ip link set v0 up",
            "tc qdisc add dev v0 root handle 1: mq",
            "tc qdisc replace dev v0 parent 1:2 bfifo",
            "tc qdisc add dev v0 ingress",
        ],
    ) else {
        return;
    };
    let found = namespace.inside(|| qdisc::ask().expect("answers"));
    let default = fs::read_to_string("/proc/sys/net/core/default_qdisc").expect("read");
    let mut below = ["bfifo", default.trim()].map(str::to_owned);
    below.sort_unstable();
    assert_eq!(found["v0"].root, "mq");
    assert_eq!(found["v0"].below, below);
}
