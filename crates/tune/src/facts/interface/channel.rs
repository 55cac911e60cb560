//! Channels of the Hyper-V bus (VMBus), which netvsc uses for packets. They have no interrupt numbers; the file `cpu`
//! of each contains the CPU that it interrupts (Documentation/ABI/stable/sysfs-bus-vmbus).

use super::{AffinityFile, Irq, NET};
use crate::facts::interrupt::Purpose;
use crate::limits::QUEUES_MAX;
use crate::tree::Tree;
use onrush_machine::cpus::CpuSet;

/// Channels of an interface as interrupts, one per queue; empty if its device has none.
pub(super) fn read(tree: &Tree, interface: &str) -> Vec<Irq> {
    let path = format!("{NET}/{interface}/device/channels");
    let channel = |number: usize| {
        let text = tree.text(&format!("{path}/{number}/cpu"))?;
        let cpu = CpuSet::parse_list(&text)?;
        // Index of the channel within its device: the first belongs to queue 0 (netvsc_sc_open in drivers/net/hyperv).
        let queue = tree.value(&format!("{path}/{number}/subchannel_id"));
        Some(Irq {
            number,
            name: format!("channel {number}"),
            purpose: Purpose::Both,
            queue: queue.filter(|queue| *queue < QUEUES_MAX),
            queues: 1,
            affinity: Some(cpu),
            effective: None,
            file: Some(AffinityFile::Channel(text)),
        })
    };
    let numbers = tree.numbers(&path, "").into_iter();
    numbers.filter_map(channel).collect()
}
