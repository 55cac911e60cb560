//! Variables that `map` and `geo` define: each entry is a condition and a value.

use std::cmp::Reverse;

use super::variable::{Piece, canonical, names, pieces};
use crate::limits;
use crate::source::directive::Directive;

#[derive(Clone, Debug)]
pub(super) struct Map<'a> {
    pub(super) directive: &'a Directive,
    /// The text that keys are compared with.
    source: &'a str,
    /// Name of the variable, without `$`.
    target: String,
    keys: Keys,
    /// Keys and values in order of precedence, without the default.
    entries: Vec<(&'a str, &'a str)>,
    default: &'a str,
}

/// Type of the keys of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    Networks,
    /// Host names, including wildcards.
    Hosts,
    Texts,
}

/// Directives in a `map` that are not entries.
const OPTIONS: [&str; 3] = ["hostnames", "volatile", "include"];

impl<'a> Map<'a> {
    /// Parses a `map` or `geo`; none for other directives.
    pub(super) fn of(directive: &'a Directive) -> Option<Map<'a>> {
        let is_geo = match directive.name() {
            "map" => false,
            "geo" => true,
            _ => return None,
        };
        let (source, target) = match (is_geo, directive.arguments()) {
            (true, [target]) => ("$remote_addr", target),
            (_, [source, target]) => (source.as_str(), target),
            _ => return None,
        };
        let inside = directive.inside().iter();
        let entries = inside.filter(|entry| !OPTIONS.contains(&entry.name()));
        let entries = entries.map(|entry| (entry.name(), entry.argument(0)));
        let (defaults, mut entries): (Vec<_>, Vec<_>) =
            entries.partition(|(key, _)| *key == "default");
        let mut inside = directive.inside().iter();
        let keys = match is_geo {
            true => Keys::Networks,
            false if inside.any(|entry| entry.name() == "hostnames") => Keys::Hosts,
            false => Keys::Texts,
        };
        if keys == Keys::Networks {
            // The last of several equal networks takes precedence.
            entries.reverse();
        }
        entries.sort_by_key(|(key, _)| keys.rank(key));
        Some(Map {
            directive,
            source,
            target: canonical(target),
            keys,
            entries,
            default: defaults.last().map_or("", |(_, value)| value),
        })
    }

    pub(super) fn target(&self) -> &str {
        &self.target
    }

    /// Number of values including the default.
    pub(super) fn len(&self) -> usize {
        self.entries.len() + 1
    }

    /// The value of an entry; the last one is the default.
    pub(super) fn value(&self, at: usize) -> &'a str {
        self.entries
            .get(at)
            .map_or(self.default, |(_, value)| value)
    }

    /// The key of an entry; none for the default, which is the last one.
    pub(super) fn key(&self, at: usize) -> Option<&'a str> {
        self.entries.get(at).map(|(key, _)| *key)
    }

    /// The text that keys are compared with: one variable, or several with other text between them.
    pub(super) fn source(&self) -> &'a str {
        self.source
    }

    /// The variable that keys are compared with, if the source is that variable alone.
    pub(super) fn variable(&self) -> Option<String> {
        match &pieces(self.source)[..] {
            [Piece::Variable(name)] => Some(name.clone()),
            _ => None,
        }
    }

    /// Whether keys may be wildcards for host names.
    pub(super) fn has_hosts(&self) -> bool {
        self.keys == Keys::Hosts
    }

    /// Whether it has too many keys for case-insensitive comparison.
    pub(super) fn is_long(&self) -> bool {
        !self.is_geo() && self.entries.len() > limits::KEYS_MAX
    }

    /// Whether its keys are networks of clients.
    pub(super) fn is_geo(&self) -> bool {
        self.keys == Keys::Networks
    }
}

/// The maps of the variables in a text, and the maps of their sources.
pub(super) fn source_maps<'a>(text: &str, maps: &[Map<'a>]) -> Vec<&'a Directive> {
    let named = names(text).into_iter();
    let found = named.filter_map(|name| maps.iter().position(|map| map.target() == name));
    let chains = found.map(|at| {
        let sources = source_maps(maps[at].source(), &maps[..at]);
        [vec![maps[at].directive], sources].concat()
    });
    chains.flatten().collect()
}

/// Prefix length of a network.
fn bits(key: &str) -> usize {
    let whole = if key.contains(':') { 128 } else { 32 };
    let bits = key.split_once('/').map(|(_, bits)| bits.parse());
    bits.unwrap_or(Ok(whole)).unwrap_or(0)
}

impl Keys {
    /// Precedence of a key: networks by prefix length; texts as exact keys, wildcards at the start, wildcards at the
    /// end and expressions, the longer wildcards first.
    fn rank(self, key: &str) -> (u8, Reverse<usize>) {
        match self {
            Keys::Networks => (0, Reverse(bits(key))),
            _ if key.starts_with('~') => (3, Reverse(0)),
            Keys::Hosts if key.ends_with(".*") => (2, Reverse(key.len())),
            Keys::Hosts if key.starts_with("*.") || key.starts_with('.') => {
                (1, Reverse(key.trim_start_matches('*').len()))
            }
            Keys::Hosts | Keys::Texts => (0, Reverse(0)),
        }
    }
}
