//! A machine as the model sees it: CPUs by node, who runs where, and how packets get in.

use std::collections::BTreeMap;

use super::wire::LinkRate;
use crate::scenario::Role;
use onrush_machine::cpus::CpuSet;

/// A machine. Every CPU that is named is one of its nodes', and the application has at least one.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    nodes: Vec<CpuSet>,
    application: CpuSet,
    beside: BTreeMap<Role, CpuSet>,
    interfaces: Vec<Interface>,
    packets_max: Option<f64>,
    clients: u32,
}

/// A network card, or a part of one that a virtual machine was given.
#[derive(Debug, Clone, PartialEq)]
pub struct Interface {
    /// As the kernel calls it.
    pub name: String,
    /// Of the link, in each direction; none when it is not known or has no limit.
    pub link: Option<LinkRate>,
    /// What IP may fill of a frame, in bytes.
    pub mtu: u64,
    /// Packets a second that pass in each direction, whoever sets that limit.
    pub packets_max_each_way: Option<f64>,
    /// How packets get from the device to the kernel.
    pub driver: Driver,
    /// Receive queues, over which connections are spread evenly; without one nothing is said about packets.
    pub queues: Vec<Queue>,
}

/// How packets get from the device to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driver {
    /// By a driver of the device, also of a function that a virtual machine was given (SR-IOV).
    Native,
    /// Through the hypervisor, which copies each packet.
    Paravirtual,
}

/// A receive queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// The CPU that its interrupt goes to.
    pub irq_cpu: usize,
    /// The CPUs that packets are steered to; empty when the interrupt's CPU carries them through the stack itself.
    pub steering: CpuSet,
}

impl Machine {
    /// A machine whose application may run on every CPU of `nodes`, and which has no network. An error when a CPU is in
    /// two nodes or there is none.
    pub fn of_nodes(nodes: Vec<CpuSet>) -> Result<Machine, String> {
        let mut application = CpuSet::default();
        for node in &nodes {
            let twice = application.intersection(node);
            if !twice.is_empty() {
                return Err(format!(
                    "these CPUs are in two nodes, expected each in one: {twice}"
                ));
            }
            application = application.union(node);
        }
        if application.is_empty() {
            return Err("a machine without a CPU: expected at least one".to_owned());
        }
        Ok(Machine {
            nodes,
            application,
            beside: BTreeMap::new(),
            interfaces: Vec::new(),
            packets_max: None,
            clients: 1,
        })
    }

    /// The same machine with the application on these CPUs only.
    pub fn with_application(mut self, cpus: CpuSet) -> Result<Machine, String> {
        self.application = self.own("the application", cpus)?;
        Ok(self)
    }

    /// The same machine with another program of the chain on it.
    pub fn with_beside(mut self, role: Role, cpus: CpuSet) -> Result<Machine, String> {
        let cpus = self.own(role.name(), cpus)?;
        self.beside.insert(role, cpus);
        Ok(self)
    }

    /// The same machine with one more interface. An error when one has its name already, or its interrupts come to no CPU
    /// of the machine.
    pub fn with_interface(mut self, interface: Interface) -> Result<Machine, String> {
        let name = &interface.name;
        if self.interfaces.iter().any(|known| known.name == *name) {
            return Err(format!(
                "there are two interfaces `{name}`: expected a `name` of its own for each"
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

    /// The same machine with a limit on its packets a second, in both directions and over all interfaces together, as
    /// clouds set one for a size of machine.
    pub fn with_packets_max(self, packets_max: Option<f64>) -> Machine {
        Machine {
            packets_max,
            ..self
        }
    }

    /// The same machine with a limit on the packets of each of its interfaces, in each direction.
    pub fn with_packets_max_each_way(mut self, packets_max: f64) -> Machine {
        for interface in &mut self.interfaces {
            interface.packets_max_each_way = Some(packets_max);
        }
        self
    }

    /// The same machine with so many machines that ask it.
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
                "{what} is on CPU {cpus} and the machine has {all}: expected CPUs of its nodes"
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

    /// The CPUs of the same node as this one.
    pub fn node_of(&self, cpu: usize) -> CpuSet {
        let node = self.nodes.iter().find(|node| node.contains(cpu));
        node.cloned().unwrap_or_default()
    }

    /// The CPUs that the program under test may run on.
    pub fn application(&self) -> &CpuSet {
        &self.application
    }

    /// Other programs of the chain that are on this machine, with their CPUs.
    pub fn beside(&self) -> &BTreeMap<Role, CpuSet> {
        &self.beside
    }

    /// Its interfaces; a machine without one is asked over loopback.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Packets a second in both directions together that are let through; none when there is no such limit.
    pub fn packets_max(&self) -> Option<f64> {
        self.packets_max
    }

    /// Machines that ask.
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
    fn a_cpu_that_the_machine_does_not_have_is_an_error() {
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
            machine.clone().with_beside(Role::Client, cpus("0-4")),
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
