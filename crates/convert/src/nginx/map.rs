//! Variables that `map` and `geo` make of others: each entry is a condition and a value.

use crate::directive::Directive;

/// A `map` or `geo`.
#[derive(Clone, Debug)]
pub(super) struct Map<'a> {
    pub(super) directive: &'a Directive,
    /// Names without their `$`.
    source: &'a str,
    target: &'a str,
    is_geo: bool,
    /// Key and value, those with an exact key before expressions, without the default.
    entries: Vec<(&'a str, &'a str)>,
    default: &'a str,
}

/// Words in a `map` that are no entries.
const OPTIONS: [&str; 3] = ["hostnames", "volatile", "include"];

impl<'a> Map<'a> {
    /// None when it is neither, or its source is more than one variable.
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
        entries.sort_by_key(|(key, _)| key.starts_with('~'));
        Some(Map {
            directive,
            source: source.trim_start_matches("$").trim_matches(['{', '}']),
            target: target.trim_start_matches('$'),
            is_geo,
            entries,
            default: defaults.last().map_or("", |(_, value)| value),
        })
    }

    /// The variable that it makes.
    pub(super) fn target(&self) -> &'a str {
        self.target
    }

    /// How many values there are, with the default.
    pub(super) fn len(&self) -> usize {
        self.entries.len() + 1
    }

    /// The value of an entry; the last one is the default.
    pub(super) fn value(&self, at: usize) -> &'a str {
        self.entries
            .get(at)
            .map_or(self.default, |(_, value)| value)
    }

    /// The entry's key; none for the default, which is the last one.
    pub(super) fn key(&self, at: usize) -> Option<&'a str> {
        self.entries.get(at).map(|(key, _)| *key)
    }

    /// The variable that keys are compared with, without its `$`.
    pub(super) fn source(&self) -> &'a str {
        self.source
    }

    /// Whether its keys are networks of clients.
    pub(super) fn is_geo(&self) -> bool {
        self.is_geo
    }
}
