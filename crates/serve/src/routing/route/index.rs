//! An index of routes by host and by the start of the path.

use std::collections::HashMap;

use onrush_config::plan::{Host, PathMatch, RouteMatch};

/// Finds candidate routes for a request. Shared by all cores.
#[derive(Debug)]
pub(crate) struct RouteIndex {
    pub(super) all: Candidates,
    /// Routes by host, if there are too many to scan.
    pub(super) hosts: Option<Hosts>,
    /// Whether any route has a condition on the host.
    pub(super) has_host_conditions: bool,
}

/// Up to this many routes are scanned: comparing eight short names is faster than a hash lookup.
const SCANNED_MAX: usize = 8;

/// Routes in file order.
pub(super) type Candidates = Box<[Candidate]>;

/// A route, with data that rules out most routes without evaluating their conditions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// The [`path_start`] of its path, as far as `mask` covers it.
    pub(super) path_start: u64,
    pub(super) mask: u64,
    pub(super) route: u32,
    pub(super) asks: ConditionKinds,
}

/// The conditions of a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ConditionKinds {
    /// On host and path only.
    HostAndPath,
    More,
}

/// Routes by host. Each route has one entry per host, so the size is linear in that of the configuration.
#[derive(Debug)]
pub(super) struct Hosts {
    /// By host name, in lower case.
    exact: HashMap<Box<[u8]>, Candidates>,
    /// By suffix of the host, starting with a dot, in lower case.
    below: HashMap<Box<[u8]>, Candidates>,
    /// Routes for all hosts.
    any: Candidates,
}

impl RouteIndex {
    /// Indexes routes by their conditions, given in file order.
    pub(crate) fn new<'w>(conditions: impl Iterator<Item = &'w RouteMatch> + Clone) -> Self {
        let names_hosts = |when: &RouteMatch| !when.hosts.is_empty();
        let knows_hosts = conditions
            .clone()
            .any(|when| names_hosts(when) || when.not.iter().any(names_hosts));
        let candidates = conditions.enumerate().map(Candidate::new);
        let all: Candidates = candidates.clone().map(|(candidate, _)| candidate).collect();
        Self {
            hosts: (knows_hosts && all.len() > SCANNED_MAX).then(|| Hosts::new(candidates)),
            all,
            has_host_conditions: knows_hosts,
        }
    }
}

impl Candidate {
    /// Also returns the conditions of the route.
    fn new((index, when): (usize, &RouteMatch)) -> (Self, &RouteMatch) {
        let (known, bytes) = match &when.path {
            PathMatch::Prefix(prefix) => (prefix.as_bytes(), prefix.len().min(8)),
            // All eight bytes, because nothing may follow a shorter path.
            PathMatch::Exact(exact) => (exact.as_bytes(), 8),
            PathMatch::Any | PathMatch::Regex(_) => (&[][..], 0),
        };
        let candidate = Self {
            path_start: path_start(known),
            mask: u64::MAX.checked_shr(64 - 8 * bytes as u32).unwrap_or(0),
            route: index as u32,
            asks: ConditionKinds::of(when),
        };
        (candidate, when)
    }
}

impl ConditionKinds {
    pub(super) fn of(when: &RouteMatch) -> Self {
        let asks_no_more = when.methods.is_empty()
            && when.headers.is_empty()
            && when.query.is_empty()
            && when.from.is_none()
            && when.scheme.is_none()
            && when.listeners.is_empty()
            && when.not.is_empty();
        match asks_no_more {
            true => ConditionKinds::HostAndPath,
            false => ConditionKinds::More,
        }
    }
}

/// The first eight bytes of a path as a number, padded with zeros; a path contains no zero.
#[inline]
pub(super) fn path_start(path: &[u8]) -> u64 {
    if let Some(eight) = path.first_chunk() {
        return u64::from_le_bytes(*eight);
    }
    let mut eight = [0; 8];
    eight[..path.len()].copy_from_slice(path);
    u64::from_le_bytes(eight)
}

impl Hosts {
    fn new<'w>(candidates: impl Iterator<Item = (Candidate, &'w RouteMatch)>) -> Self {
        let mut exact: HashMap<_, Vec<Candidate>> = HashMap::new();
        let mut below: HashMap<_, Vec<Candidate>> = HashMap::new();
        let mut any = Vec::new();
        for (candidate, when) in candidates {
            if when.hosts.is_empty() {
                any.push(candidate);
            }
            for host in &when.hosts {
                let (table, name) = match host {
                    Host::Exact(name) => (&mut exact, name),
                    Host::Subdomains(suffix) => (&mut below, suffix),
                };
                table.entry(name.as_bytes()).or_default().push(candidate);
            }
        }
        let boxed = |table: HashMap<&[u8], Vec<Candidate>>| {
            let lists = table.into_iter();
            lists
                .map(|(name, list)| (name.into(), list.into()))
                .collect()
        };
        Self {
            exact: boxed(exact),
            below: boxed(below),
            any: any.into(),
        }
    }

    /// Calls `look` with each list of routes that apply to `host`.
    pub(super) fn each(&self, host: &str, mut look: impl FnMut(&[Candidate])) {
        let mut room = [0; HOST_BYTES_MAX];
        // A host longer than any name can only match a wildcard, by its suffix.
        let tail = &host.as_bytes()[host.len().saturating_sub(HOST_BYTES_MAX)..];
        let host = &mut room[..tail.len()];
        host.copy_from_slice(tail);
        host.make_ascii_lowercase();
        if let Some(candidates) = self.exact.get(&*host) {
            look(candidates);
        }
        if !self.below.is_empty() {
            let dots = (1..host.len()).filter(|&at| host[at] == b'.');
            dots.take(LABELS_MAX)
                .filter_map(|at| self.below.get(&host[at..]))
                .for_each(|candidates| look(candidates));
        }
        look(&self.any);
    }
}

/// The longest host name and the largest number of labels (RFC 1035 2.3.4), with some margin.
const HOST_BYTES_MAX: usize = 256;
const LABELS_MAX: usize = 128;
