//! Model of a machine: CPUs by NUMA node, CPUs of each program, and network interfaces.

use std::collections::BTreeMap;

use super::wire::LinkRate;
use crate::scenario::Role;
use onrush_machine::cpus::CpuSet;

/// A machine. Each CPU named belongs to one of its nodes, and the application has at least one CPU.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    nodes: Vec<CpuSet>,
    application: CpuSet,
    other_programs: BTreeMap<Role, CpuSet>,
    interfaces: Vec<Interface>,
    packets_max: Option<f64>,
    clients: u32,
}

/// A network interface, or a virtual function of one.
#[derive(Debug, Clone, PartialEq)]
pub struct Interface {
    /// Interface name in the kernel.
    pub name: String,
    /// Rate of the link in each direction; `None` if unknown or unlimited.
    pub link: Option<LinkRate>,
    /// MTU in bytes.
    pub mtu: u64,
    /// Limit on packets per second in each direction, regardless of the cause.
    pub packets_max_each_way: Option<f64>,
    /// Path of packets between device and kernel.
    pub driver: Driver,
    /// Receive queues, over which connections are spread evenly; without queues, packet work is not modelled.
    pub queues: Vec<Queue>,
}

/// Path of packets between device and kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driver {
    /// A driver for the hardware, including virtual functions (SR-IOV).
    Native,
    /// Through the hypervisor, which copies each packet.
    Paravirtual,
}

/// A receive queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// CPU of its interrupt.
    pub irq_cpu: usize,
    /// CPUs to which packets are steered (RPS); empty if the interrupt's CPU processes them.
    pub steering: CpuSet,
}

impl Machine {
    /// A machine without network whose application may use all CPUs of `nodes`. Fails without CPUs, or if a CPU is in
    /// two nodes.
    pub fn of_nodes(nodes: Vec<CpuSet>) -> Result<Machine, String> {
        let mut application = CpuSet::default();
        for node in &nodes {
            let twice = application.intersection(node);
            if !twice.is_empty() {
                return Err(format!(
                    "these CPUs are in two nodes: {twice} (expected each in one)"
                ));
            }
            application = application.union(node);
        }
        if application.is_empty() {
            return Err("a machine without CPUs: expected at least one".to_owned());
        }
        Ok(Machine {
            nodes,
            application,
            other_programs: BTreeMap::new(),
            interfaces: Vec::new(),
            packets_max: None,
            clients: 1,
        })
    }

    /// Restricts the application to these CPUs.
    pub fn with_application(mut self, cpus: CpuSet) -> Result<Machine, String> {
        self.application = self.own("the application", cpus)?;
        Ok(self)
    }

    /// Adds another program.
    pub fn with_program(mut self, role: Role, cpus: CpuSet) -> Result<Machine, String> {
        let cpus = self.own(role.name(), cpus)?;
        self.other_programs.insert(role, cpus);
        Ok(self)
    }

    /// Adds an interface. Fails if the name is in use, or an interrupt's CPU does not exist.
    pub fn with_interface(mut self, interface: Interface) -> Result<Machine, String> {
        let name = &interface.name;
        if self.interfaces.iter().any(|known| known.name == *name) {
            return Err(format!(
                "there are two interfaces `{name}`: expected a different `name` for each"
            ));
        }
        for queue in &interface.queues {
            let irq_cpu = CpuSet::from_iter([queue.irq_cpu]);
            self.own(&format!("an interrupt of {}", interface.name), irq_cpu)?;
            if !queue.steering.is_empty() {
                let what = format!("packet steering of {}", interface.name);
                self.own(&what, queue.steering.clone())?;
            }
        }
        self.interfaces.push(interface);
        Ok(self)
    }

    /// Limits packets per second in both directions over all interfaces, as cloud providers do by instance size.
    pub fn with_packets_max(self, packets_max: Option<f64>) -> Machine {
        Machine {
            packets_max,
            ..self
        }
    }

    /// Limits packets per second of each interface in each direction.
    pub fn with_packets_max_each_way(mut self, packets_max: f64) -> Machine {
        for interface in &mut self.interfaces {
            interface.packets_max_each_way = Some(packets_max);
        }
        self
    }

    /// Sets the number of client machines.
    pub fn with_clients(self, clients: u32) -> Machine {
        Machine { clients, ..self }
    }

    fn own(&self, what: &str, cpus: CpuSet) -> Result<CpuSet, String> {
        let all = self.cpus();
        if cpus.is_empty() {
            return Err(format!("{what} has no CPU: expected at least one of {all}"));
        }
        if !cpus.is_subset(&all) {
            return Err(format!(
                "{what} is on CPU {cpus}, but the machine has {all}: expected CPUs of its nodes"
            ));
        }
        Ok(cpus)
    }

    /// All CPUs.
    pub fn cpus(&self) -> CpuSet {
        self.nodes
            .iter()
            .fold(CpuSet::default(), |all, node| all.union(node))
    }

    /// CPUs in the same node as this one.
    pub fn node_of(&self, cpu: usize) -> CpuSet {
        let node = self.nodes.iter().find(|node| node.contains(cpu));
        node.cloned().unwrap_or_default()
    }

    /// CPUs of the program under test.
    pub fn application(&self) -> &CpuSet {
        &self.application
    }

    /// Other programs on this machine with their CPUs.
    pub fn other_programs(&self) -> &BTreeMap<Role, CpuSet> {
        &self.other_programs
    }

    /// Interfaces; without one, clients use loopback.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Limit on packets per second over both directions and all interfaces; `None` if unlimited.
    pub fn packets_max(&self) -> Option<f64> {
        self.packets_max
    }

    /// Number of client machines.
    pub fn clients(&self) -> u32 {
        self.clients
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(list: &str) -> CpuSet {
        CpuSet::parse_list(list).expect("a list")
    }

    #[test]
    fn nonexistent_cpu_is_an_error() {
        let machine = Machine::of_nodes(vec![cpus("0-3")]).expect("a machine");
        let interface = |irq_cpu, steering| Interface {
            name: "eth0".to_owned(),
            link: None,
            mtu: 1_500,
            packets_max_each_way: None,
            driver: Driver::Native,
            queues: vec![Queue {
                irq_cpu,
                steering: cpus(steering),
            }],
        };
        let errors = [
            machine.clone().with_application(cpus("4")),
            machine.clone().with_application(cpus("")),
            machine.clone().with_program(Role::Client, cpus("0-4")),
            machine.clone().with_interface(interface(4, "")),
            machine.clone().with_interface(interface(0, "3-4")),
            Machine::of_nodes(vec![cpus("0-1"), cpus("1-2")]),
            Machine::of_nodes(Vec::new()),
        ];
        for error in errors {
            let error = error.expect_err("a machine that cannot be");
            assert!(error.contains("expected"), "{error}");
        }
        assert!(machine.with_interface(interface(0, "1-3")).is_ok());
    }
}
