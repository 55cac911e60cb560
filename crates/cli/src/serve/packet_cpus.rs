//! CPUs on which packets arrive.

use std::path::Path;

use onrush_serve::ReceivingCpus;
use onrush_tune::facts;
use onrush_tune::tree::Tree;

/// Reads from /sys and /proc which CPUs receive packets.
pub(super) fn arrival() -> Option<ReceivingCpus> {
    let tree = Tree::open(Path::new("/")).ok()?;
    let found = facts::arrival::read(&tree);
    Some(ReceivingCpus {
        online: found.online.iter().collect(),
        network: found.network.map(|cpus| cpus.iter().collect()),
    })
}
