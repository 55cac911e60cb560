//! Hosts that are other machines: how each is reached, and what is set on it for a trial.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::role::Role;

/// The machines on which a variant's roles run.
#[derive(Debug, Clone, PartialEq)]
pub struct Remote {
    /// Each has its own programs, CPUs and clock.
    pub hosts: Vec<RemoteHost>,
    /// The host of each role, by its place.
    pub of: BTreeMap<Role, usize>,
}

impl Remote {
    /// The host of a role that takes part.
    pub fn host(&self, role: Role) -> Option<&RemoteHost> {
        self.hosts.get(*self.of.get(&role)?)
    }

    /// The roles that run on a host.
    pub fn roles_on(&self, host: usize) -> Vec<Role> {
        let on = self.of.iter().filter(|(_, place)| **place == host);
        on.map(|(role, _)| *role).collect()
    }
}

/// A machine, or several alike.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteHost {
    /// Its name in the experiment.
    pub name: String,
    /// How it is reached.
    pub access: Access,
    /// What is set on it while a trial is made.
    pub settings: Settings,
}

/// What is set on a host before a trial and set back behind it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// Kernel settings by name, `net.core.somaxconn`.
    pub sysctl: BTreeMap<String, String>,
    /// `rps_cpus` of all receive queues of an interface, a mask in hexadecimal digits.
    pub steering: BTreeMap<String, String>,
    /// The words behind `onrush tune apply`; `None` tunes nothing.
    pub tune: Option<String>,
}

/// How a host is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// It is this machine, at this address: an agent without a connection.
    Local(IpAddr),
    /// By the system's ssh(1).
    Ssh(Ssh),
    /// As nodes of an allocation of Slurm.
    Slurm(Slurm),
}

impl Access {
    /// How many machines it stands for.
    pub fn nodes(&self) -> u32 {
        match self {
            Access::Local(_) | Access::Ssh(_) => 1,
            Access::Slurm(slurm) => slurm.nodes,
        }
    }
}

/// A host of ssh(1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ssh {
    /// `user@host`, or a name that its configuration knows.
    pub to: String,
    /// Options that stand before it.
    pub options: Vec<String>,
    /// Where other hosts reach it; `None` asks ssh and the resolver of this machine.
    pub address: Option<IpAddr>,
}

/// Nodes of Slurm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slurm {
    /// How many.
    pub nodes: u32,
    /// What all hosts of an experiment ask for together, as options of salloc(1).
    pub options: Vec<String>,
}
