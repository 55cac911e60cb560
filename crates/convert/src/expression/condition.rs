//! The conditions of a route: a conjunction of single conditions.

use std::str::FromStr;

use onrush_config::plan::Network;
use onrush_config::value;

use crate::document::{Section, Value};
pub(crate) use crate::expression::path::{Conjunction, Path};
use crate::expression::pcre::{in_bytes, is_found};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

/// Test of the value of a field or parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    Is(String),
    /// A regular expression that matches part of the value.
    Matches(String),
    Present,
    Absent,
}

/// A single condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Atom {
    /// Host names in the syntax of a route's `host`, in lower case.
    Host(Vec<String>),
    Path(Path),
    Method(Vec<String>),
    Header(String, Test),
    Query(String, Test),
    /// Networks of the client.
    From(Vec<String>),
    Scheme(Scheme),
    /// Addresses of listeners.
    Listener(Vec<String>),
}

/// A conjunction of conditions; empty for every request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    hosts: Option<Vec<String>>,
    path: Path,
    methods: Option<Vec<String>>,
    headers: Vec<(String, Test)>,
    query: Vec<(String, Test)>,
    from: Option<Vec<String>>,
    scheme: Option<Scheme>,
    listeners: Option<Vec<String>>,
}

impl Default for Condition {
    fn default() -> Condition {
        Condition {
            hosts: None,
            path: Path::Any,
            methods: None,
            headers: Vec::new(),
            query: Vec::new(),
            from: None,
            scheme: None,
            listeners: None,
        }
    }
}

impl Scheme {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }
}

impl Atom {
    /// Whether Onrush accepts the path, host or field name. Expressions are checked where they are parsed, because
    /// compiling them takes time.
    fn is_valid(&self) -> bool {
        if self.has_unknown_bytes() {
            return false;
        }
        match self {
            Atom::Host(names) => names.iter().all(|name| value::parse_host(name).is_ok()),
            Atom::Path(path @ (Path::Exact(_) | Path::Prefix(_))) => path
                .written()
                .is_some_and(|path| value::parse_path(&path).is_ok()),
            Atom::Path(_) | Atom::Scheme(_) | Atom::Listener(_) => true,
            Atom::Method(names) => names.iter().all(|name| {
                let is_capital = |byte: u8| byte.is_ascii_uppercase() || b"-_".contains(&byte);
                !name.is_empty() && name != "CONNECT" && name.bytes().all(is_capital)
            }),
            Atom::Header(name, _) => is_token(name),
            Atom::Query(name, _) => !name.is_empty(),
            Atom::From(networks) => networks
                .iter()
                .all(|network| value::parse_network(network).is_ok()),
        }
    }
}

impl Atom {
    /// Whether the condition contains replacement characters for bytes that are not UTF-8.
    fn has_unknown_bytes(&self) -> bool {
        let text = match self {
            Atom::Path(path) => &path.as_pattern(),
            Atom::Header(_, Test::Is(text) | Test::Matches(text))
            | Atom::Query(_, Test::Is(text) | Test::Matches(text)) => text,
            _ => return false,
        };
        text.contains(char::REPLACEMENT_CHARACTER)
    }
}

/// Whether a text can be the name of a field (RFC 9110, section 5.6.2).
pub(crate) fn is_token(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_part)
}

impl Condition {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn and(&self, atom: &Atom) -> Conjunction<Condition> {
        if !atom.is_valid() {
            return Conjunction::Inexpressible;
        }
        let mut both = self.clone();
        let merged = match atom {
            Atom::Host(names) => narrow(&mut both.hosts, names, narrower_host),
            Atom::Method(names) => narrow(&mut both.methods, names, equal),
            Atom::From(networks) => narrow(&mut both.from, networks, narrower_network),
            Atom::Listener(addresses) => narrow(&mut both.listeners, addresses, equal),
            Atom::Header(name, test) => {
                merge(&mut both.headers, name, test, str::eq_ignore_ascii_case)
            }
            Atom::Query(name, test) => {
                merge(&mut both.query, name, test, |one, other| one == other)
            }
            Atom::Path(path) => self.path.and(path).map(|path| both.path = path),
            Atom::Scheme(scheme) => match self.scheme {
                Some(known) if known != *scheme => Conjunction::Never,
                _ => {
                    both.scheme = Some(*scheme);
                    Conjunction::Is(())
                }
            },
        };
        merged.map(|()| both)
    }

