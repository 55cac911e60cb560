//! Listeners of the result. In nginx and HAProxy each address has its own servers; Onrush has one list of routes for
//! all addresses. Routes therefore get a condition on the scheme where that is enough, otherwise on the listener.

use crate::document::{Section, Value};
use crate::expression::condition::{Atom, Scheme};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listener {
    /// The address in the syntax of Onrush.
    pub(crate) address: String,
    pub(crate) tls: Option<Value>,
    pub(crate) proxy_protocol: Option<Value>,
    /// Position and text of the directive that it comes from.
    pub(crate) origin: String,
    /// Indexes of the servers or frontends at this address, the default first.
    pub(crate) owners: Vec<usize>,
}

/// Addresses with the same servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AddressClass {
    /// Indexes of the servers, the default first.
    pub(crate) owners: Vec<usize>,
    /// Condition that distinguishes their requests from other classes; none if there is only one class.
    pub(crate) condition: Option<Atom>,
    /// The scheme of the connections; only set with [`By::Listener`].
    pub(crate) scheme: Option<Scheme>,
}

impl Listener {
    pub(crate) fn scheme(&self) -> Scheme {
        match self.tls {
            Some(_) => Scheme::Https,
            None => Scheme::Http,
        }
    }

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

/// `tls` with a certificate that is generated at startup, and other keys.
pub(crate) fn self_signed(entries: Vec<(String, Value)>) -> Value {
    let own = Value::text("self-signed");
    if entries.is_empty() {
        return own;
    }
    Value::Table([vec![("certificate".to_owned(), own)], entries].concat())
}

/// Condition that distinguishes classes of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClassCondition {
    /// The scheme where that suffices, otherwise the listener.
    Scheme,
    /// The listener, because trusted proxies report the scheme of a request.
    Listener,
}

/// Classes of all listeners, in the order of the configuration.
pub(crate) fn classes(listeners: &[Listener], by: ClassCondition) -> Vec<AddressClass> {
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
        && by == ClassCondition::Scheme
        && one[0].owners == other[0].owners
    {
        // Both schemes have the same servers, so no condition is needed.
        groups = vec![[one.clone(), other.clone()].concat()];
    }
    (0..groups.len())
        .map(|at| class_of(at, &groups, by))
        .collect()
}

/// The port of a class, if all of its addresses have the same one.
pub(crate) fn port<'l>(listeners: &'l [Listener], class: &AddressClass) -> Option<&'l str> {
    let mut own = listeners.iter().filter(|listener| {
        let is_of_scheme = match class.condition {
            Some(Atom::Scheme(scheme)) => listener.scheme() == scheme,
            _ => true,
        };
        let is_of_addresses = match &class.condition {
            Some(Atom::Listener(addresses)) => addresses.contains(&listener.address),
            _ => true,
        };
        listener.owners == class.owners && is_of_scheme && is_of_addresses
    });
    let port = |listener: &'l Listener| {
        let (_, port) = listener.address.rsplit_once(':')?;
        port.bytes()
            .all(|byte| byte.is_ascii_digit())
            .then_some(port)
    };
    let first = port(own.next()?)?;
    own.all(|listener| port(listener) == Some(first))
        .then_some(first)
}

fn class_of(at: usize, groups: &[Vec<&Listener>], by: ClassCondition) -> AddressClass {
    let group = &groups[at];
    let scheme = group[0].scheme();
    let others = || groups.iter().enumerate().filter(|(other, _)| *other != at);
    let has_rivals = others().any(|(_, other)| other[0].scheme() == scheme);
    let condition = match others().next() {
        None => None,
        // A scheme is easier to read than a list of addresses.
        Some(_) if !has_rivals && by == ClassCondition::Scheme => Some(Atom::Scheme(scheme)),
        Some(_) => {
            let addresses = group.iter().map(|listener| listener.address.clone());
            Some(Atom::Listener(addresses.collect()))
        }
    };
    AddressClass {
        owners: group[0].owners.clone(),
        condition,
        scheme: (by == ClassCondition::Listener).then_some(scheme),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listener(address: &str, port: u16, tls: Option<Value>, owners: &[usize]) -> Listener {
        Listener {
            address: format!("{address}:{port}"),
            tls,
            proxy_protocol: None,
            origin: String::new(),
            owners: owners.to_vec(),
        }
    }

    fn conditions(listeners: &[Listener]) -> Vec<Option<Atom>> {
        let classes = classes(listeners, ClassCondition::Scheme).into_iter();
        classes.map(|class| class.condition).collect()
    }

    fn by(addresses: &[&str]) -> Option<Atom> {
        let addresses = addresses.iter().map(|&address| address.to_owned());
        Some(Atom::Listener(addresses.collect()))
    }

    #[test]
    fn same_servers_need_no_condition() {
        let tls = || Some(Value::text("self-signed"));
        let all = [
            listener("0.0.0.0", 80, None, &[0, 1]),
            listener("::", 80, None, &[0, 1]),
            listener("0.0.0.0", 443, tls(), &[0, 1]),
        ];
        assert_eq!(conditions(&all), [None]);
    }

    #[test]
    fn classes_get_scheme_or_listener() {
        let tls = || Some(Value::text("self-signed"));
        let (http, https) = (Atom::Scheme(Scheme::Http), Atom::Scheme(Scheme::Https));
        let two = [
            listener("0.0.0.0", 80, None, &[0]),
            listener("0.0.0.0", 443, tls(), &[1]),
        ];
        assert_eq!(conditions(&two), [Some(http), Some(https.clone())]);
        let four = [
            listener("0.0.0.0", 80, None, &[0]),
            listener("127.0.0.1", 8080, None, &[1]),
            listener("0.0.0.0", 443, tls(), &[1]),
            listener("127.0.0.1", 80, None, &[0]),
        ];
        assert_eq!(
            conditions(&four),
            [
                by(&["0.0.0.0:80", "127.0.0.1:80"]),
                by(&["127.0.0.1:8080"]),
                Some(https)
            ]
        );
        let same_port = [
            listener("192.0.2.1", 80, None, &[0]),
            listener("192.0.2.2", 80, None, &[1]),
        ];
        assert_eq!(
            conditions(&same_port),
            [by(&["192.0.2.1:80"]), by(&["192.0.2.2:80"])]
        );
    }
}
