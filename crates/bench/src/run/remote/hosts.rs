//! Other machines of a run: connected once at its start, with an agent on each until its end.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use super::super::agent_protocol::{Request, Response};
use super::super::failure::{Failure, Try};
use super::super::interrupt::Interrupt;
use super::clock;
use super::connect::{self, AccessMethod, Executable};
use super::connection::Connection;
use super::slurm::Allocation;
use crate::environment::{ClockOffset, HostFacts};
use crate::limits::CPUS_OF_HOST_MAX;
use crate::placement::{CpuAllotment, Placement, place};
use crate::scenario::{Access, Experiment, Remote, RemoteHost, Role, Slurm, Variant};

pub(in crate::run) struct Node {
    pub(in crate::run) connection: Arc<Connection>,
    pub(in crate::run) address: IpAddr,
    /// Offset of its CPU numbers, which makes them unique among hosts.
    pub(in crate::run) first_cpu: usize,
    pub(in crate::run) clock: ClockOffset,
}

impl Node {
    /// Converts CPU numbers of the run to numbers on this machine, and skips CPUs of others.
    pub(in crate::run) fn own(&self, cpus: &[usize]) -> Vec<usize> {
        let range = self.first_cpu..self.first_cpu + CPUS_OF_HOST_MAX;
        let own = cpus.iter().filter(|cpu| range.contains(cpu));
        own.map(|cpu| cpu - self.first_cpu).collect()
    }

    pub(in crate::run) fn onrush(&self) -> String {
        format!("{}/onrush", self.connection.hello.directory)
    }
}

#[derive(Default)]
pub(in crate::run) struct Hosts {
    reached: BTreeMap<String, Vec<Node>>,
    /// Reasons for hosts that were not reached.
    pub(in crate::run) unreachable: BTreeMap<String, String>,
    /// Declared last, so that it is dropped after the connections that run in it.
    allocation: Option<Allocation>,
}

impl Hosts {
    /// Connects the hosts that the variants need; failures are recorded with their reasons.
    pub(in crate::run) fn reach(
        experiment: &Experiment,
        onrush: &Path,
        scratch: &Path,
        interrupt: &Interrupt,
    ) -> Hosts {
        let mut hosts = Hosts::default();
        let wanted = wanted(experiment);
        if wanted.is_empty() {
            return hosts;
        }
        let allocated: Vec<&Slurm> = wanted.values().filter_map(|host| slurm(host)).collect();
        let copy = Executable::of(onrush, scratch);
        let allocation = match &copy {
            Ok(_) if !allocated.is_empty() => {
                Allocation::of(&allocated, scratch, interrupt).map(Some)
            }
            Ok(_) | Err(_) => Ok(None),
        };
        let (copy, mut allocation) = match (copy, allocation) {
            (Ok(copy), Ok(allocation)) => (copy, allocation),
            (Err(why), _) | (_, Err(why)) => {
                let names = wanted.keys().map(|name| ((*name).to_owned(), why.clone()));
                hosts.unreachable.extend(names);
                return hosts;
            }
        };
        let mut reaching = HostConnector {
            copy,
            scratch,
            interrupt,
            first_cpu: 0,
        };
        for (name, host) in wanted {
            match reaching.host(host, allocation.as_mut()) {
                Ok(nodes) => {
                    hosts.reached.insert(name.to_owned(), nodes);
                }
                Err(why) => {
                    hosts.unreachable.insert(name.to_owned(), why);
                }
            }
        }
        hosts.allocation = allocation;
        hosts
    }

    /// Machines of a role; empty if they were not reached.
    pub(in crate::run) fn nodes(&self, variant: &Variant, role: Role) -> &[Node] {
        let host = variant.remote.as_ref().and_then(|remote| remote.host(role));
        host.map_or(&[], |host| self.nodes_of(&host.name))
    }

    pub(in crate::run) fn nodes_of(&self, host: &str) -> &[Node] {
        self.reached.get(host).map_or(&[], Vec::as_slice)
    }

    pub(in crate::run) fn check(&self) -> Try<()> {
        let mut nodes = self.reached.values().flatten();
        match nodes.find_map(|node| node.connection.lost()) {
            None => Ok(()),
            Some(why) => Err(Failure::Lost(why)),
        }
    }

    /// CPUs of each role, assigned by the same rule on every machine.
    pub(in crate::run) fn placement(
        &self,
        remote: &Remote,
        under_test: Role,
        room: CpuAllotment,
    ) -> Placement {
        let mut placement = Placement::default();
        for (index, host) in remote.hosts.iter().enumerate() {
            let roles = remote.roles_on(index);
            for node in self.nodes_of(&host.name) {
                let placed = place(&node.connection.hello.cpus, &roles, under_test, room);
                for (role, cpus) in placed.cpus {
                    let numbers = cpus.iter().map(|cpu| cpu + node.first_cpu);
                    placement.cpus.entry(role).or_default().extend(numbers);
                }
            }
        }
        placement
    }

