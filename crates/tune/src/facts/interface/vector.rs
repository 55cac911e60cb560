//! Assigns queues to interrupts whose own names do not identify them, by driver or by the other names.

use std::collections::BTreeMap;

use super::{Interface, Irq};
use crate::facts::interrupt::{Purpose, is_block, is_mana_vector, is_vector, is_virtqueues, range};

/// Assigns queues to the interrupts of a device. Returns whether several interrupts claim the same queue.
pub(super) fn name_queues(interface: &Interface, irqs: &mut [Irq]) -> bool {
    let all = interface.receive.len().max(1);
    for irq in irqs.iter_mut().filter(|irq| is_virtqueues(&irq.name)) {
        (irq.purpose, irq.queue, irq.queues) = (Purpose::Both, Some(0), all);
    }
    if interface.driver.as_deref() == Some("tg3") && irqs.len() > 1 {
        irqs.iter_mut().for_each(skip_first_vector);
    }
    halve_blocks(irqs);
    count_vectors(irqs);
    read_ranges(irqs);
    skip_control_vector(irqs);
    drop_twins(irqs)
}

/// Assigns all queues to the only interrupt of a device, regardless of its name.
pub(super) fn serve_all(interface: &Interface, only: &mut Irq) {
    let all = interface.receive.len().max(1);
    (only.purpose, only.queue, only.queues) = (Purpose::Both, Some(0), all);
}

/// The first vector of tg3, `eth0-0`, is for the link, and the others are numbered from 1. A single transmit queue also
/// uses the first vector (tg3_request_irq, tg3_ints_init).
fn skip_first_vector(irq: &mut Irq) {
    match (irq.purpose, irq.queue) {
        (Purpose::Both, Some(0)) => (irq.purpose, irq.queue) = (Purpose::Control, None),
        (_, queue) => irq.queue = queue.map(|vector| vector.saturating_sub(1)),
    }
}

/// `TxRx-0-1`: first and last receive queue of a vector with several, in Intel's out-of-tree ice driver since version
/// 1.16 (ice_vsi_req_single_irq_msix in src/ice_main.c of intel/ethernet-linux-ice). The ice driver of Linux has a
/// vector for each queue, `TxRx-0` (ice_vsi_req_irq_msix in drivers/net/ethernet/intel/ice/ice_main.c).
fn read_ranges(irqs: &mut [Irq]) {
    for irq in irqs {
        let Some((first, last)) = range(&irq.name) else {
            continue;
        };
        (irq.queue, irq.queues) = match last.checked_sub(first) {
            Some(more) => (Some(first), more + 1),
            None => (None, 1),
        };
    }
}

/// Queue N of the only port of MANA has vector N + 1 (mana_create_eq in drivers/net/ethernet/microsoft/mana/mana_en.c).
fn skip_control_vector(irqs: &mut [Irq]) {
    for irq in irqs.iter_mut().filter(|irq| is_mana_vector(&irq.name)) {
        irq.queue = irq.queue.and_then(|vector| vector.checked_sub(1));
    }
}

/// gVNIC calls its interrupts blocks: the first half is for transmit queues, the second for receive queues (gve.h:
/// `gve_tx_idx_to_ntfy`, `gve_rx_idx_to_ntfy`).
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

/// mlx4 numbers its vectors from 1, after the event vector, and older drivers from 0: the first is for queue 0.
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

/// Clears queues that several interrupts claim, since the right one is unknown. Returns whether there were any.
fn drop_twins(irqs: &mut [Irq]) -> bool {
    let mut seen: BTreeMap<(usize, Purpose), usize> = BTreeMap::new();
    let claims = |irq: &Irq| {
        let (queues, purpose) = (irq.queues, irq.purpose);
        let queues = irq.queue.map(|first| first..first + queues);
        queues
            .into_iter()
            .flatten()
            .map(move |queue| (queue, purpose))
    };
    for claim in irqs.iter().flat_map(claims) {
        *seen.entry(claim).or_default() += 1;
    }
    let mut has_twins = false;
    for irq in irqs {
        if claims(irq).any(|claim| seen[&claim] > 1) {
            (irq.queue, irq.queues, has_twins) = (None, 1, true);
        }
    }
    has_twins
}
