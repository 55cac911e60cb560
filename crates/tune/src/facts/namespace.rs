//! Whether the files of /sys and the kernel's answers are of the same network namespace.
//!
//! /sys shows the interfaces of the namespace in which it was mounted, whoever reads it; netlink, /proc/net and
//! /proc/sys/net are of the one we are in. `ip netns exec` mounts a /sys of its own, `nsenter --net` does not.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsFd;
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::qdisc;
use crate::limits::NETLINK_TRIES;
use crate::tree::Tree;

/// What the trouble is about.
pub(super) const ABOUT: &str = "/sys";
/// What the trouble is.
pub(super) const WHY: &str = "is of another network namespace than this program: use `ip netns exec`, which mounts the right one";

/// Compares the interfaces of this machine's /sys with those that the kernel tells of. If they are others, that is one of
/// the tree's troubles.
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
        // Without any there is no /sys here.
        if shown.is_empty() || shown == told {
            return;
        }
        // Interfaces come and go between one look and the other: only lists that stay different are.
        let now = Some((shown, told));
        if now == before {
            tree.trouble(ABOUT, WHY.to_owned());
            return;
        }
        before = now;
    }
}

/// Whether a process is in another network namespace; `None` when the link cannot be read.
pub(super) fn is_other(tree: &Tree, process: u32) -> Option<bool> {
    let of = |process: &str| tree.link(&format!("/proc/{process}/ns/net"));
    Some(of(&process.to_string())? != of("self")?)
}

/// Runs a function on a thread in the network namespace of a process; `None` when the namespace cannot be entered.
pub(super) fn within<T: Send>(process: u32, ask: impl FnOnce() -> T + Send) -> Option<T> {
    let file = File::open(format!("/proc/{process}/ns/net")).ok()?;
    let work = || {
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).ok()?;
        Some(ask())
    };
    thread::scope(|scope| scope.spawn(work).join().ok().flatten())
}

/// The number of each interface in /sys, by its name.
fn shown(tree: &Tree) -> BTreeMap<String, u32> {
    let names = tree.names("/sys/class/net").into_iter();
    // What has no number is none: the list of bonds is a file beside the interfaces.
    let numbered = |name: String| {
        let number = tree.text(&format!("/sys/class/net/{name}/ifindex"))?;
        Some((name, number.parse().ok()?))
    };
    names.filter_map(numbered).collect()
}
