//! Assigns interrupts to interfaces and queues.

use std::collections::{BTreeMap, BTreeSet};

use super::{AffinityFile, Interface, Irq, NET, UnassignedReason, channel, vector};
use crate::facts::interrupt::{Interrupt, Purpose, is_of_all_ports, is_portal, parse_name};
use crate::tree::Tree;
use onrush_machine::cpus::CpuSet;

/// Assigns each interface the interrupts of its device. The ports of one device (Chelsio, MANA), and representors of
/// virtual functions (mlx5), share a table of interrupts. Each gets the interrupts with its name and the ones for
/// all ports, but none if the interrupts have no names.
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
        let mut irqs = match interface.is_device {
            true => channel::read(tree, &interface.name),
            false => Vec::new(),
        };
        for number in numbers {
            let found = irq(tree, *number, &interface.name, interrupts);
            match owner(&found.name, &claims[number]) {
                Some(owner) if owner == interface.name => irqs.push(found),
                Some(_) => {}
                None if is_of_all_ports(&found.name) => irqs.push(found),
                None => unshared(interface, &found, &claims[number]),
            }
        }
        if let ([only], 1) = (&mut irqs[..], numbers.len()) {
            vector::serve_all(interface, only);
        }
        if interface.is_device && interface.driver.as_deref() == Some(BY_PORTALS) {
            irqs.iter_mut()
                .for_each(|irq| (irq.purpose, irq.queue) = (Purpose::Control, None));
            portals(tree, interface, interrupts);
        } else if vector::name_queues(interface, &mut irqs) {
            interface
                .irqs_unclear
                .get_or_insert(UnassignedReason::Twice);
        }
        let unclear = irqs
            .iter()
            .filter(|irq| irq.queue.is_none() && irq.purpose != Purpose::Control);
        for irq in unclear {
            interface.unclear_cpus = interface.unclear_cpus.union(&irq.cpus());
        }
        irqs.sort_by_key(|irq| (irq.queue.unwrap_or(usize::MAX), irq.purpose, irq.number));
        interface.irqs = irqs;
    }
}

/// Driver of DPAA2, whose interfaces have no packet interrupts: packets arrive by portals of the processor, one per CPU
/// (drivers/soc/fsl/dpio/dpio-driver.c).
const BY_PORTALS: &str = "fsl_dpaa2_eth";

fn portals(tree: &Tree, interface: &mut Interface, interrupts: &BTreeMap<usize, &Interrupt>) {
    interface.irqs_unclear = Some(UnassignedReason::Portals);
    for row in interrupts.values().filter(|row| is_portal(&row.name)) {
        let portal = irq(tree, row.number, &interface.name, interrupts);
        interface.unclear_cpus = interface.unclear_cpus.union(&portal.cpus());
    }
}

/// Records a packet interrupt that belongs to an unknown one of several interfaces.
fn unshared(interface: &mut Interface, irq: &Irq, claimants: &[String]) {
    if irq.purpose == Purpose::Control {
        return;
    }
    let others = claimants.iter().filter(|name| **name != interface.name);
    interface.irqs_unclear = Some(UnassignedReason::Shared(others.cloned().collect()));
    interface.unclear_cpus = interface.unclear_cpus.union(&irq.cpus());
}

/// Interface that owns an interrupt, of those whose tables contain it: the only one, or the one with its name.
fn owner<'name>(irq: &str, claimants: &'name [String]) -> Option<&'name str> {
    if let [only] = claimants {
        // The interrupt of a renamed interface keeps the old name, which another interface may have now.
        return Some(only);
    }
    let mut named = claimants.iter().filter(|name| has_word(irq, name));
    named
        .next()
        .filter(|_| named.next().is_none())
        .map(String::as_str)
}

/// Interrupts of a device: those in its MSI table, its single line, or those with its name.
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

/// Interrupts named after the interface or device: `virtio2-input.0`, `mlx5_comp0@pci:0000:81:00.0`.
fn named_after(
    tree: &Tree,
    path: &str,
    name: &str,
    interrupts: &BTreeMap<usize, &Interrupt>,
) -> BTreeSet<usize> {
    let device = tree.link(&format!("{path}/device"));
    let device = device.as_deref();
    // Xen names the device `vif-0` and its interrupts `vif0-q0-rx` (setup_netfront_split in
    // drivers/net/xen-netfront.c).
    let of_xen = device.and_then(|device| device.strip_prefix("vif-"));
    let of_xen = of_xen.map(|number| format!("vif{number}"));
    let names = [
        Some(name),
        device.filter(|device| device.starts_with("virtio") || device.contains(':')),
        of_xen.as_deref(),
    ];
    let named = interrupts
        .values()
        .filter(|row| names.iter().flatten().any(|name| has_word(&row.name, name)));
    named.map(|row| row.number).collect()
}

/// Whether `text` contains `part` as a whole word.
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
        // Each handler has a directory with its name here.
        None => tree
            .names(&path)
            .into_iter()
            .find(|entry| is_handler(entry))
            .unwrap_or_default(),
    };
    let (purpose, queue) = parse_name(&name, interface);
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
        queues: 1,
        affinity: file.as_ref().and_then(|file| match file {
            AffinityFile::List(text) => CpuSet::parse_list(text),
            AffinityFile::Mask(text) => CpuSet::parse_mask(text),
            AffinityFile::Channel(_) => None, // channels have no IRQ number
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
