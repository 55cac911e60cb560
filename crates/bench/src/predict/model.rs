//! The capacity model.
//!
//! Each resource limits the rate; the lowest limit is the prediction. Work that is bound to one CPU, such as an
//! interrupt, is compared with that CPU. Programs may run on several CPUs, so for each set of programs their total cost
//! is compared with the total time of their CPUs, minus packet work there.

use std::collections::BTreeMap;
use std::fmt;

use super::cost::{Cost, PacketCost, RoleCost};
use super::machine::{Driver, Interface, Machine, Queue};
use super::wire::message_wire_bytes;
use crate::scenario::Role;
use onrush_machine::cpus::CpuSet;

/// Packets that the kernel polls from a queue in a row (`net.core.dev_weight`); a CPU that receives several of them
/// gets one inter-processor interrupt.
const BATCH_PACKETS: f64 = 64.0;
/// Share of a saturated CPU for packets if they wake a program there: the kernel then processes packets in ksoftirqd,
/// which the scheduler treats like the program.
const KSOFTIRQD_SHARE: f64 = 0.5;
const MICROSECONDS: f64 = 1e6;

/// Bottlenecks of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limiter {
    /// The CPUs of the program under test.
    ApplicationCpus,
    /// A CPU that handles a device's interrupts.
    InterruptCpu,
    /// A CPU to which packets are steered.
    SteeringCpu,
    /// A packet rate limit of a device or a cloud provider.
    PacketLimit,
    /// The bit rate of a link.
    Link,
    /// The client machines.
    Client,
}

impl Limiter {
    /// All bottlenecks.
    pub const ALL: [Limiter; 6] = [
        Limiter::ApplicationCpus,
        Limiter::InterruptCpu,
        Limiter::SteeringCpu,
        Limiter::PacketLimit,
        Limiter::Link,
        Limiter::Client,
    ];

    /// Name in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Limiter::ApplicationCpus => "application CPUs",
            Limiter::InterruptCpu => "interrupt CPU",
            Limiter::SteeringCpu => "steering CPU",
            Limiter::PacketLimit => "packet limit",
            Limiter::Link => "link",
            Limiter::Client => "client",
        }
    }
}

impl fmt::Display for Limiter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

/// Rate limit of one resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// The resource.
    pub limiter: Limiter,
    /// Requests per second.
    pub rps: f64,
    /// Derivation with its numbers.
    pub reason: String,
}

/// Predicted capacity of a machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// Requests per second: the lowest limit.
    pub rps: f64,
    /// The first bottleneck.
    pub limiter: Limiter,
    /// All limits, lowest first; at least one.
    pub limits: Vec<Limit>,
}

/// Predicts the capacity of `machine` at `cost`; `None` if neither has a limit.
pub fn predict(machine: &Machine, cost: &Cost) -> Option<Prediction> {
    let work = PacketWork::of(machine, cost);
    let mut limits = program_limits(machine, cost, &work);
    limits.extend(work.limits(machine));
    limits.extend(packet_limits(machine, cost));
    limits.extend(link_limits(machine, cost));
    limits.extend(client_limit(machine, cost));
    limits.sort_by(|a, b| a.rps.total_cmp(&b.rps));
    let first = limits.first()?;
    Some(Prediction {
        rps: first.rps,
        limiter: first.limiter,
        limits,
    })
}

/// Packet work of one request on each CPU, in microseconds.
#[derive(Default)]
pub(super) struct PacketWork {
    /// Driver work, and stack work of packets that are not steered.
    interrupt: BTreeMap<usize, f64>,
    /// Stack work of packets steered from other CPUs.
    steered: BTreeMap<usize, f64>,
    /// CPUs that run the stack for packets of their own interrupts and wake programs there.
    wakes: CpuSet,
}

