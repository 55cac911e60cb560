//! Cost of a request in physical quantities. All times are microseconds of one CPU.

use std::collections::BTreeMap;

use crate::scenario::Role;

/// Connections per CPU to which [`RoleCost::growth_us`] refers.
pub const CONNECTIONS_STATED: f64 = 100.0;

/// Costs of a request and properties of the load.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// Cost of the program under test; `None` if unknown, and then it is not a limit.
    pub application: Option<RoleCost>,
    /// Costs of other programs, which count if they run on the machine.
    pub other_programs: BTreeMap<Role, RoleCost>,
    /// Share of their CPUs' time that programs get when the CPUs are saturated; interrupts, timers and scheduling take
    /// the rest.
    pub usable: f64,
    /// Concurrent connections; 0 is unknown and treated as [`CONNECTIONS_STATED`] per CPU.
    pub connections: u32,
    /// Network traffic of a request.
    pub exchange: Exchange,
    /// Cost of received packets; `None` if unknown.
    pub packet: Option<PacketCost>,
    /// Total cost of a packet through the hypervisor on the interrupt's CPU; `None` if unknown.
    pub paravirtual_us: Option<f64>,
    /// Maximum requests per second of one client machine; `None` if unknown.
    pub client_rps_max: Option<f64>,
}

impl Default for Cost {
    /// Nothing is known; a request and its response have one packet each.
    fn default() -> Cost {
        Cost {
            application: None,
            other_programs: BTreeMap::new(),
            usable: 1.0,
            connections: 0,
            exchange: Exchange::default(),
            packet: None,
            paravirtual_us: None,
            client_rps_max: None,
        }
    }
}

/// CPU time of one program per request, user and system.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RoleCost {
    /// Part that is independent of the number of connections.
    pub base_us: f64,
    /// Part added by [`CONNECTIONS_STATED`] connections per CPU. It grows with the square root of their number: the
    /// memory of all connections is accessed in turn, and cache misses grow with the root of the memory accessed.
    pub growth_us: f64,
    /// Part added if the peer is on another CPU, for moving cache lines.
    pub crossing_us: f64,
    /// Cost of waking an idle CPU from another CPU. All connections of a CPU share a wake-up, so a request pays a
    /// larger part of it with few connections.
    pub waking_us: f64,
}

impl RoleCost {
    /// A cost that is independent of connections and CPUs.
    pub fn fixed(base_us: f64) -> RoleCost {
        RoleCost {
            base_us,
            ..RoleCost::default()
        }
    }

    /// CPU time per request of a program on `cpus` CPUs with `connections` spread over them. `crossing` is the share of
    /// exchanges with a peer on another CPU.
    pub fn at(&self, connections: u32, cpus: usize, crossing: f64) -> f64 {
        self.base_us
            + self.growth_us * growth(connections, cpus)
            + self.crossing_us * crossing
            + self.waking_us * crossing * waking(connections, cpus)
    }
}

/// Factor on [`RoleCost::growth_us`] for this number of connections and CPUs.
pub fn growth(connections: u32, cpus: usize) -> f64 {
    (of_each(connections, cpus) / CONNECTIONS_STATED).sqrt()
}

/// Factor on [`RoleCost::waking_us`] for a request that crosses CPUs.
pub fn waking(connections: u32, cpus: usize) -> f64 {
    1.0 / of_each(connections, cpus).max(1.0)
}

fn of_each(connections: u32, cpus: usize) -> f64 {
    match connections {
        0 => CONNECTIONS_STATED,
        connections => f64::from(connections) / cpus.max(1) as f64,
    }
}

/// Network traffic of one request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exchange {
    /// Packets received.
    pub packets_in: f64,
    /// Packets sent.
    pub packets_out: f64,
    /// Bytes received in messages, including HTTP heads and excluding TCP headers.
    pub bytes_in: f64,
    /// Bytes sent in messages.
    pub bytes_out: f64,
}

impl Default for Exchange {
    /// One packet each for request and response, of unknown size.
    fn default() -> Exchange {
        Exchange {
            packets_in: 1.0,
            packets_out: 1.0,
            bytes_in: 0.0,
            bytes_out: 0.0,
        }
    }
}

/// Costs of a received packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PacketCost {
    /// Driver work on the interrupt's CPU, including completion of packets sent in response.
    pub driver_us: f64,
    /// IP, TCP and socket work, on the CPU to which the packet was steered, or else on the interrupt's CPU.
    pub stack_us: f64,
    /// Inter-processor interrupt to another CPU of the same NUMA node, on the interrupt's CPU.
    pub interrupt_us: f64,
    /// Inter-processor interrupt to a CPU of another NUMA node; at least `interrupt_us`.
    pub far_interrupt_us: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_grows_with_square_root_of_connections() {
        assert_eq!(growth(0, 2), 1.0);
        assert_eq!(growth(100, 1), 1.0);
        assert_eq!(growth(400, 1), 2.0);
        assert_eq!(growth(800, 2), 2.0);
        let cost = RoleCost {
            base_us: 3.0,
            growth_us: 1.0,
            crossing_us: 2.0,
            waking_us: 80.0,
        };
        assert_eq!(cost.at(400, 1, 0.0), 5.0);
        assert_eq!(cost.at(400, 1, 0.5), 6.1);
        assert_eq!((waking(10, 2), waking(1, 2)), (0.2, 1.0));
        assert_eq!(RoleCost::fixed(3.0).at(400, 1, 0.5), 3.0);
    }
}
