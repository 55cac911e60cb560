//! Hosts of a route or a rule.

use std::fmt;

/// A host name or IP address of a `Host` header, in lower case and without port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// A host name or address; IPv6 in brackets.
    Exact(String),
    /// `*.example.com`: names with this suffix, which begins with the dot.
    Subdomains(String),
}

impl Host {
    /// Creates a host from a checked name: see [`crate::value::parse_host`].
    pub(crate) fn new(name: &str) -> Host {
        let name = name.to_ascii_lowercase();
        match name.strip_prefix('*') {
            Some(suffix) => Host::Subdomains(suffix.to_owned()),
            None => Host::Exact(name),
        }
    }

    /// Whether `host`, from a request and without port, matches; the case of letters does not matter.
    pub fn matches(&self, host: &[u8]) -> bool {
        match self {
            Host::Exact(name) => name.as_bytes().eq_ignore_ascii_case(host),
            Host::Subdomains(suffix) => host
                .len()
                .checked_sub(suffix.len())
                .is_some_and(|at| at > 0 && host[at..].eq_ignore_ascii_case(suffix.as_bytes())),
        }
    }

    /// Whether this matches every host that `other` matches.
    pub fn covers(&self, other: &Host) -> bool {
        match (self, other) {
            (Host::Exact(name), Host::Exact(other)) => name == other,
            (Host::Exact(_), Host::Subdomains(_)) => false,
            (Host::Subdomains(_), Host::Exact(name)) => self.matches(name.as_bytes()),
            (Host::Subdomains(suffix), Host::Subdomains(other)) => other.ends_with(suffix.as_str()),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Exact(name) => out.write_str(name),
            Host::Subdomains(suffix) => write!(out, "*{suffix}"),
        }
    }
}