impl PacketWork {
    pub(super) fn of(machine: &Machine, cost: &Cost) -> PacketWork {
        let mut work = PacketWork::default();
        let mut waking = Vec::new();
        let interfaces = machine.interfaces();
        for interface in interfaces {
            let per_queue = cost.exchange.packets_in
                / interfaces.len() as f64
                / interface.queues.len().max(1) as f64;
            for queue in &interface.queues {
                match interface.driver {
                    Driver::Paravirtual => {
                        let packet_us = cost.paravirtual_us.unwrap_or(0.0);
                        *work.interrupt.entry(queue.irq_cpu).or_default() += packet_us * per_queue;
                    }
                    Driver::Native => {
                        let Some(packet) = &cost.packet else { continue };
                        work.add(machine, queue, packet, per_queue);
                        if queue.steering.is_empty() || queue.steering.contains(queue.irq_cpu) {
                            waking.push(queue.irq_cpu);
                        }
                    }
                }
            }
        }
        work.wakes = waking.into_iter().collect();
        work
    }

    fn add(&mut self, machine: &Machine, queue: &Queue, packet: &PacketCost, packets: f64) {
        let parts = PacketParts::of(machine, queue);
        *self.interrupt.entry(queue.irq_cpu).or_default() += packets * parts.interrupt_us(packet);
        let each = packet.stack_us * packets / queue.steering.len().max(1) as f64;
        for cpu in queue.steering.iter() {
            if cpu != queue.irq_cpu {
                *self.steered.entry(cpu).or_default() += each;
            }
        }
    }

    /// Packet work per request on these CPUs in microseconds.
    pub(super) fn on(&self, cpus: &CpuSet) -> f64 {
        let of = |work: &BTreeMap<usize, f64>| -> f64 {
            cpus.iter().filter_map(|cpu| work.get(&cpu)).sum()
        };
        of(&self.interrupt) + of(&self.steered) + 0.0 // An empty sum is -0.0.
    }

    fn limits(&self, machine: &Machine) -> Vec<Limit> {
        let programs = machine
            .other_programs()
            .values()
            .fold(machine.application().clone(), |all, cpus| all.union(cpus));
        let mut limits = Vec::new();
        for cpu in machine.cpus().iter() {
            let interrupt_us = self.interrupt.get(&cpu).copied().unwrap_or(0.0);
            let work_us = interrupt_us + self.steered.get(&cpu).copied().unwrap_or(0.0);
            if work_us <= 0.0 {
                continue;
            }
            let beside = self.wakes.contains(cpu) && programs.contains(cpu);
            let (share, what) = match beside {
                true => (KSOFTIRQD_SHARE, ", and also runs a program"),
                false => (1.0, ""),
            };
            limits.push(Limit {
                limiter: match interrupt_us > 0.0 {
                    true => Limiter::InterruptCpu,
                    false => Limiter::SteeringCpu,
                },
                rps: share * MICROSECONDS / work_us,
                reason: format!("CPU {cpu} needs {work_us:.2} us per request for packets{what}"),
            });
        }
        lowest_of_each(limits)
    }
}

fn lowest_of_each(limits: Vec<Limit>) -> Vec<Limit> {
    let lowest = |limiter| {
        let of_kind = limits.iter().filter(|limit| limit.limiter == limiter);
        of_kind.min_by(|a, b| a.rps.total_cmp(&b.rps)).cloned()
    };
    Limiter::ALL.into_iter().filter_map(lowest).collect()
}

/// Number of times that each part of [`PacketCost`] occurs per packet on the interrupt's CPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PacketParts {
    /// Inter-processor interrupts to CPUs of the same node per packet.
    pub(super) near: f64,
    /// Inter-processor interrupts to CPUs of other nodes per packet.
    pub(super) far: f64,
    /// Share of packets whose stack work is done on this CPU.
    pub(super) stack: f64,
    /// Share of the CPU's time available for packets.
    pub(super) share: f64,
}