    /// Checks that a command is installed on all machines of a host.
    pub(in crate::run) fn find(&self, host: &RemoteHost, command: &str) -> Result<(), String> {
        for node in self.nodes_of(&host.name) {
            let command = command.to_owned();
            match node.connection.request_one(Request::Find { command }) {
                Ok(Response::Found(Some(_))) => {}
                Ok(_) => {
                    return Err(format!(
                        "it is not installed on host `{}`",
                        node.connection.name
                    ));
                }
                Err(_) => return Err(node.connection.lost().unwrap_or_default()),
            }
        }
        Ok(())
    }

    pub(in crate::run) fn facts(&self, experiment: &Experiment) -> BTreeMap<String, HostFacts> {
        let wanted = wanted(experiment);
        let mut facts = BTreeMap::new();
        for (name, nodes) in &self.reached {
            for node in nodes {
                let of_node = HostFacts {
                    access: wanted
                        .get(name.as_str())
                        .map_or(String::new(), |host| in_words(host)),
                    address: node.address,
                    first_cpu: node.first_cpu,
                    machine: node.connection.hello.machine.clone(),
                    clock: node.clock,
                    clock_at_end: None,
                };
                facts.insert(node.connection.name.clone(), of_node);
            }
        }
        facts
    }

    /// Measures the clock offsets at the end of the run.
    pub(in crate::run) fn finish(&self, facts: &mut BTreeMap<String, HostFacts>) {
        for node in self.reached.values().flatten() {
            if let Some(of_node) = facts.get_mut(&node.connection.name) {
                of_node.clock_at_end = clock::compare(&node.connection).ok();
            }
        }
    }
}

fn wanted(experiment: &Experiment) -> BTreeMap<&str, &RemoteHost> {
    let variants = experiment.works.iter().flat_map(|work| &work.variants);
    let remotes = variants.filter_map(|variant| variant.remote.as_ref());
    let hosts = remotes.flat_map(|remote| &remote.hosts);
    hosts.map(|host| (host.name.as_str(), host)).collect()
}

fn slurm<'a>(host: &&'a RemoteHost) -> Option<&'a Slurm> {
    match &host.access {
        Access::Slurm(slurm) => Some(slurm),
        Access::Local(_) | Access::Ssh(_) => None,
    }
}

fn in_words(host: &RemoteHost) -> String {
    match &host.access {
        Access::Local(_) => "local".into(),
        Access::Ssh(ssh) => {
            let words = ["ssh"]
                .into_iter()
                .chain(ssh.options.iter().map(String::as_str));
            words.chain([ssh.to.as_str()]).collect::<Vec<_>>().join(" ")
        }
        Access::Slurm(slurm) => format!("slurm {}", slurm.options.join(" "))
            .trim()
            .to_owned(),
    }
}

/// State while connecting the machines of a run.
struct HostConnector<'a> {
    copy: Executable,
    scratch: &'a Path,
    interrupt: &'a Interrupt,
    /// CPU offset of the last machine.
    first_cpu: usize,
}

impl HostConnector<'_> {
    fn host(
        &mut self,
        host: &RemoteHost,
        allocation: Option<&mut Allocation>,
    ) -> Result<Vec<Node>, String> {
        let name = host.name.as_str();
        match (&host.access, allocation) {
            (Access::Local(address), _) => {
                let way = connect::local_access(&self.copy);
                Ok(vec![self.node(name, &way, *address)?])
            }
            (Access::Ssh(ssh), _) => {
                if let Some(missing) = connect::missing("ssh", "openssh-client") {
                    return Err(missing);
                }
                let way = connect::ssh_access(ssh, &self.copy);
                Ok(vec![self.node(name, &way, connect::address(ssh)?)?])
            }
            (Access::Slurm(slurm), Some(allocation)) => {
                let mut nodes = Vec::new();
                for number in 1..=slurm.nodes {
                    let (node, address) = allocation.node()?;
                    let way = allocation.way(&node, &self.copy);
                    let name = match slurm.nodes {
                        1 => name.to_owned(),
                        _ => format!("{name}.{number}"),
                    };
                    nodes.push(self.node(&name, &way, address)?);
                }
                Ok(nodes)
            }
            (Access::Slurm(_), None) => Err("no nodes were allocated".into()),
        }
    }

    fn node(&mut self, name: &str, way: &AccessMethod, address: IpAddr) -> Result<Node, String> {
        let errors = self.scratch.join(format!("host-{name}.txt"));
        let connection = connect::reach(name, way, &self.copy, &errors, self.interrupt)?;
        self.first_cpu += CPUS_OF_HOST_MAX;
        let Ok(clock) = clock::compare(&connection) else {
            return Err(connection.lost().unwrap_or_default());
        };
        Ok(Node {
            connection: Arc::new(connection),
            address,
            first_cpu: self.first_cpu,
            clock,
        })
    }
}