    /// The same condition with the prefix as an expression. Onrush would strip a prefix from the path before it looks
    /// for files.
    pub(crate) fn without_prefix(mut self) -> Condition {
        let is_root = self.path == Path::Prefix("/".to_owned());
        if let Path::Prefix(_) | Path::Exact(_) = self.path
            && !is_root
        {
            self.path = Path::Pattern(self.path.as_pattern());
        }
        self
    }

    /// The same condition, with PCRE expressions translated.
    pub(crate) fn with_pcre_semantics(mut self) -> Condition {
        self.path = self.path.with_pcre_semantics();
        self.in_bytes()
    }

    /// The same condition, with expressions that match bytes, as in nginx and HAProxy.
    pub(crate) fn in_bytes(mut self) -> Condition {
        self.path = self.path.in_bytes();
        for (_, test) in self.headers.iter_mut().chain(&mut self.query) {
            if let Test::Matches(pattern) = test {
                *pattern = in_bytes(pattern);
            }
        }
        self
    }

    pub(crate) fn with_path(&self, path: Path) -> Condition {
        Condition {
            path,
            ..self.clone()
        }
    }

    pub(crate) fn write(&self, route: &mut Section) {
        if let Some(hosts) = &self.hosts {
            route.put("host", Value::one_or_list(hosts));
        }
        if let Some(path) = self.path.written() {
            route.put("path", Value::Text(path));
        }
        if let Some(methods) = &self.methods {
            route.put("method", Value::one_or_list(methods));
        }
        for (key, tests) in [("headers", &self.headers), ("query", &self.query)] {
            if !tests.is_empty() {
                let entries = tests.iter();
                let entries = entries.map(|(name, test)| (name.clone(), test.written()));
                route.put(key, Value::Table(entries.collect()));
            }
        }
        if let Some(from) = &self.from {
            route.put("from", Value::one_or_list(from));
        }
        if let Some(scheme) = self.scheme {
            route.put("scheme", Value::text(scheme.name()));
        }
        if let Some(listeners) = &self.listeners {
            route.put("listener", Value::one_or_list(listeners));
        }
        if let Some(path) = self.path.except() {
            route.put("not", Value::table([("path", Value::Text(path))]));
        }
    }
}

impl Test {
    fn written(&self) -> Value {
        match self {
            Test::Present => Value::text("*"),
            Test::Absent => Value::text("!"),
            Test::Matches(pattern) => Value::Text(format!("~{pattern}")),
            // A value that starts like a special value must be written as an expression.
            Test::Is(text) if text.starts_with(['~', '*', '!']) => {
                Value::Text(format!("~^{}$", regex::escape(text)))
            }
            Test::Is(text) => Value::text(text),
        }
    }

    fn and(&self, other: &Test) -> Conjunction<Test> {
        match (self, other) {
            (one, other) if one == other => Conjunction::Is(one.clone()),
            (Test::Absent, _) | (_, Test::Absent) | (Test::Is(_), Test::Is(_)) => {
                Conjunction::Never
            }
            (Test::Present, test) | (test, Test::Present) => Conjunction::Is(test.clone()),
            (Test::Is(text), Test::Matches(pattern)) | (Test::Matches(pattern), Test::Is(text)) => {
                match is_found(pattern, text) {
                    true => Conjunction::Is(Test::Is(text.clone())),
                    false => Conjunction::Never,
                }
            }
            (Test::Matches(_), Test::Matches(_)) => Conjunction::Inexpressible,
        }
    }
}

/// Replaces a list by its intersection with another; `narrower` returns the intersection of two entries.
fn narrow(
    known: &mut Option<Vec<String>>,
    more: &[String],
    narrower: fn(&str, &str) -> Option<String>,
) -> Conjunction<()> {
    let Some(list) = known else {
        *known = Some(more.to_vec());
        return Conjunction::Is(());
    };
    let mut common: Vec<String> = Vec::new();
    for one in list.iter() {
        for other in more {
            let both = narrower(one, other).filter(|both| !common.contains(both));
            common.extend(both);
        }
    }
    if common.is_empty() {
        return Conjunction::Never;
    }
    *list = common;
    Conjunction::Is(())
}

fn equal(one: &str, other: &str) -> Option<String> {
    (one == other).then(|| one.to_owned())
}

