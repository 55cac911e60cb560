//! Inputs and parts of the changes of one interface.

use super::action::{Action, Revert};
use super::placement::{InterfacePlacement, Placement};
use super::target::Target;
use crate::facts::ethtool::DriverSetting;
use crate::facts::{Facts, Interface};

pub(super) struct InterfaceAdvice<'here> {
    pub(super) facts: &'here Facts,
    pub(super) interface: &'here Interface,
    pub(super) placed: &'here InterfacePlacement,
    pub(super) placement: &'here Placement,
}

impl InterfaceAdvice<'_> {
    pub(super) fn name(&self) -> String {
        self.interface.name.clone()
    }

    pub(super) fn action(
        &self,
        target: Target,
        path: String,
        current: &str,
        proposed: String,
        why: ActionDetails,
    ) -> Action {
        Action {
            target,
            path,
            current: current.to_owned(),
            proposed,
            reason: why.reason,
            source: why.source.to_owned(),
            risk: why.risk.to_owned(),
            revert: why.revert,
            effect: why.effect.to_owned(),
        }
    }

    pub(super) fn knob(
        &self,
        knob: DriverSetting,
        proposed: u32,
        why: ActionDetails,
    ) -> Option<Action> {
        let current = knob.value(self.interface.ethtool.as_ref()?)?;
        let target = Target::Driver {
            interface: self.name(),
            knob,
        };
        let path = format!("ethtool:{}/{}", self.interface.name, knob.name());
        (current != proposed).then(|| {
            self.action(
                target,
                path,
                &current.to_string(),
                proposed.to_string(),
                why,
            )
        })
    }

    pub(super) fn queues_on(&self, cpu: usize) -> usize {
        let interfaces = self.placement.interfaces.iter();
        let queues = interfaces.flat_map(|interface| &interface.queues);
        queues.filter(|queue| queue.irq_cpu == Some(cpu)).count()
    }
}

/// Remaining fields of an action.
pub(super) struct ActionDetails {
    pub(super) reason: String,
    pub(super) source: &'static str,
    pub(super) risk: &'static str,
    pub(super) revert: Revert,
    pub(super) effect: &'static str,
}
