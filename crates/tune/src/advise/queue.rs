//! Changes of an interface's queues that implement the placement.

use super::action::{Action, Note};
use super::advice::InterfaceAdvice;
use super::placement::{InterfacePlacement, Placement};
use super::request::Request;
use crate::facts::ethtool::DriverSetting;
use crate::facts::interface::allowance;
use crate::facts::{Facts, Interface};

pub(super) const SCALING: &str = "kernel: Documentation/networking/scaling.rst";

/// Setting for the number of queues, and its maximum; `None` if the driver does not report it, and for virtual
/// interfaces, whose queues have no interrupts.
pub(super) fn changeable(interface: &Interface) -> Option<(DriverSetting, usize)> {
    let channels = interface.ethtool.as_ref()?.channels?;
    let most = channels.combined_max.filter(|most| *most > 0)?;
    interface
        .is_device
        .then_some((DriverSetting::ChannelsCombined, most as usize))
}

pub(super) fn advise(
    facts: &Facts,
    interface: &Interface,
    placed: &InterfacePlacement,
    placement: &Placement,
    request: &Request,
    actions: &mut Vec<Action>,
    notes: &mut Vec<Note>,
) {
    let advice = InterfaceAdvice {
        facts,
        interface,
        placed,
        placement,
    };
    advice.channels(actions);
    advice.driver(request, actions);
    advice.interrupts(actions, notes);
    advice.steering(actions);
    advice.flows(actions);
    notes.extend(advice.flow_tables());
    advice.senders(actions);
    allowances(facts, interface, notes);
}

/// Notes about limits of cloud providers, which no setting changes.
fn allowances(facts: &Facts, interface: &Interface, notes: &mut Vec<Note>) {
    for (counter, count) in facts
        .counts
        .interfaces
        .get(&interface.name)
        .into_iter()
        .flatten()
    {
        if let Some(what) = allowance(counter).filter(|_| *count > 0) {
            let text = format!(
                "{what} exceeded ({counter} is {count}): no setting changes it, only a larger machine or a further \
                 interface"
            );
            notes.push(Note::new(&interface.name, &text));
        }
    }
}
