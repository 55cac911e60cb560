//! Figures of a run by interface, or by source address. Pure.

use std::fmt;
use std::net::IpAddr;

use onrush_measure::units;
use serde::Serialize;

use super::path::Binding;
use super::plan::Direction;
use super::task::{FlowOutcome, RunContext};

/// Datagrams sent over one interface, or from one address.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Origin {
    /// The interface, if interfaces were named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// How the sockets are bound to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Binding>,
    /// Source address; for an interface with several, that of its first socket.
    pub source: IpAddr,
    /// Number of sockets.
    pub flows: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams that reached their destination, without duplicates; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received: Option<u64>,
    /// Datagrams that did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
}

/// Groups the flows of a run, in the order of their sockets. Empty without interfaces and with a single address.
pub(super) fn of<'flow>(
    task: &RunContext,
    flows: impl Iterator<Item = &'flow FlowOutcome>,
) -> Vec<Origin> {
    let mut flows: Vec<&FlowOutcome> = flows.collect();
    flows.sort_by_key(|flow| flow.number);
    let mut origins: Vec<Origin> = Vec::new();
    if task.paths.is_empty() && task.plan.options.sources.count() < 2 {
        return origins;
    }
    for flow in flows {
        let one = of_flow(task, flow);
        let is_same = |other: &&mut Origin| match &one.interface {
            Some(_) => other.interface == one.interface,
            None => other.source == one.source,
        };
        match origins.iter_mut().find(is_same) {
            Some(other) => other.add(&one),
            None => origins.push(one),
        }
    }
    origins
}

fn of_flow(task: &RunContext, flow: &FlowOutcome) -> Origin {
    let path = task.path_of(flow.number);
    let end = match task.direction {
        Direction::OneWay => flow.reports.1.map(|report| report.tally),
        Direction::RoundTrip => Some(flow.echoes),
    };
    let received = end.map(|end| end.received + end.too_late);
    Origin {
        interface: path.map(|path| path.link.name.clone()),
        bound: path.map(|path| path.bound),
        source: flow.local.ip(),
        flows: 1,
        sent: flow.sent,
        received,
        lost: received.map(|received| flow.sent.saturating_sub(received)),
    }
}

impl Origin {
    fn add(&mut self, other: &Origin) {
        let sum = |one: Option<u64>, other: Option<u64>| Some(one? + other?);
        self.flows += other.flows;
        self.sent += other.sent;
        self.received = sum(self.received, other.received);
        self.lost = sum(self.lost, other.lost);
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.interface {
            Some(interface) => write!(out, "{interface} ({})", self.source)?,
            None => write!(out, "{}", self.source)?,
        }
        write!(
            out,
            ": {} sent over {}",
            units::count(self.sent),
            units::plural(self.flows, "socket")
        )?;
        if let (Some(received), Some(lost)) = (self.received, self.lost) {
            let (received, lost) = (units::count(received), units::count(lost));
            write!(out, ", {received} received, {lost} lost")?;
        }
        match self.bound {
            Some(Binding::Address) => out.write_str("; bound to it by its address only"),
            Some(Binding::Interface) | None => Ok(()),
        }
    }
}
