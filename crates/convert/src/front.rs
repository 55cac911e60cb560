//! Where the result listens. Both languages have servers for each address; Onrush has one list of routes for all addresses.
//! So what came by which address becomes conditions: the scheme, and the port that `Host` names.

use std::net::IpAddr;

use crate::condition::{Atom, Scheme, Test};
use crate::document::{Section, Value};

/// Which clients reach an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// All addresses of the machine.
    Everywhere,
    /// One of them.
    Address(IpAddr),
    /// A Unix socket.
    Unix,
}

/// A place to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listener {
    /// As Onrush writes it.
    pub(crate) address: String,
    pub(crate) reach: Reach,
    /// None for a Unix socket.
    pub(crate) port: Option<u16>,
    pub(crate) tls: Option<Value>,
    pub(crate) proxy_protocol: Option<Value>,
    /// Where it was written.
    pub(crate) origin: String,
    /// Who serves there, the default first.
    pub(crate) owners: Vec<usize>,
}

/// Addresses with the same servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    /// The default first.
    pub(crate) owners: Vec<usize>,
    /// What tells their requests from those of others.
    pub(crate) conditions: Vec<Atom>,
    pub(crate) distinct: Distinct,
}

/// How well requests are told from those that came by other addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Distinct {
    Exactly,
    /// By the port that `Host` names.
    ByNamedPort,
    /// Not at all: the addresses have the same port and scheme.
    Not,
}

impl Distinct {
    /// For notes.
    pub(crate) const BY_NAMED_PORT: &'static str = "routes hold for all addresses, so requests are told apart by the port that their Host names: a client that names another one gets what is served there";
    /// For notes.
    pub(crate) const NOT: &'static str = "routes hold for all addresses, and nothing tells requests to this one from those to another with the same port: one of them is served as the other";
}

impl Listener {
    pub(crate) fn scheme(&self) -> Scheme {
        match self.tls {
            Some(_) => Scheme::Https,
            None => Scheme::Http,
        }
    }

    fn is_loopback(&self) -> bool {
        matches!(self.reach, Reach::Address(address) if address.is_loopback())
    }

    /// `[[listen]]`.
    pub(crate) fn written(&self) -> Section {
        let mut section = Section::new("[[listen]]");
        section.comments.push(self.origin.clone());
        section.put("address", Value::text(&self.address));
        for (key, value) in [("tls", &self.tls), ("proxy_protocol", &self.proxy_protocol)] {
            if let Some(value) = value {
                section.put(key, value.clone());
            }
        }
        section
    }
}

/// The classes of all listeners, in the order in which they were first written.
pub(crate) fn classes(listeners: &[Listener]) -> Vec<Class> {
    let mut groups: Vec<Vec<&Listener>> = Vec::new();
    for listener in listeners {
        let is_same = |group: &&mut Vec<&Listener>| {
            group[0].owners == listener.owners && group[0].scheme() == listener.scheme()
        };
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push(listener),
            None => groups.push(vec![listener]),
        }
    }
    if let [one, other] = &*groups
        && one[0].owners == other[0].owners
    {
        // By either scheme the same: nothing is to be told apart.
        groups = vec![[one.clone(), other.clone()].concat()];
    }
    (0..groups.len()).map(|at| class_of(at, &groups)).collect()
}