impl PacketParts {
    pub(super) fn of(machine: &Machine, queue: &Queue) -> PacketParts {
        let own = machine.node_of(queue.irq_cpu);
        let count = queue.steering.len() as f64;
        let has_own = queue.steering.contains(queue.irq_cpu);
        let stays = queue.steering.is_empty() || has_own;
        let near = queue.steering.intersection(&own).len() - usize::from(has_own);
        let far = queue.steering.len() - queue.steering.intersection(&own).len();
        // A CPU gets an interrupt if at least one packet of a batch is steered to it.
        let told = match queue.steering.is_empty() {
            true => 0.0,
            false => (1.0 - (1.0 - 1.0 / count).powf(BATCH_PACKETS)) / BATCH_PACKETS,
        };
        PacketParts {
            near: near as f64 * told,
            far: far as f64 * told,
            stack: match (queue.steering.is_empty(), has_own) {
                (true, _) => 1.0,
                (false, true) => 1.0 / count,
                (false, false) => 0.0,
            },
            share: match stays && machine.application().contains(queue.irq_cpu) {
                true => KSOFTIRQD_SHARE,
                false => 1.0,
            },
        }
    }

    fn interrupt_us(&self, packet: &PacketCost) -> f64 {
        packet.driver_us
            + packet.interrupt_us * self.near
            + packet.far_interrupt_us * self.far
            + packet.stack_us * self.stack
    }
}

/// Limits of the programs on this machine: for each set of programs, the time of all their CPUs divided by their total
/// cost.
fn program_limits(machine: &Machine, cost: &Cost, work: &PacketWork) -> Vec<Limit> {
    let programs = programs(machine, cost);
    let mut limits = Vec::new();
    for set in 1..1_usize << programs.len() {
        let members = || (0..programs.len()).filter(|at| set >> at & 1 == 1);
        let cpus = members().fold(CpuSet::default(), |all, at| all.union(programs[at].cpus));
        let programs_us: f64 = members().map(|at| programs[at].us).sum();
        let packets_us = work.on(&cpus);
        if programs_us <= 0.0 {
            continue;
        }
        let has_application = members().any(|at| programs[at].role.is_none());
        let names: Vec<&str> = members().map(|at| programs[at].name()).collect();
        limits.push(Limit {
            limiter: match has_application {
                true => Limiter::ApplicationCpus,
                false => Limiter::Client,
            },
            rps: cost.usable * cpus.len() as f64 * MICROSECONDS / (programs_us + packets_us),
            reason: format!(
                "{} on CPUs {cpus}: {programs_us:.2} us per request, and {packets_us:.2} us for its packets",
                names.join(" and ")
            ),
        });
    }
    lowest_of_each(limits)
}

struct OnCpus<'a> {
    /// `None` is the program under test.
    role: Option<Role>,
    cpus: &'a CpuSet,
    us: f64,
}

impl OnCpus<'_> {
    fn name(&self) -> &'static str {
        self.role.map_or("the application", Role::name)
    }
}

fn programs<'a>(machine: &'a Machine, cost: &Cost) -> Vec<OnCpus<'a>> {
    let application = cost
        .application
        .as_ref()
        .map(|of_role| (None, machine.application(), of_role));
    let beside = machine.other_programs().iter().filter_map(|(role, cpus)| {
        let of_role = cost.other_programs.get(role)?;
        Some((Some(*role), cpus, of_role))
    });
    let all: Vec<(Option<Role>, &CpuSet, &RoleCost)> =
        application.into_iter().chain(beside).collect();
    let on = |(role, cpus, of_role): &(Option<Role>, &'a CpuSet, &RoleCost)| {
        let others = all.iter().filter(|other| other.0 != *role);
        let crossing = cross_cpu_share(cpus, others.map(|other| other.1));
        OnCpus {
            role: *role,
            cpus,
            us: of_role.at(cost.connections, cpus.len(), crossing),
        }
    };
    all.iter().map(on).collect()
}

/// Share of a program's exchanges whose peer is on another CPU, averaged over its peers, if connections are spread
/// evenly. 0 if the peers are on other machines.
pub(super) fn cross_cpu_share<'a>(own: &CpuSet, others: impl Iterator<Item = &'a CpuSet>) -> f64 {
    let crossings: Vec<f64> = others
        .map(|other| {
            let pairs = own.len() * other.len();
            1.0 - own.intersection(other).len() as f64 / pairs.max(1) as f64
        })
        .collect();
    crossings.iter().sum::<f64>() / crossings.len().max(1) as f64
}

