//! Makes a plan from facts and a request. Pure: reads and changes nothing.

mod action;
mod request;
mod target;

mod budget;
mod count;
mod offload;
mod placement;
mod queue_cpus;
mod usable;
mod vectors;

mod accept;
mod advice;
mod driver;
mod external_limits;
mod files;
mod interrupts;
mod obsolete;
mod ports;
mod pressure;
mod queue;
mod setting;
mod steering;

mod pluralize;

use serde::Serialize;

pub use accept::{Accept, AcceptAdvice, AcceptMode};
pub use action::{Action, Note, Revert};
pub use external_limits::THE_MACHINE;
pub use placement::{InterfacePlacement, Placement, QueuePlacement, Sharing, place};
pub use request::{Goal, Queues, Request, Role};
pub(crate) use target::THREAD;
pub use target::{Target, ValueFormat};

use crate::Error;
use crate::facts::{Facts, Interface};

/// A placement, and the changes that implement it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Plan {
    /// Request of the plan.
    pub request: Request,
    /// Assignment of CPUs.
    #[serde(flatten)]
    pub placement: Placement,
    /// Recommended value of `accept` of `onrush serve`.
    pub accept: Accept,
    /// Changes in a safe order.
    pub actions: Vec<Action>,
    /// Information without a change.
    pub notes: Vec<Note>,
}

/// Makes a plan. Fails if a requested interface does not exist.
pub fn plan(facts: &Facts, request: &Request) -> Result<Plan, Error> {
    let interfaces = chosen(facts, request)?;
    let counts = count::queues(facts, &interfaces, request);
    let placement = place(facts, &interfaces, &counts, request.goal);
    let mut actions = Vec::new();
    let mut notes = Vec::new();
    for (interface, placed) in interfaces.iter().zip(&placement.interfaces) {
        queue::advise(
            facts,
            interface,
            placed,
            &placement,
            request,
            &mut actions,
            &mut notes,
        );
        offload::advise(facts, interface, request, &mut notes);
    }
    pressure::advise(facts, request, &mut actions);
    ports::advise(facts, request, &mut actions);
    setting::advise(facts, &placement, request, &mut actions, &mut notes);
    files::advise(facts, request, &mut actions, &mut notes);
    obsolete::advise(facts, &mut notes);
    external_limits::advise(facts, &interfaces, &placement, &mut actions, &mut notes);
    actions.sort_by_key(|action| action.target.step());
    if facts.system.is_in_network_namespace {
        notes.extend(external_limits::beyond_namespace(&actions));
    }
    Ok(Plan {
        request: request.clone(),
        accept: accept::advise(facts, &interfaces, &placement),
        placement,
        actions,
        notes,
    })
}

fn chosen<'facts>(
    facts: &'facts Facts,
    request: &Request,
) -> Result<Vec<&'facts Interface>, Error> {
    if request.interfaces.is_empty() {
        let is_meant = |interface: &&Interface| interface.is_device && interface.is_up();
        return Ok(facts.interfaces.iter().filter(is_meant).collect());
    }
    let mut chosen: Vec<&Interface> = Vec::new();
    for name in &request.interfaces {
        let devices = facts.devices_of(name);
        if devices.is_empty() {
            let names: Vec<&str> = facts
                .interfaces
                .iter()
                .map(|interface| interface.name.as_str())
                .collect();
            return Err(Error::Request(match names.is_empty() {
                true => format!("interface {name} not found: this machine has no interfaces"),
                false => format!(
                    "interface {name} not found: expected one of {}",
                    names.join(", ")
                ),
            }));
        }
        for device in devices {
            if !chosen.iter().any(|known| known.name == device.name) {
                chosen.push(device);
            }
        }
    }
    Ok(chosen)
}
