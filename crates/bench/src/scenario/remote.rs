//! Other machines that roles run on: how to reach them, and their settings during a trial.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::role::Role;

/// The machines that the roles of a variant run on.
#[derive(Debug, Clone, PartialEq)]
pub struct Remote {
    /// Hosts; each has its own programs, CPUs and clock.
    pub hosts: Vec<RemoteHost>,
    /// Index into `hosts` for each role.
    pub of: BTreeMap<Role, usize>,
}

impl Remote {
    /// The host of a role, if the role is used.
    pub fn host(&self, role: Role) -> Option<&RemoteHost> {
        self.hosts.get(*self.of.get(&role)?)
    }

    /// The roles that run on a host.
    pub fn roles_on(&self, host: usize) -> Vec<Role> {
        let on = self.of.iter().filter(|(_, place)| **place == host);
        on.map(|(role, _)| *role).collect()
    }
}

/// One machine, or several identical ones.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteHost {
    /// Name in the experiment.
    pub name: String,
    /// How to connect to it.
    pub access: Access,
    /// Settings during a trial.
    pub settings: Settings,
}

/// Settings to apply to a host before a trial, and to restore after it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// Kernel settings by name, such as `net.core.somaxconn`.
    pub sysctl: BTreeMap<String, String>,
    /// `rps_cpus` of all receive queues by interface, as a hexadecimal mask.
    pub steering: BTreeMap<String, String>,
    /// Arguments for `onrush tune apply`; `None` applies no tuning.
    pub tune: Option<String>,
}

/// How to connect to a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// This machine, at this address: an agent without a connection.
    Local(IpAddr),
    /// Through the system's ssh(1).
    Ssh(Ssh),
    /// As nodes of a Slurm allocation.
    Slurm(Slurm),
}

impl Access {
    /// Number of machines.
    pub fn nodes(&self) -> u32 {
        match self {
            Access::Local(_) | Access::Ssh(_) => 1,
            Access::Slurm(slurm) => slurm.nodes,
        }
    }
}

/// A host reached through ssh(1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ssh {
    /// `user@host`, or a host name from ssh_config(5).
    pub to: String,
    /// Options before the host name.
    pub options: Vec<String>,
    /// Address for connections from other hosts; `None` looks it up with ssh and the resolver of this machine.
    pub address: Option<IpAddr>,
}

/// Nodes of a Slurm allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slurm {
    /// Number of nodes.
    pub nodes: u32,
    /// Options for salloc(1), the same for all Slurm hosts of an experiment.
    pub options: Vec<String>,
}