/// The narrower of two hosts if one includes the other.
fn narrower_host(one: &str, other: &str) -> Option<String> {
    let is_among = |host: &str, wide: &str| match wide.strip_prefix('*') {
        Some(below) => host.ends_with(below) && host.len() > below.len(),
        None => host == wide,
    };
    [(one, other), (other, one)]
        .into_iter()
        .find(|(host, wide)| is_among(host, wide))
        .map(|(host, _)| host.to_owned())
}

fn narrower_network(one: &str, other: &str) -> Option<String> {
    let networks = (value::parse_network(one), value::parse_network(other));
    let (Ok(first), Ok(second)) = networks else {
        return None;
    };
    if first.covers(&second) {
        return Some(other.to_owned());
    }
    second.covers(&first).then(|| one.to_owned())
}

fn merge(
    tests: &mut Vec<(String, Test)>,
    name: &str,
    test: &Test,
    is_same: fn(&str, &str) -> bool,
) -> Conjunction<()> {
    let Some((_, known)) = tests.iter_mut().find(|(known, _)| is_same(known, name)) else {
        tests.push((name.to_owned(), test.clone()));
        return Conjunction::Is(());
    };
    known.and(test).map(|both| *known = both)
}

/// A network in the syntax of Onrush, with the bits after the prefix cleared. None if it is not a network, or has IPv4
/// addresses in their IPv6 form: Onrush compares these as IPv4 addresses.
pub(crate) fn network(text: &str) -> Option<String> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let address = std::net::IpAddr::from_str(address).ok()?;
    let Some(bits) = bits else {
        return (address == address.to_canonical()).then(|| address.to_string());
    };
    let bits = match bits.parse::<u8>() {
        Ok(bits) => bits,
        // HAProxy also accepts a dotted mask.
        Err(_) => {
            let mask = u32::from(std::net::Ipv4Addr::from_str(bits).ok()?);
            (mask.leading_ones() + mask.trailing_zeros() >= 32)
                .then(|| mask.leading_ones() as u8)?
        }
    };
    let network = Network::new(address, bits)?;
    (network.address() == network.address().to_canonical()).then(|| network.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(names: &[&str]) -> Atom {
        Atom::Host(names.iter().map(|&name| name.to_owned()).collect())
    }

    #[test]
    fn conjunction_narrows_conditions() {
        let all = Condition::default();
        let Conjunction::Is(two) = all.and(&hosts(&["a.example.com", "b.org"])) else {
            panic!("nothing was there before");
        };
        let Conjunction::Is(one) = two.and(&hosts(&["*.example.com"])) else {
            panic!("one is below it");
        };
        assert_eq!(one.hosts, Some(vec!["a.example.com".to_owned()]));
        assert_eq!(one.and(&hosts(&["b.org"])), Conjunction::Never);
        let from =
            |networks: &[&str]| Atom::From(networks.iter().map(|&name| name.to_owned()).collect());
        let Conjunction::Is(inner) = all.and(&from(&["10.0.0.0/8"])) else {
            panic!("nothing was there before");
        };
        let Conjunction::Is(narrower) = inner.and(&from(&["10.1.0.0/16", "192.0.2.1"])) else {
            panic!("one is inside");
        };
        assert_eq!(narrower.from, Some(vec!["10.1.0.0/16".to_owned()]));
        let field = |test| Atom::Header("X-A".to_owned(), test);
        let Conjunction::Is(present) = all.and(&field(Test::Present)) else {
            panic!("nothing was there before");
        };
        assert_eq!(present.and(&field(Test::Absent)), Conjunction::Never);
    }

    #[test]
    fn host_bits_of_networks_are_cleared() {
        for (text, expected) in [
            ("10.1.2.3/8", Some("10.0.0.0/8")),
            ("192.168.0.0/255.255.0.0", Some("192.168.0.0/16")),
            ("::1", Some("::1")),
            ("10.0.0.0/255.0.255.0", None),
            ("unix:", None),
            ("::ffff:10.0.0.1", None),
            ("::ffff:10.0.0.0/104", None),
            ("10.0.0.0/33", None),
        ] {
            assert_eq!(network(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn special_values_are_escaped() {
        assert_eq!(Test::Is("*".to_owned()).written(), Value::text("~^\\*$"));
    }
}