fn packet_limits(machine: &Machine, cost: &Cost) -> Vec<Limit> {
    let (packets_in, packets_out) = (cost.exchange.packets_in, cost.exchange.packets_out);
    let interfaces = machine.interfaces().len() as f64;
    let each = packets_in.max(packets_out);
    let each_way = |interface: &Interface| {
        let packets_max = interface.packets_max_each_way?;
        Some(Limit {
            limiter: Limiter::PacketLimit,
            rps: packets_max * interfaces / each,
            reason: format!(
                "{} forwards at most {packets_max:.0} packets/s in each direction, and a request needs {each}",
                interface.name
            ),
        })
    };
    let mut limits: Vec<Limit> = machine.interfaces().iter().filter_map(each_way).collect();
    limits.extend(machine.packets_max().map(|packets_max| {
        let both = packets_in + packets_out;
        Limit {
            limiter: Limiter::PacketLimit,
            rps: packets_max / both,
            reason: format!(
                "the machine forwards at most {packets_max:.0} packets/s in both directions together, and a request needs {both}"
            ),
        }
    }));
    lowest_of_each(limits)
}

fn link_limits(machine: &Machine, cost: &Cost) -> Vec<Limit> {
    let interfaces = machine.interfaces().len() as f64;
    let of_interface = |interface: &Interface| {
        let link = interface.link?;
        let wire = |message| message_wire_bytes(message, interface.mtu);
        let bytes = wire(cost.exchange.bytes_in).max(wire(cost.exchange.bytes_out));
        (bytes > 0.0).then(|| Limit {
            limiter: Limiter::Link,
            rps: link.bits() / 8.0 * interfaces / bytes,
            reason: format!(
                "{} has {:.1} Gb/s, and the larger message of a request takes {bytes:.0} bytes",
                interface.name,
                link.bits() / 1e9
            ),
        })
    };
    lowest_of_each(
        machine
            .interfaces()
            .iter()
            .filter_map(of_interface)
            .collect(),
    )
}

