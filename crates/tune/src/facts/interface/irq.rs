//! Which interrupts are those of which interface and queue.

use std::collections::{BTreeMap, BTreeSet};

use super::{AffinityFile, Interface, Irq, NET, Unclear};
use crate::cpus::CpuSet;
use crate::facts::interrupt::{Interrupt, Purpose, is_block, is_vector, meaning};
use crate::tree::Tree;

/// Gives interfaces the interrupts of their devices. The ports of one device (Chelsio, MANA), and the interfaces that
/// stand for those of virtual machines (mlx5), have one table of interrupts between them; of that each gets those that
/// have its name, and none when there are no names.
pub(super) fn assign(
    tree: &Tree,
    interfaces: &mut [Interface],
    interrupts: &BTreeMap<usize, &Interrupt>,
) {
    let numbers: Vec<BTreeSet<usize>> = interfaces
        .iter()
        .map(|interface| match interface.is_device {
            true => numbers(tree, &interface.name, interrupts),
            false => BTreeSet::new(),
        })
        .collect();
    let mut claims: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (interface, numbers) in interfaces.iter().zip(&numbers) {
        for number in numbers {
            claims
                .entry(*number)
                .or_default()
                .push(interface.name.clone());
        }
    }
    for (interface, numbers) in interfaces.iter_mut().zip(&numbers) {
        let mut irqs = Vec::new();
        for number in numbers {
            let found = irq(tree, *number, &interface.name, interrupts);
            match owner(&found.name, &claims[number]) {
                Some(owner) if owner == interface.name => irqs.push(found),
                Some(_) => {}
                None => unshared(interface, &claims[number]),
            }
        }
        if let ([only], 1) = (&mut irqs[..], numbers.len()) {
            // A device with one interrupt receives by it, whatever it is called.
            (only.purpose, only.queue) = (Purpose::Both, Some(0));
        }
        halve_blocks(&mut irqs);
        count_vectors(&mut irqs);
        if drop_twins(&mut irqs) {
            interface.irqs_unclear.get_or_insert(Unclear::Twice);
        }
        irqs.sort_by_key(|irq| (irq.queue.unwrap_or(usize::MAX), irq.purpose, irq.number));
        interface.irqs = irqs;
    }
}

fn unshared(interface: &mut Interface, claimants: &[String]) {
    let others = claimants.iter().filter(|name| **name != interface.name);
    interface.irqs_unclear = Some(Unclear::Shared(others.cloned().collect()));
}

/// Whose an interrupt is, of those in whose tables it stands: the only one, or the one whose name it has.
fn owner<'name>(irq: &str, claimants: &'name [String]) -> Option<&'name str> {
    if let [only] = claimants {
        // Of a renamed interface it may have the old name, which may be another's now.
        return Some(only);
    }
    let mut named = claimants.iter().filter(|name| has_word(irq, name));
    named
        .next()
        .filter(|_| named.next().is_none())
        .map(String::as_str)
}

/// gVNIC calls its interrupts blocks: transmit queues have the first half of them, receive queues the second
/// (gve.h: `gve_tx_idx_to_ntfy`, `gve_rx_idx_to_ntfy`).
fn halve_blocks(irqs: &mut [Irq]) {
    let is_block = |irq: &&mut Irq| is_block(&irq.name);
    let half = irqs.iter_mut().filter(is_block).count() / 2;
    for irq in irqs.iter_mut().filter(is_block) {
        (irq.purpose, irq.queue) = match irq.queue {
            Some(block) if block >= half => (Purpose::Receive, Some(block - half)),
            transmit => (Purpose::Transmit, transmit),
        };
    }
}

/// mlx4 numbers its vectors from 1, after the one for events, and older drivers from 0: the first is that of queue 0.
fn count_vectors(irqs: &mut [Irq]) {
    let is_vector = |irq: &&mut Irq| is_vector(&irq.name);
    let first = irqs
        .iter_mut()
        .filter(is_vector)
        .filter_map(|irq| irq.queue)
        .min();
    for irq in irqs.iter_mut().filter(is_vector) {
        irq.queue = irq.queue.zip(first).map(|(vector, first)| vector - first);
    }
}

