//! Channels of Hyper-V's bus, by which a netvsc gets its packets: none of them has an interrupt with a number, and each
//! says which CPU it interrupts (Documentation/ABI/stable/sysfs-bus-vmbus).

use super::{AffinityFile, Irq, NET};
use crate::cpus::CpuSet;
use crate::facts::interrupt::Purpose;
use crate::limits::QUEUES_MAX;
use crate::tree::Tree;

/// The channels of an interface as interrupts, one for each queue; none where its device has no channels.
pub(super) fn read(tree: &Tree, interface: &str) -> Vec<Irq> {
    let path = format!("{NET}/{interface}/device/channels");
    let channel = |number: usize| {
        let text = tree.text(&format!("{path}/{number}/cpu"))?;
        let cpu = CpuSet::parse_list(&text)?;
        // Which channel of its device it is: the first is that of queue 0 (netvsc_sc_open in drivers/net/hyperv).
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
