//! Network namespaces that roles run in, and the links between them.

use std::collections::BTreeMap;

use super::role::Role;

/// The hosts of a variant's roles, with the links between them.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// Hosts; each trial creates a network namespace for each of them.
    pub hosts: Vec<Host>,
    /// Links, each between two hosts.
    pub links: Vec<Link>,
    /// Index into `hosts` for each role.
    pub of: BTreeMap<Role, usize>,
}

/// A network namespace: a TCP stack with its own interfaces and settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Kernel settings in the namespace, below `net.`.
    pub sysctl: BTreeMap<String, String>,
}

/// One or more identical pairs of virtual Ethernet interfaces between two hosts (veth(4)).
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// Indexes of the two hosts.
    pub ends: [usize; 2],
    /// Number of pairs; each is a separate IP network.
    pub interfaces: u32,
    /// Receive and transmit queues of each interface.
    pub queues: u32,
    /// Maximum bits per second sent by an interface, set with a token bucket filter (tc-tbf(8)).
    pub rate: Option<u64>,
    /// Size of the largest packet in bytes.
    pub mtu: Option<u32>,
    /// `rps_cpus` of all receive queues at each end, as a hexadecimal mask (Documentation/networking/scaling.rst).
    pub steering: [Option<String>; 2],
}

impl Network {
    /// Index of the link between two hosts, and the index of `to` in its `ends`.
    pub fn between(&self, from: usize, to: usize) -> Option<(usize, usize)> {
        let mut links = self.links.iter().enumerate();
        links.find_map(|(index, link)| match link.ends {
            [a, b] if a == from && b == to => Some((index, 1)),
            [a, b] if a == to && b == from => Some((index, 0)),
            _ => None,
        })
    }

    /// Number of paths from one role to another: 1 on the same host, 0 without a link.
    pub fn path_count(&self, from: Role, to: Role) -> u32 {
        let (Some(&from), Some(&to)) = (self.of.get(&from), self.of.get(&to)) else {
            return 0;
        };
        if from == to {
            return 1;
        }
        let link = self.between(from, to);
        link.map_or(0, |(link, _)| self.links[link].interfaces)
    }

    /// Number of the IP network of a pair of interfaces, counted over all links in order.
    pub fn subnet(&self, link: usize, interface: u32) -> u32 {
        let before = self.links[..link].iter().map(|link| link.interfaces);
        before.sum::<u32>() + interface
    }
}

/// The role that `role` connects to: for the client the proxy, if there is one; otherwise the server.
pub fn target(role: Role, has_proxy: impl Fn() -> bool) -> Role {
    match role {
        Role::Client if has_proxy() => Role::Proxy,
        Role::Client | Role::Proxy | Role::Server | Role::Control => Role::Server,
    }
}
