//! Recommends the key `accept` of `onrush serve`, i.e. how connections are assigned to its cores. Either every CPU of
//! the server processes packets, and a connection belongs on the CPU that processes its packets; or packets have CPUs
//! of their own, which do not determine the best core. Pure.

use std::fmt;

use serde::Serialize;

use super::placement::{InterfacePlacement, Placement};
use crate::facts::{Facts, Interface, arrival};
use onrush_machine::cpus::CpuSet;

/// Recommended values of `accept`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Accept {
    /// For the current settings and a server on all allowed CPUs.
    pub now: AcceptAdvice,
    /// For the plan and a server on the application's CPUs.
    pub planned: AcceptAdvice,
}

/// Recommended value with its reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct AcceptAdvice {
    /// Value of the key.
    pub accept: AcceptMode,
    /// Reason, as a clause.
    pub because: String,
}

/// How connections are assigned to cores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AcceptMode {
    /// To the core on the CPU that processes its packets.
    Cpu,
    /// To any core.
    #[default]
    Hash,
}

impl fmt::Display for Accept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (now, planned) = (&self.now, &self.planned);
        match now == planned {
            true => write!(f, "current and planned: {now}"),
            false => write!(f, "current: {now}; planned: {planned}"),
        }
    }
}

impl fmt::Display for AcceptAdvice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let accept = match self.accept {
            AcceptMode::Cpu => "cpu",
            AcceptMode::Hash => "hash",
        };
        write!(f, "accept = \"{accept}\" ({})", self.because)
    }
}

pub(super) fn advise(facts: &Facts, interfaces: &[&Interface], placement: &Placement) -> Accept {
    let now: Vec<Interface> = interfaces.iter().copied().cloned().collect();
    let planned = placement.interfaces.iter().zip(interfaces);
    let planned: Result<Vec<CpuSet>, String> = planned
        .map(|(placed, interface)| planned_cpus(placed, interface))
        .collect();
    let planned = planned.map(|all| all.iter().flat_map(CpuSet::iter).collect());
    Accept {
        now: fit(arrival::of(&now), &facts.topology.allowed),
        planned: fit(planned, &placement.application_cpus),
    }
}

fn planned_cpus(placed: &InterfacePlacement, interface: &Interface) -> Result<CpuSet, String> {
    let mut all = interface.unclear_cpus.clone();
    for queue in &placed.queues {
        match (queue.steering_cpus.is_empty(), queue.irq_cpu) {
            (false, _) => all = all.union(&queue.steering_cpus),
            (true, Some(cpu)) => all.insert(cpu),
            (true, None) if all.is_empty() => return Err(arrival::unknown(interface)),
            (true, None) => {}
        }
    }
    Ok(all)
}

/// Recommendation for a server on the CPUs `own`, if `packets` process packets.
fn fit(packets: Result<CpuSet, String>, own: &CpuSet) -> AcceptAdvice {
    let hash = |because| AcceptAdvice {
        accept: AcceptMode::Hash,
        because,
    };
    let packets = match packets {
        Ok(packets) if packets.is_empty() => return hash("no CPU receives packets".to_owned()),
        Ok(packets) => packets,
        Err(why) => return hash(why),
    };
    let (idle, apart) = (own.minus(&packets), packets.minus(own));
    if idle.is_empty() && apart.is_empty() {
        return AcceptAdvice {
            accept: AcceptMode::Cpu,
            because: "every CPU of the server receives packets".to_owned(),
        };
    }
    hash(match packets.intersects(own) {
        false => format!("packets arrive on CPUs apart from the server's: {packets}"),
        true if idle.is_empty() => {
            format!("packets also arrive on CPUs without the server: {apart}")
        }
        true => format!("the server also runs on CPUs that receive no packets: {idle}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_cpu_needs_shared_cpus() {
        let set = |text: &str| CpuSet::parse_list(text).expect("a list");
        for (packets, own, expected) in [
            (
                "0-3",
                "0-3",
                "accept = \"cpu\" (every CPU of the server receives packets)",
            ),
            (
                "12-15",
                "0-11",
                "accept = \"hash\" (packets arrive on CPUs apart from the server's: 12-15)",
            ),
            (
                "0-1",
                "0-3",
                "accept = \"hash\" (the server also runs on CPUs that receive no packets: 2-3)",
            ),
            (
                "0-3",
                "0-1",
                "accept = \"hash\" (packets also arrive on CPUs without the server: 2-3)",
            ),
            ("", "0-1", "accept = \"hash\" (no CPU receives packets)"),
        ] {
            assert_eq!(fit(Ok(set(packets)), &set(own)).to_string(), expected);
        }
        let unknown = fit(Err("why".to_owned()), &set("0"));
        assert_eq!(unknown.to_string(), "accept = \"hash\" (why)");
    }
}
