//! What a request costs, in numbers with a physical meaning. All times are microseconds of one CPU.

use std::collections::BTreeMap;

use crate::scenario::Role;

/// Connections of a CPU that growth is stated for.
pub const CONNECTIONS_STATED: f64 = 100.0;

/// What a request costs, and how it is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// The program under test; none when nothing is known of it, and then it is no limit.
    pub application: Option<RoleCost>,
    /// Other programs of the chain, which count where the machine has them.
    pub beside: BTreeMap<Role, RoleCost>,
    /// The share of their CPUs that programs get when these are full; interrupts, timers and turns take the rest.
    pub usable: f64,
    /// Requests are asked for on so many connections at a time; 0 is not known, and taken for as many as growth is stated
    /// for.
    pub connections: u32,
    /// What passes the network for a request.
    pub exchange: Exchange,
    /// What packets cost where they arrive; none when it is not known.
    pub packet: Option<PacketCost>,
    /// A packet that comes through the hypervisor, on the interrupt's CPU, all in all; none when it is not known.
    pub paravirtual_us: Option<f64>,
    /// Requests a second that one machine can ask for; none when it is not known.
    pub client_rps_max: Option<f64>,
}

impl Default for Cost {
    /// Nothing is known, and a packet is asked for and answered by one.
    fn default() -> Cost {
        Cost {
            application: None,
            beside: BTreeMap::new(),
            usable: 1.0,
            connections: 0,
            exchange: Exchange::default(),
            packet: None,
            paravirtual_us: None,
            client_rps_max: None,
        }
    }
}

/// CPU time of one program for a request: user and system, with what the kernel does in its name.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RoleCost {
    /// Whatever the number of connections.
    pub base_us: f64,
    /// What [`CONNECTIONS_STATED`] connections of a CPU add. It grows with the square root of their number: the memory of
    /// all of them is gone through in turn, and misses of a cache grow with the root of what is gone through.
    pub growth_us: f64,
    /// What it adds when the other end is on another CPU: cache lines that move.
    pub crossing_us: f64,
    /// A CPU that has run out of work, woken by another one. All connections of a CPU share one wake-up, so with few
    /// connections a request pays more of it.
    pub waking_us: f64,
}

impl RoleCost {
    /// The same for any number of connections, on any CPU.
    pub fn fixed(base_us: f64) -> RoleCost {
        RoleCost {
            base_us,
            ..RoleCost::default()
        }
    }

    /// CPU time for a request of a program on `cpus` CPUs, over which `connections` are spread. `crossing` is the share of
    /// exchanges with an end on another CPU.
    pub fn at(&self, connections: u32, cpus: usize, crossing: f64) -> f64 {
        self.base_us
            + self.growth_us * growth(connections, cpus)
            + self.crossing_us * crossing
            + self.waking_us * crossing * waking(connections, cpus)
    }
}

/// How much of [`RoleCost::growth_us`] so many connections cost on so many CPUs.
pub fn growth(connections: u32, cpus: usize) -> f64 {
    (of_each(connections, cpus) / CONNECTIONS_STATED).sqrt()
}

/// How much of [`RoleCost::waking_us`] a request pays that crosses CPUs.
pub fn waking(connections: u32, cpus: usize) -> f64 {
    1.0 / of_each(connections, cpus).max(1.0)
}

/// Connections of each CPU.
fn of_each(connections: u32, cpus: usize) -> f64 {
    match connections {
        0 => CONNECTIONS_STATED,
        connections => f64::from(connections) / cpus.max(1) as f64,
    }
}

/// What passes the network for one request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exchange {
    /// Packets that arrive.
    pub packets_in: f64,
    /// Packets that are sent.
    pub packets_out: f64,
    /// Bytes of messages that arrive, with their heads and without headers of TCP.
    pub bytes_in: f64,
    /// Bytes of messages that are sent.
    pub bytes_out: f64,
}

impl Default for Exchange {
    /// A request and a response of a packet each, of which only the number is known.
    fn default() -> Exchange {
        Exchange {
            packets_in: 1.0,
            packets_out: 1.0,
            bytes_in: 0.0,
            bytes_out: 0.0,
        }
    }
}

/// What a packet costs that arrives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PacketCost {
    /// Taken from the device, on the CPU of the interrupt, with what is sent in return given back to the device.
    pub driver_us: f64,
    /// Carried through IP and TCP to its socket, on the CPU that it was steered to, or else that of the interrupt.
    pub stack_us: f64,
    /// Another CPU of the node is told that packets wait for it, on the CPU of the interrupt.
    pub interrupt_us: f64,
    /// The same for a CPU of another node; not less.
    pub far_interrupt_us: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_stated_for_a_hundred_connections_of_a_cpu_and_doubles_with_four_times_as_many() {
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
