//! Where roles run when it is not simply this machine: hosts, and the links between them.

use std::collections::BTreeMap;

use super::role::Role;

/// The hosts of a variant's roles, with the links between them.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// Each is a network namespace that a trial makes for itself.
    pub hosts: Vec<Host>,
    /// Links between two of them.
    pub links: Vec<Link>,
    /// The host of each role, by its place.
    pub of: BTreeMap<Role, usize>,
}

/// A network namespace: a TCP stack of its own, with its own interfaces and settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Kernel settings in it, below `net.`.
    pub sysctl: BTreeMap<String, String>,
}

/// One or more pairs of virtual Ethernet interfaces between two hosts, all alike (veth(4)).
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// The hosts at its ends, by their places.
    pub ends: [usize; 2],
    /// How many pairs; each is a network of its own.
    pub interfaces: u32,
    /// Receive and transmit queues of each interface.
    pub queues: u32,
    /// Bits per second that leave an interface at most, by a token bucket filter (tc-tbf(8)).
    pub rate: Option<u64>,
    /// Bytes of the largest packet.
    pub mtu: Option<u32>,
    /// `rps_cpus` of all receive queues at each end, a mask in hexadecimal digits (Documentation/networking/scaling.rst).
    pub steering: [Option<String>; 2],
}

impl Network {
    /// The link between two hosts, and which of its ends the second one is.
    pub fn between(&self, from: usize, to: usize) -> Option<(usize, usize)> {
        let mut links = self.links.iter().enumerate();
        links.find_map(|(index, link)| match link.ends {
            [a, b] if a == from && b == to => Some((index, 1)),
            [a, b] if a == to && b == from => Some((index, 0)),
            _ => None,
        })
    }

    /// How many ways lead from one role to another: 1 on the same host, none without a link.
    pub fn ways(&self, from: Role, to: Role) -> u32 {
        let (Some(&from), Some(&to)) = (self.of.get(&from), self.of.get(&to)) else {
            return 0;
        };
        if from == to {
            return 1;
        }
        let link = self.between(from, to);
        link.map_or(0, |(link, _)| self.links[link].interfaces)
    }

    /// The number of the network of a pair of interfaces: links count one behind the other.
    pub fn subnet(&self, link: usize, interface: u32) -> u32 {
        let before = self.links[..link].iter().map(|link| link.interfaces);
        before.sum::<u32>() + interface
    }
}

/// The role that a role asks: the proxy if there is one for the client, the server for all others.
pub fn target(role: Role, has_proxy: impl Fn() -> bool) -> Role {
    match role {
        Role::Client if has_proxy() => Role::Proxy,
        Role::Client | Role::Proxy | Role::Server | Role::Control => Role::Server,
    }
}
