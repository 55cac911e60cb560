//! Driver settings: numbers of queues, ring sizes, interrupt coalescing.

use super::action::{Action, Revert};
use super::advice::{ActionDetails, InterfaceAdvice};
use super::pluralize::pluralize;
use super::queue::{SCALING, changeable};
use super::request::{Goal, Request};
use super::vectors::present;
use crate::facts::ethtool::DriverSetting;

/// Whether more than one packet per minute was lost since boot. A few losses at startup do not count.
fn lost_lately(uptime: &f64, lost: u64) -> bool {
    lost as f64 * 60.0 > *uptime
}

impl InterfaceAdvice<'_> {
    pub(super) fn channels(&self, actions: &mut Vec<Action>) {
        let Some((knob, _)) = changeable(self.interface) else {
            return;
        };
        let (now, wished) = (present(self.interface), self.placed.queues.len());
        if now == wished {
            return;
        }
        let cores = self.placed.irq_cpus.len();
        let is_alone = self
            .placed
            .irq_cpus
            .iter()
            .all(|cpu| self.queues_on(cpu) == 1);
        let reason = match wished < now {
            true => format!(
                "{} the interrupts: more than two queues per core only add interrupts",
                pluralize(cores, "core handles", "cores handle")
            ),
            false if is_alone => {
                format!("the driver supports {wished} queues, one per core, instead of {now}")
            }
            false => format!(
                "the driver supports {wished} queues on {} instead of {now}",
                pluralize(cores, "core", "cores")
            ),
        };
        actions.extend(self.knob(
            knob,
            wished as u32,
            ActionDetails {
                reason,
                source: SCALING,
                risk: "the interface is reset: packets are lost for a moment, and its interrupts get new numbers",
                revert: Revert::WriteBackWithReset,
                effect: "softirq time on as many CPUs as there are queues",
            },
        ));
    }

    /// Larger rings after drops, and interrupt coalescing.
    pub(super) fn driver(&self, request: &Request, actions: &mut Vec<Action>) {
        let Some(said) = &self.interface.ethtool else {
            return;
        };
        let lost = ["rx_missed_errors", "rx_fifo_errors", "rx_over_errors"];
        let counters = self.facts.counts.interfaces.get(&self.interface.name);
        let lost = lost
            .iter()
            .filter_map(|name| counters?.get(*name))
            .fold(0, |sum: u64, count| sum.saturating_add(*count));
        if let (Some(rings), true) = (said.rings, lost > 0) {
            let (now, most) = (rings.receive.unwrap_or(0), rings.receive_max.unwrap_or(0));
            let wished = most.min(now.saturating_mul(2).max(2_048));
            actions.extend((wished > now && lost_lately(&self.facts.counts.uptime, lost)).then_some(()).and_then(|()| {
                self.knob(
                    DriverSetting::RingReceive,
                    wished,
                    ActionDetails {
                        reason: format!("the device dropped {lost} packets for lack of ring space since it came up"),
                        source: "AWS ENA best practices; kernel: Documentation/networking/scaling.rst",
                        risk: "the interface may be reset for a moment; a larger ring causes more cache misses",
                        revert: Revert::WriteBackWithReset,
                        effect: "rx_missed_errors no longer grows",
                    },
                )
            }));
        }
        let coalescing = said.coalescing.unwrap_or_default();
        let why = |reason: &str| ActionDetails {
            reason: reason.to_owned(),
            source: "AWS ENA best practices; Netflix 2016",
            risk: "the driver refuses if it does not support this",
            revert: Revert::WriteBack,
            effect: "interrupts per second of the device",
        };
        match request.goal {
            Goal::Throughput if coalescing.receive_microseconds.is_some_and(|now| now < 20) => {
                let reason = "under load one interrupt should cover many packets; the driver adapts their number";
                actions.extend(self.knob(DriverSetting::AdaptiveReceive, 1, why(reason)));
            }
            Goal::Latency => {
                let reason = "a driver that waits for more packets delays single packets";
                actions.extend(self.knob(DriverSetting::AdaptiveReceive, 0, why(reason)));
                if coalescing.receive_microseconds.is_some_and(|now| now > 10) {
                    let reason = "every packet waits this long before it is announced";
                    actions.extend(self.knob(DriverSetting::MicrosecondsReceive, 8, why(reason)));
                }
            }
            Goal::Throughput => {}
        }
    }
}
