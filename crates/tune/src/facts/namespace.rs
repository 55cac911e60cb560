//! Checks whether /sys and the kernel's answers belong to the same network namespace.
//!
//! /sys shows the interfaces of the namespace in which it was mounted; netlink, /proc/net and /proc/sys/net show those
//! of the current one. `ip netns exec` mounts its own /sys, `nsenter --net` does not.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsFd;
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::qdisc;
use crate::limits::NETLINK_TRIES;
use crate::tree::Tree;

pub(super) const ABOUT: &str = "/sys";
pub(super) const WHY: &str = "belongs to another network namespace than this program: use `ip netns exec`, which \
    mounts the right one";

/// Adds a trouble to the tree if this machine's /sys has other interfaces than netlink reports.
pub(super) fn check(tree: &Tree) {
    if !tree.is_live() {
        return;
    }
    let mut before = None;
    for _ in 0..NETLINK_TRIES {
        let shown = shown(tree);
        let Ok(told) = qdisc::links() else {
            return;
        };
        // No interfaces: /sys is not mounted.
        if shown.is_empty() || shown == told {
            return;
        }
        // Interfaces may appear or disappear between the two reads; only a difference that persists counts.
        let now = Some((shown, told));
        if now == before {
            tree.trouble(ABOUT, WHY.to_owned());
            return;
        }
        before = now;
    }
}

/// Whether a process is in another network namespace; `None` if the link cannot be read.
pub(super) fn is_other(tree: &Tree, process: u32) -> Option<bool> {
    let of = |process: &str| tree.link(&format!("/proc/{process}/ns/net"));
    Some(of(&process.to_string())? != of("self")?)
}

/// Runs a function on a thread in the network namespace of a process; `None` if the namespace cannot be entered.
pub(super) fn within<T: Send>(process: u32, ask: impl FnOnce() -> T + Send) -> Option<T> {
    let file = File::open(format!("/proc/{process}/ns/net")).ok()?;
    let work = || {
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).ok()?;
        Some(ask())
    };
    thread::scope(|scope| scope.spawn(work).join().ok().flatten())
}

/// Interface numbers in /sys by name.
fn shown(tree: &Tree) -> BTreeMap<String, u32> {
    let names = tree.names("/sys/class/net").into_iter();
    // Entries without a number are not interfaces: `bonding_masters` is a file.
    let numbered = |name: String| {
        let number = tree.text(&format!("/sys/class/net/{name}/ifindex"))?;
        Some((name, number.parse().ok()?))
    };
    names.filter_map(numbered).collect()
}
