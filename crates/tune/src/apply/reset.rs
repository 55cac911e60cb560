//! Values that a device loses when it is reset.

use crate::advise::{Action, Plan, Revert, Target};
use crate::facts::ethtool::DriverSetting;
use crate::facts::{Facts, Interface, Purpose};

/// Targets that lose their values when `target` is changed.
pub(crate) fn lost_with(target: &Target, facts: &Facts) -> Vec<Target> {
    let interface = target.interface().filter(|_| resets_queues(target));
    let interface = interface.and_then(|name| facts.interface(name));
    interface.map(of_queues).unwrap_or_default()
}

/// Whether it is a number of queues, whose change resets the device.
pub(crate) fn resets_queues(target: &Target) -> bool {
    matches!(
        target,
        Target::Driver {
            knob: DriverSetting::ChannelsCombined
                | DriverSetting::ChannelsReceive
                | DriverSetting::ChannelsTransmit,
            ..
        }
    )
}

fn of_queues(interface: &Interface) -> Vec<Target> {
    let name = || interface.name.clone();
    let mut targets = Vec::new();
    for irq in interface
        .irqs
        .iter()
        .filter(|irq| irq.purpose != Purpose::Control)
    {
        if let Some(queue) = irq.queue {
            targets.push(Target::Interrupt {
                interface: name(),
                queue,
                purpose: irq.purpose,
            });
        }
    }
    for queue in &interface.receive {
        targets.push(Target::Steering {
            interface: name(),
            queue: queue.index,
        });
        targets.push(Target::Flows {
            interface: name(),
            queue: queue.index,
        });
    }
    let senders = interface
        .transmit
        .iter()
        .filter(|queue| queue.senders.is_some());
    targets.extend(senders.map(|queue| Target::Senders {
        interface: name(),
        queue: queue.index,
    }));
    targets
}

/// Interfaces that a plan resets briefly, which may cut off a remote session.
pub fn resets(plan: &Plan) -> Vec<&str> {
    let is_reset = |action: &&Action| action.revert == Revert::WriteBackWithReset;
    let mut names: Vec<&str> = plan
        .actions
        .iter()
        .filter(is_reset)
        .filter_map(|action| action.target.interface())
        .collect();
    names.dedup();
    names
}