fn client_limit(machine: &Machine, cost: &Cost) -> Option<Limit> {
    let rps = cost.client_rps_max?;
    Some(Limit {
        limiter: Limiter::Client,
        rps: rps * f64::from(machine.clients()),
        reason: format!(
            "{} machines send requests, each at most {rps:.0} requests/s",
            machine.clients()
        ),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::predict::cost::Exchange;
    use crate::predict::wire::LinkRate;

    const PACKET: PacketCost = PacketCost {
        driver_us: 1.3,
        stack_us: 0.7,
        interrupt_us: 1.5,
        far_interrupt_us: 1.5,
    };

    fn range(cpus: std::ops::Range<usize>) -> CpuSet {
        cpus.collect()
    }

    #[test]
    fn zero_packets_cost_nothing() {
        let us = PacketWork::default().on(&range(0..4));
        assert_eq!(format!("{us:.2}"), "0.00");
    }

    /// A machine with 64 CPUs in two nodes. The application's CPUs start at 1; CPU 0 receives packets and steers them.
    fn machine(application: usize, steering: usize) -> Machine {
        let interface = Interface {
            name: "eth0".to_owned(),
            link: LinkRate::parse("10G").ok(),
            mtu: 1_500,
            packets_max_each_way: Some(3e6),
            driver: Driver::Native,
            queues: vec![Queue {
                irq_cpu: 0,
                steering: range(1..1 + steering),
            }],
        };
        Machine::of_nodes(vec![range(0..32), range(32..64)])
            .and_then(|machine| machine.with_application(range(1..1 + application)))
            .and_then(|machine| machine.with_interface(interface))
            .expect("a machine")
    }

    fn cost(application_us: f64) -> Cost {
        Cost {
            application: Some(RoleCost {
                base_us: application_us,
                growth_us: 1.0,
                ..RoleCost::default()
            }),
            connections: 100,
            packet: Some(PACKET),
            ..Cost::default()
        }
    }

    fn rps(machine: &Machine, cost: &Cost) -> f64 {
        predict(machine, cost).expect("a limit").rps
    }

    #[test]
    fn limiter_saturates_first() {
        let limiter =
            |machine: &Machine, cost: &Cost| predict(machine, cost).expect("a limit").limiter;
        assert_eq!(
            limiter(&machine(2, 7), &cost(50.0)),
            Limiter::ApplicationCpus
        );
        assert_eq!(limiter(&machine(40, 7), &cost(1.0)), Limiter::InterruptCpu);
        let slow_stack = Cost {
            packet: Some(PacketCost {
                stack_us: 9.0,
                ..PACKET
            }),
            ..cost(1.0)
        };
        assert_eq!(limiter(&machine(40, 1), &slow_stack), Limiter::SteeringCpu);
        let large = Cost {
            exchange: Exchange {
                bytes_out: 1e6,
                ..Exchange::default()
            },
            ..cost(1.0)
        };
        assert_eq!(limiter(&machine(40, 7), &large), Limiter::Link);
        let few = machine(40, 7).with_packets_max(Some(1_000.0));
        assert_eq!(limiter(&few, &cost(1.0)), Limiter::PacketLimit);
        let asked = Cost {
            client_rps_max: Some(10.0),
            ..cost(1.0)
        };
        assert_eq!(limiter(&machine(40, 7), &asked), Limiter::Client);
    }

    #[test]
    fn cpu_microseconds_give_requests_per_second() {
        let alone = Machine::of_nodes(vec![range(0..4)]).expect("a machine");
        let fixed = Cost {
            application: Some(RoleCost::fixed(8.0)),
            ..Cost::default()
        };
        assert_eq!(rps(&alone, &fixed), 500_000.0);
        let shared = alone
            .with_program(Role::Client, range(0..4))
            .expect("a machine");
        let both = Cost {
            other_programs: BTreeMap::from([(Role::Client, RoleCost::fixed(2.0))]),
            ..fixed
        };
        assert_eq!(rps(&shared, &both), 400_000.0);
    }

    #[test]
    fn unknown_costs_give_no_prediction() {
        let alone = Machine::of_nodes(vec![range(0..4)]).expect("a machine");
        assert_eq!(predict(&alone, &Cost::default()), None);
    }

    proptest! {
        #[test]
        fn more_application_cores_never_predict_less(
            cores in 1..60_usize, more in 0..3_usize, steering in 1..60_usize, us in 0.1..100.0_f64,
        ) {
            let cost = cost(us);
            prop_assert!(rps(&machine(cores + more, steering), &cost) >= rps(&machine(cores, steering), &cost));
        }

        #[test]
        fn higher_costs_never_predict_more(
            cores in 1..60_usize, steering in 0..60_usize, us in 0.1..100.0_f64, part in 0..6_usize, more in 0.0..10.0_f64,
        ) {
            let before = cost(us);
            let mut after = before.clone();
            if let (Some(packet), Some(application)) = (&mut after.packet, &mut after.application) {
                *[
                    &mut packet.driver_us, &mut packet.stack_us, &mut packet.interrupt_us,
                    &mut packet.far_interrupt_us, &mut application.base_us, &mut application.growth_us,
                ][part] += more;
            }
            let machine = machine(cores, steering);
            prop_assert!(rps(&machine, &after) <= rps(&machine, &before));
        }

        #[test]
        fn more_connections_or_packets_never_predict_more(
            cores in 1..60_usize, steering in 0..60_usize, connections in 1..100_000_u32, packets in 0.1..10.0_f64,
        ) {
            let before = Cost { connections, ..cost(5.0) };
            let machine = machine(cores, steering);
            let crowded = Cost { connections: connections * 2, ..before.clone() };
            prop_assert!(rps(&machine, &crowded) <= rps(&machine, &before));
            let exchange = Exchange { packets_in: packets + 1.0, packets_out: packets + 1.0, ..Exchange::default() };
            let chatty = Cost { exchange, ..before.clone() };
            prop_assert!(rps(&machine, &chatty) <= rps(&machine, &before));
        }
    }
}
