//! How connections should get to the cores of `onrush serve` (its key `accept`). Two layouts differ in that: every CPU of the
//! server takes packets, and a connection belongs on the one that takes its own; or packets have CPUs of their own, and say
//! nothing of where a connection should be. Pure.

use std::fmt;

use serde::Serialize;

use super::placement::{InterfacePlacement, Placement};
use crate::facts::{Facts, Interface, arrival};
use onrush_machine::cpus::CpuSet;

/// What `accept` should be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Accept {
    /// As the machine is, for a server on all CPUs that it may use.
    pub now: Fit,
    /// As it is planned, for a server on the CPUs for the application.
    pub planned: Fit,
}

/// What fits, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Fit {
    /// The value of the key.
    pub accept: By,
    /// A clause.
    pub because: String,
}

/// How a connection gets to its core.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// To the one on the CPU that takes its packets.
    Cpu,
    /// To any.
    #[default]
    Hash,
}

impl fmt::Display for Accept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (now, planned) = (&self.now, &self.planned);
        match now == planned {
            true => write!(f, "{now}, as it is and as planned"),
            false => write!(f, "{now}, as it is; {planned}, as planned"),
        }
    }
}

impl fmt::Display for Fit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let accept = match self.accept {
            By::Cpu => "cpu",
            By::Hash => "hash",
        };
        write!(f, "accept = \"{accept}\" ({})", self.because)
    }
}

/// What fits the machine now, and as it is planned.
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

/// CPUs that are to take the packets of an interface.
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

/// What fits a server on CPUs `own` where these take packets.
fn fit(packets: Result<CpuSet, String>, own: &CpuSet) -> Fit {
    let hash = |because| Fit {
        accept: By::Hash,
        because,
    };
    let packets = match packets {
        Ok(packets) if packets.is_empty() => return hash("no CPU takes packets".to_owned()),
        Ok(packets) => packets,
        Err(why) => return hash(why),
    };
    let (idle, apart) = (own.minus(&packets), packets.minus(own));
    if idle.is_empty() && apart.is_empty() {
        return Fit {
            accept: By::Cpu,
            because: "each CPU of the server takes packets".to_owned(),
        };
    }
    hash(match packets.intersects(own) {
        false => format!("packets have CPUs of their own: {packets}"),
        true if idle.is_empty() => format!("packets come to CPUs without the server, too: {apart}"),
        true => format!("the server is on CPUs without packets, too: {idle}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_cpu_fits_where_all_share_all_and_nowhere_else() {
        let set = |text: &str| CpuSet::parse_list(text).expect("a list");
        for (packets, own, expected) in [
            (
                "0-3",
                "0-3",
                "accept = \"cpu\" (each CPU of the server takes packets)",
            ),
            (
                "12-15",
                "0-11",
                "accept = \"hash\" (packets have CPUs of their own: 12-15)",
            ),
            (
                "0-1",
                "0-3",
                "accept = \"hash\" (the server is on CPUs without packets, too: 2-3)",
            ),
            (
                "0-3",
                "0-1",
                "accept = \"hash\" (packets come to CPUs without the server, too: 2-3)",
            ),
            ("", "0-1", "accept = \"hash\" (no CPU takes packets)"),
        ] {
            assert_eq!(fit(Ok(set(packets)), &set(own)).to_string(), expected);
        }
        let unknown = fit(Err("why".to_owned()), &set("0"));
        assert_eq!(unknown.to_string(), "accept = \"hash\" (why)");
    }
}