fn class_of(at: usize, groups: &[Vec<&Listener>]) -> Class {
    let group = &groups[at];
    let scheme = group[0].scheme();
    let others = || groups.iter().enumerate().filter(|(other, _)| *other != at);
    let mut class = Class {
        owners: group[0].owners.clone(),
        conditions: Vec::new(),
        distinct: Distinct::Exactly,
    };
    if others().any(|(_, other)| other[0].scheme() != scheme) {
        class.conditions.push(Atom::Scheme(scheme));
    }
    let rivals: Vec<&Listener> = others()
        .filter(|(_, other)| other[0].scheme() == scheme)
        .flat_map(|(_, other)| other.iter().copied())
        .collect();
    if rivals.is_empty() {
        return class;
    }
    if group.iter().all(|listener| listener.is_loopback())
        && rivals.iter().any(|rival| !rival.is_loopback())
    {
        let networks = ["127.0.0.0/8", "::1"].map(str::to_owned);
        class.conditions.push(Atom::From(networks.into()));
    }
    let mut ports: Vec<u16> = group.iter().filter_map(|listener| listener.port).collect();
    ports.sort_unstable();
    ports.dedup();
    let has_unix = group.iter().any(|listener| listener.port.is_none());
    let is_shared = |rival: &&Listener| rival.port.is_none_or(|port| ports.contains(&port));
    if has_unix || rivals.iter().any(is_shared) {
        class.distinct = Distinct::Not;
        return class;
    }
    class.distinct = Distinct::ByNamedPort;
    let test = Test::Matches(named_port(&ports, scheme));
    class.conditions.push(Atom::Header("Host".to_owned(), test));
    class
}

/// What is found in a `Host` that names one of these ports, or none where one of them is the scheme's own.
pub(crate) fn named_port(ports: &[u16], scheme: Scheme) -> String {
    let own = match scheme {
        Scheme::Http => 80,
        Scheme::Https => 443,
    };
    let list: Vec<String> = ports.iter().map(u16::to_string).collect();
    let list = list.join("|");
    match ports.contains(&own) {
        true => format!(r"^(\[[^\]]*\]|[^:]*)(:({list}))?$"),
        false => format!(":({list})$"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listener(address: &str, port: u16, tls: Option<Value>, owners: &[usize]) -> Listener {
        let address: IpAddr = address.parse().expect("an address");
        Listener {
            address: format!("{address}:{port}"),
            reach: match address.is_unspecified() {
                true => Reach::Everywhere,
                false => Reach::Address(address),
            },
            port: Some(port),
            tls,
            proxy_protocol: None,
            origin: String::new(),
            owners: owners.to_vec(),
        }
    }

    fn conditions(listeners: &[Listener]) -> Vec<(Vec<Atom>, Distinct)> {
        let classes = classes(listeners).into_iter();
        classes
            .map(|class| (class.conditions, class.distinct))
            .collect()
    }

    #[test]
    fn what_is_served_everywhere_needs_no_condition() {
        let tls = || Some(Value::text("self-signed"));
        let all = [
            listener("0.0.0.0", 80, None, &[0, 1]),
            listener("::", 80, None, &[0, 1]),
            listener("0.0.0.0", 443, tls(), &[0, 1]),
        ];
        assert_eq!(conditions(&all), [(vec![], Distinct::Exactly)]);
    }

    #[test]
    fn schemes_and_ports_tell_servers_apart() {
        let tls = || Some(Value::text("self-signed"));
        let host =
            |pattern: &str| Atom::Header("Host".to_owned(), Test::Matches(pattern.to_owned()));
        let (http, https) = (Atom::Scheme(Scheme::Http), Atom::Scheme(Scheme::Https));
        let two = [
            listener("0.0.0.0", 80, None, &[0]),
            listener("0.0.0.0", 443, tls(), &[1]),
        ];
        assert_eq!(
            conditions(&two),
            [
                (vec![http.clone()], Distinct::Exactly),
                (vec![https], Distinct::Exactly)
            ]
        );
        let three = [
            listener("0.0.0.0", 80, None, &[0]),
            listener("127.0.0.1", 8080, None, &[1]),
        ];
        let loopback = Atom::From(vec!["127.0.0.0/8".to_owned(), "::1".to_owned()]);
        assert_eq!(
            conditions(&three),
            [
                (
                    vec![host(r"^(\[[^\]]*\]|[^:]*)(:(80))?$")],
                    Distinct::ByNamedPort
                ),
                (vec![loopback, host(":(8080)$")], Distinct::ByNamedPort)
            ]
        );
        let same = [
            listener("192.0.2.1", 80, None, &[0]),
            listener("192.0.2.2", 80, None, &[1]),
        ];
        let not = (vec![], Distinct::Not);
        assert_eq!(conditions(&same), [not.clone(), not]);
    }
}
