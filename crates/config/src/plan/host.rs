//! The hosts of a route or a rule.

use std::fmt;

/// A host name or IP address of a `Host` header, in lower case and without port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// This one; an IPv6 address in its brackets.
    Exact(String),
    /// `*.example.com`: every name that ends like this, which begins with the dot.
    Below(String),
}

impl Host {
    /// `name` must have been checked: see [`crate::value::parse_host`].
    pub(crate) fn new(name: &str) -> Host {
        let name = name.to_ascii_lowercase();
        match name.strip_prefix('*') {
            Some(suffix) => Host::Below(suffix.to_owned()),
            None => Host::Exact(name),
        }
    }

    /// Whether `host`, taken from a request without its port, is this one; letters match in either
    /// case.
    pub fn matches(&self, host: &[u8]) -> bool {
        match self {
            Host::Exact(name) => name.as_bytes().eq_ignore_ascii_case(host),
            Host::Below(suffix) => host
                .len()
                .checked_sub(suffix.len())
                .is_some_and(|at| at > 0 && host[at..].eq_ignore_ascii_case(suffix.as_bytes())),
        }
    }

    /// Whether every host that `other` matches is matched by this one too.
    pub fn covers(&self, other: &Host) -> bool {
        match (self, other) {
            (Host::Exact(name), Host::Exact(other)) => name == other,
            (Host::Exact(_), Host::Below(_)) => false,
            (Host::Below(_), Host::Exact(name)) => self.matches(name.as_bytes()),
            (Host::Below(suffix), Host::Below(other)) => other.ends_with(suffix.as_str()),
        }
    }
}

/// As it is written.
impl fmt::Display for Host {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Exact(name) => out.write_str(name),
            Host::Below(suffix) => write!(out, "*{suffix}"),
        }
    }
}