/// Interrupts that say the same of themselves are of no queue: nothing tells which of them is. Whether there were any.
fn drop_twins(irqs: &mut [Irq]) -> bool {
    let mut seen: BTreeMap<(usize, Purpose), usize> = BTreeMap::new();
    let place = |irq: &Irq| irq.queue.map(|queue| (queue, irq.purpose));
    for place in irqs.iter().filter_map(place) {
        *seen.entry(place).or_default() += 1;
    }
    let mut has_twins = false;
    for irq in irqs {
        if place(irq).is_some_and(|place| seen[&place] > 1) {
            (irq.queue, has_twins) = (None, true);
        }
    }
    has_twins
}

/// The interrupts of a device: those of its message-signalled table, of its single line, or with its name.
fn numbers(tree: &Tree, name: &str, interrupts: &BTreeMap<usize, &Interrupt>) -> BTreeSet<usize> {
    let path = format!("{NET}/{name}");
    let device = format!("{path}/device");
    let table = tree.numbers(&format!("{device}/msi_irqs"), "");
    if !table.is_empty() {
        return table.into_iter().collect();
    }
    let named = named_after(tree, &path, name, interrupts);
    if !named.is_empty() {
        return named;
    }
    let line = tree.value::<usize>(&format!("{device}/irq"));
    line.into_iter().filter(|number| *number > 0).collect()
}

/// Interrupts whose name has the interface's or the device's: `virtio2-input.0`, `mlx5_comp0@pci:0000:81:00.0`.
fn named_after(
    tree: &Tree,
    path: &str,
    name: &str,
    interrupts: &BTreeMap<usize, &Interrupt>,
) -> BTreeSet<usize> {
    let device = tree.link(&format!("{path}/device"));
    let names = [
        Some(name),
        device
            .as_deref()
            .filter(|device| device.starts_with("virtio") || device.contains(':')),
    ];
    let named = interrupts
        .values()
        .filter(|row| names.iter().flatten().any(|name| has_word(&row.name, name)));
    named.map(|row| row.number).collect()
}

/// Whether a name has another in it, not as a piece of a longer one.
fn has_word(text: &str, part: &str) -> bool {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '.';
    text.match_indices(part).any(|(at, _)| {
        !text[..at].ends_with(is_word) && !text[at + part.len()..].starts_with(is_word)
    })
}

fn irq(
    tree: &Tree,
    number: usize,
    interface: &str,
    interrupts: &BTreeMap<usize, &Interrupt>,
) -> Irq {
    let path = format!("/proc/irq/{number}");
    let name = match interrupts.get(&number) {
        Some(row) => row.name.clone(),
        // Each handler has a directory of its name here.
        None => tree
            .names(&path)
            .into_iter()
            .find(|entry| is_handler(entry))
            .unwrap_or_default(),
    };
    let (purpose, queue) = meaning(&name, interface);
    let list = tree.text(&format!("{path}/smp_affinity_list"));
    let file = match list {
        Some(text) => Some(AffinityFile::List(text)),
        None => tree
            .text(&format!("{path}/smp_affinity"))
            .map(AffinityFile::Mask),
    };
    Irq {
        number,
        purpose,
        queue,
        affinity: file.as_ref().and_then(|file| match file {
            AffinityFile::List(text) => CpuSet::parse_list(text),
            AffinityFile::Mask(text) => CpuSet::parse_mask(text),
        }),
        effective: tree
            .text(&format!("{path}/effective_affinity_list"))
            .and_then(|text| CpuSet::parse_list(&text)),
        file,
        name,
    }
}

fn is_handler(entry: &str) -> bool {
    const FILES: [&str; 8] = [
        "smp_affinity",
        "smp_affinity_list",
        "effective_affinity",
        "effective_affinity_list",
        "affinity_hint",
        "node",
        "spurious",
        "actions",
    ];
    !FILES.contains(&entry)
}
