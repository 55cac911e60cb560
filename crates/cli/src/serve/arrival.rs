//! CPUs on which packets arrive.

use std::path::Path;

use onrush_serve::Arrival;
use onrush_tune::facts;
use onrush_tune::tree::Tree;

/// Reads from /sys and /proc which CPUs receive packets.
pub(super) fn arrival() -> Option<Arrival> {
    let tree = Tree::open(Path::new("/")).ok()?;
    let found = facts::arrival::read(&tree);
    Some(Arrival {
        online: found.online.iter().collect(),
        network: found.network.map(|cpus| cpus.iter().collect()),
    })
}
