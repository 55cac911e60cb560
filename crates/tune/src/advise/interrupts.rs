//! Moves the interrupts of queues to their CPUs.

use super::action::{Action, Note, Revert};
use super::advice::{ActionDetails, InterfaceAdvice};
use super::placement::Sharing;
use super::target::Target;
use super::vectors;
use crate::facts::Interface;
use crate::facts::interface::{AffinityFile, Irq, UnassignedReason};
use onrush_machine::cpus::CpuSet;

impl InterfaceAdvice<'_> {
    pub(super) fn interrupts(&self, actions: &mut Vec<Action>, notes: &mut Vec<Note>) {
        let mut unknown = 0;
        for queue in &self.placed.queues {
            let Some(cpu) = queue.irq_cpu else {
                unknown += usize::from(self.interface.is_device);
                continue;
            };
            // An interrupt of several queues is moved with the first of them.
            let irqs = self.interface.irqs.iter();
            for irq in irqs.filter(|irq| irq.queue == Some(queue.queue)) {
                let action = self.interrupt(irq, queue.queue, cpu);
                // An interrupt of several ports is moved once.
                let is_new =
                    |action: &Action| !actions.iter().any(|known| known.path == action.path);
                actions.extend(action.filter(is_new));
            }
        }
        if let Some(text) = self.unclear(unknown) {
            notes.push(Note::new(&self.interface.name, &text));
        }
    }

    /// Why interrupts of `unknown` queues are not moved.
    fn unclear(&self, unknown: usize) -> Option<String> {
        let text = match &self.interface.irqs_unclear {
            Some(UnassignedReason::Shared(others)) => {
                return Some(format!(
                    "shares its device with {}, and has interrupts whose names do not show which interface they belong \
                     to: those are not moved",
                    others.join(", ")
                ));
            }
            Some(UnassignedReason::Twice) => {
                "has several interrupts for one queue, and their names do not show which one it uses: those are not \
                 moved"
            }
            Some(UnassignedReason::Portals) => {
                "receives through the processor's portals (dpio), one per CPU, which all interfaces share: their \
                 interrupts are not moved"
            }
            None if unknown == 0 => return None,
            None if self.facts.interrupts.is_empty() => {
                "its interrupts are not moved: /proc/interrupts, which assigns them to devices, is missing"
            }
            None => {
                "has queues whose interrupts cannot be identified by name in /proc/interrupts: those are not moved"
            }
        };
        Some(text.to_owned())
    }

    fn interrupt(&self, irq: &Irq, queue: usize, cpu: usize) -> Option<Action> {
        let wished: CpuSet = [cpu].into_iter().collect();
        if irq.affinity.as_ref() == Some(&wished) {
            return None;
        }
        let (current, proposed) = match irq.file.as_ref()? {
            AffinityFile::List(now) | AffinityFile::Channel(now) => (now, wished.to_string()),
            AffinityFile::Mask(now) => (now, wished.mask_like(now)),
        };
        let target = Target::Interrupt {
            interface: self.name(),
            queue,
            purpose: irq.purpose,
        };
        let mut reason = match self.placement.sharing {
            Sharing::Everything => {
                "one CPU per queue, so that its packets stay in one cache".to_owned()
            }
            Sharing::Nothing | Sharing::Steering => self.reason_to_interrupt(cpu),
        };
        if let Some(others) = self.also_served(irq) {
            reason += &format!("; {others} uses the same interrupt, so its packets move, too");
        }
        Some(self.action(
            target,
            irq.path(&self.interface.name)?,
            current,
            proposed,
            ActionDetails {
                reason,
                source: "kernel: Documentation/networking/scaling.rst; dpbench set-irq.sh",
                risk: "interrupts managed by the kernel cannot be moved (EIO)",
                revert: Revert::WriteBack,
                effect: "the count in /proc/interrupts grows on that CPU only",
            },
        ))
    }

    /// Other interfaces of the device that receive by this interrupt.
    fn also_served(&self, irq: &Irq) -> Option<String> {
        let device = self.interface.device.as_ref()?;
        let others = self.facts.interfaces.iter().filter(|other| {
            other.name != self.interface.name && other.device.as_ref() == Some(device)
        });
        let serves = |other: &&Interface| {
            let mut irqs = other.irqs.iter();
            let queues = vectors::present(other);
            irqs.any(|known| {
                known.number == irq.number && known.queue.is_some_and(|queue| queue < queues)
            })
        };
        let names: Vec<&str> = others.filter(serves).map(|other| &*other.name).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }

    fn reason_to_interrupt(&self, cpu: usize) -> String {
        let queues = self.queues_on(cpu);
        let node = self.facts.topology.node_of(cpu);
        let is_near = node.is_some() && node == self.interface.node;
        match (self.interface.node, queues) {
            (Some(near), 1) if is_near => {
                format!("the CPU is in the device's node, {near}, and has no other work")
            }
            (Some(near), _) if is_near => format!(
                "the CPU is in the device's node, {near}, and handles the packets of {queues} queues and has no other \
                 work"
            ),
            (_, 1) => "the CPU handles the packets of one queue and has no other work".to_owned(),
            (_, _) => {
                format!("the CPU handles the packets of {queues} queues and has no other work")
            }
        }
    }
}
