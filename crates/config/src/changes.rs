//! Differences between two configurations, key by key. Order, comments, spelling and files do not count.

use std::fmt;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::merge::merged;
use crate::sources::{Sources, Span};
use crate::toml_values::place_of;

/// Maximum number of characters shown of a value.
const VALUE_SHOWN: usize = 40;

/// Keys whose values must not get into logs: password hashes, and fields and parameters that may carry credentials.
pub(crate) const SECRET_KEYS: [&str; 5] = ["users", "set", "add", "headers", "query"];

/// Whether a string is a URL with a user name or password, as in `https://name:password@host/`, or with a query, which
/// may contain a key.
pub(crate) fn has_secret(text: &str) -> bool {
    let rest = text.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or("");
    let query = rest.split_once('?').map_or("", |(_, query)| query);
    authority.contains('@') || query.contains('=')
}

/// A difference. Displayed as the key and the change, with the place if the configuration has several files:
///
/// ```text
/// timeouts.client_idle: "60s" -> "30s"
/// upstream.app.servers: added "10.0.0.3:80" (conf.d/app.toml:2:12)
/// route[2]: removed (it was conf.d/old.toml:1:1)
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Path of the key, separated by dots. List items count from 1: added and changed ones by their position in the new
    /// list, removed ones by that in the old one.
    pub key: String,
    /// Kind of change.
    pub kind: ChangeKind,
    /// Position in the files, such as `conf.d/app.toml:2:12`; for a removed key, that in the old ones. `None` if there
    /// is only one file.
    pub place: Option<String>,
}

/// Kind of change. Values are written as in a file, cut to 40 characters; `None` for tables, lists and secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// The key is new.
    Added(Option<String>),
    /// The key is gone.
    Removed(Option<String>),
    /// Old and new value.
    Changed(Option<(String, String)>),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match &self.kind {
            ChangeKind::Added(Some(value)) => write!(f, "{key}: added {value}"),
            ChangeKind::Added(None) => write!(f, "{key}: added"),
            ChangeKind::Removed(Some(value)) => write!(f, "{key}: removed {value}"),
            ChangeKind::Removed(None) => write!(f, "{key}: removed"),
            ChangeKind::Changed(Some((before, after))) => write!(f, "{key}: {before} -> {after}"),
            ChangeKind::Changed(None) => write!(f, "{key}: changed"),
        }?;
        match (&self.place, &self.kind) {
            (Some(place), ChangeKind::Removed(_)) => write!(f, " (it was {place})"),
            (Some(place), _) => write!(f, " ({place})"),
            (None, _) => Ok(()),
        }
    }
}

/// Returns the differences between two configurations. A file that is not valid TOML counts as empty.
pub fn changes(before: &Sources, after: &Sources) -> Vec<Change> {
    let mut found = Comparison {
        before,
        after,
        path: Vec::new(),
        changes: Vec::new(),
    };
    found.tables(&merged(before).table, &merged(after).table);
    found.changes
}

struct Comparison<'s> {
    before: &'s Sources,
    after: &'s Sources,
    /// Path of the tables being compared.
    path: Vec<String>,
    changes: Vec<Change>,
}

impl Comparison<'_> {
    fn tables(&mut self, before: &DeTable<'_>, after: &DeTable<'_>) {
        for (key, value) in before {
            let Some(now) = after.get(&**key.get_ref()) else {
                self.at(key.get_ref(), |found| found.removed(value));
                continue;
            };
            self.at(key.get_ref(), |found| found.values(value, now));
        }
        for (key, value) in after {
            if !before.contains_key(&**key.get_ref()) {
                self.at(key.get_ref(), |found| found.added(value));
            }
        }
    }

    fn values(&mut self, before: &Spanned<DeValue<'_>>, after: &Spanned<DeValue<'_>>) {
        match (before.get_ref(), after.get_ref()) {
            (DeValue::Table(before), DeValue::Table(after)) => self.tables(before, after),
            (DeValue::Array(before), DeValue::Array(after)) => self.lists(before, after),
            (old, new) if is_equal(old, new) => {}
            (old, new) => {
                let shown = self.shown(old).zip(self.shown(new));
                self.note(ChangeKind::Changed(shown), &place_of(after));
            }
        }
    }

    /// Compares two lists. Items that occur in both, in the same order, are equal. Between two such items, tables are
    /// compared in pairs as long as both sides have one.
    fn lists(&mut self, before: &[Spanned<DeValue<'_>>], after: &[Spanned<DeValue<'_>>]) {
        let (mut old, mut new) = (0, 0);
        let mut kept = longest_common_subsequence(before, after);
        kept.push((before.len(), after.len()));
        for (old_end, new_end) in kept {
            while old < old_end && new < new_end && both_tables(&before[old], &after[new]) {
                self.at_item(new, |found| found.values(&before[old], &after[new]));
                (old, new) = (old + 1, new + 1);
            }
            for (at, item) in before.iter().enumerate().take(old_end).skip(old) {
                self.item(at, item, Comparison::removed);
            }
            for (at, item) in after.iter().enumerate().take(new_end).skip(new) {
                self.item(at, item, Comparison::added);
            }
            (old, new) = (old_end + 1, new_end + 1);
        }
    }

    /// Notes an item that only one list has. It is identified by its value, or by its number if the value is not shown.
    fn item(
        &mut self,
        at: usize,
        item: &Spanned<DeValue<'_>>,
        note: fn(&mut Self, &Spanned<DeValue<'_>>),
    ) {
        match self.shown(item.get_ref()) {
            Some(_) => note(self, item),
            None => self.at_item(at, |found| note(found, item)),
        }
    }

    fn added(&mut self, value: &Spanned<DeValue<'_>>) {
        let shown = self.shown(value.get_ref());
        self.note(ChangeKind::Added(shown), &place_of(value));
    }

    fn removed(&mut self, value: &Spanned<DeValue<'_>>) {
        let shown = self.shown(value.get_ref());
        self.note(ChangeKind::Removed(shown), &place_of(value));
    }

    /// Adds a change; `span` locates it in the old files if it was removed, otherwise in the new ones.
    fn note(&mut self, kind: ChangeKind, span: &Span) {
        let sources = match kind {
            ChangeKind::Removed(_) => self.before,
            ChangeKind::Added(_) | ChangeKind::Changed(_) => self.after,
        };
        let are_several = self.before.has_several_files() || self.after.has_several_files();
        self.changes.push(Change {
            key: self.path.join(".").replace(".[", "["),
            kind,
            place: are_several.then(|| sources.format_place(span)),
        });
    }

    fn at(&mut self, key: &str, work: impl FnOnce(&mut Self)) {
        self.path.push(key.to_owned());
        work(self);
        self.path.pop();
    }

    fn at_item(&mut self, index: usize, work: impl FnOnce(&mut Self)) {
        self.at(&format!("[{}]", index + 1), work);
    }

    /// A value as it is written in a file; `None` for tables, lists and secrets.
    fn shown(&self, value: &DeValue<'_>) -> Option<String> {
        if self
            .path
            .iter()
            .any(|key| SECRET_KEYS.contains(&key.as_str()))
        {
            return None;
        }
        let text = match value {
            DeValue::String(text) if has_secret(text) => return None,
            DeValue::String(text) => format!("{text:?}"),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            DeValue::Boolean(boolean) => boolean.to_string(),
            DeValue::Datetime(moment) => moment.to_string(),
            DeValue::Array(_) | DeValue::Table(_) => return None,
        };
        match text.char_indices().nth(VALUE_SHOWN) {
            Some((end, _)) => Some(format!("{}...", &text[..end])),
            None => Some(text),
        }
    }
}

fn both_tables(one: &Spanned<DeValue<'_>>, other: &Spanned<DeValue<'_>>) -> bool {
    one.get_ref().is_table() && other.get_ref().is_table()
}

/// Longest common subsequence of two lists, as pairs of indices; equal prefixes and suffixes are matched first.
fn longest_common_subsequence(
    before: &[Spanned<DeValue<'_>>],
    after: &[Spanned<DeValue<'_>>],
) -> Vec<(usize, usize)> {
    let is_pair = |old: usize, new: usize| is_equal(before[old].get_ref(), after[new].get_ref());
    let least = before.len().min(after.len());
    let start = (0..least).take_while(|&at| is_pair(at, at)).count();
    let from_end = |at: &usize| is_pair(before.len() - 1 - at, after.len() - 1 - at);
    let end = (0..least - start).take_while(from_end).count();
    let (old_end, new_end) = (before.len() - end, after.len() - end);
    let mut pairs: Vec<_> = (0..start).map(|at| (at, at)).collect();
    pairs.extend(subsequence_in(start..old_end, start..new_end, is_pair));
    pairs.extend((0..end).map(|at| (old_end + at, new_end + at)));
    pairs
}

/// Maximum number of compared pairs; beyond that no items count as equal.
const COMPARED_MAX: usize = 1 << 22;

fn subsequence_in(
    before: Range<usize>,
    after: Range<usize>,
    is_pair: impl Fn(usize, usize) -> bool,
) -> Vec<(usize, usize)> {
    if before.len().saturating_mul(after.len()) > COMPARED_MAX {
        return Vec::new();
    }
    // `longest[old][new]` is the length of the longest common subsequence of the suffixes that start there; the extra
    // row and column are for empty suffixes.
    let width = after.len() + 1;
    let mut longest = vec![0u32; (before.len() + 1) * width];
    let at = |old: usize, new: usize| (old - before.start) * width + new - after.start;
    for old in before.clone().rev() {
        for new in after.clone().rev() {
            longest[at(old, new)] = match is_pair(old, new) {
                true => longest[at(old + 1, new + 1)] + 1,
                false => longest[at(old + 1, new)].max(longest[at(old, new + 1)]),
            };
        }
    }
    let (mut old, mut new) = (before.start, after.start);
    let mut pairs = Vec::new();
    while old < before.end && new < after.end {
        if is_pair(old, new) {
            pairs.push((old, new));
            (old, new) = (old + 1, new + 1);
        } else if longest[at(old + 1, new)] >= longest[at(old, new + 1)] {
            old += 1;
        } else {
            new += 1;
        }
    }
    pairs
}

fn is_equal(one: &DeValue<'_>, other: &DeValue<'_>) -> bool {
    let same = |one: &Spanned<DeValue<'_>>, other: &Spanned<DeValue<'_>>| {
        is_equal(one.get_ref(), other.get_ref())
    };
    match (one, other) {
        (DeValue::String(one), DeValue::String(other)) => one == other,
        (DeValue::Integer(one), DeValue::Integer(other)) => {
            (one.as_str(), one.radix()) == (other.as_str(), other.radix())
        }
        (DeValue::Float(one), DeValue::Float(other)) => one.as_str() == other.as_str(),
        (DeValue::Boolean(one), DeValue::Boolean(other)) => one == other,
        (DeValue::Datetime(one), DeValue::Datetime(other)) => one == other,
        (DeValue::Array(one), DeValue::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (DeValue::Table(one), DeValue::Table(other)) => {
            let has = |key: &str, value| other.get(key).is_some_and(|other| same(value, other));
            one.len() == other.len() && one.iter().all(|(key, value)| has(key.get_ref(), value))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(text: &str) -> Sources {
        Sources::of(text.to_owned(), "a.toml".into())
    }

    fn said(before: &str, after: &str) -> Vec<String> {
        said_of(&sources(before), &sources(after))
    }

    fn said_of(before: &Sources, after: &Sources) -> Vec<String> {
        let changes = changes(before, after);
        changes.iter().map(Change::to_string).collect()
    }

    #[test]
    fn changes_in_included_files_have_locations() {
        let with = |text: &str| {
            let mut all = sources("include = \"b.toml\"\n[[route]]\nsynthetic = true\n");
            let at = all.push("b.toml".into(), text.to_owned());
            all.files[0].included.push(at);
            all
        };
        let before = with("[upstream.app]\nservers = [\"a:1\", \"b:1\"]\n");
        let after = with("# Other servers.\n[upstream.app]\nservers = [\"b:1\", \"c:1\"]\n");
        assert_eq!(
            said_of(&before, &after),
            [
                "upstream.app.servers: removed \"a:1\" (it was b.toml:2:12)",
                "upstream.app.servers: added \"c:1\" (b.toml:3:19)"
            ]
        );
        let moved = "[[route]]\nsynthetic = true\n[upstream.app]\nservers = [\"a:1\", \"b:1\"]\n";
        assert_eq!(said_of(&before, &sources(moved)), [""; 0]);
        assert_eq!(
            said_of(&sources(moved), &with("[[route]]\nrespond.status = 404\n")),
            [
                "route[1]: added (b.toml:1:1)",
                "upstream: removed (it was a.toml:3:2)"
            ]
        );
    }

    #[test]
    fn equal_values_are_not_reported_as_changes() {
        let before = "threads = 2 # two\n[timeouts]\nclient_idle = \"60s\"\nheaders = '10s'\n";
        let after = "threads = 2\ntimeouts = { headers = \"10s\", client_idle = \"60s\" }\n";
        assert!(said(before, after).is_empty());
        assert!(said(before, before).is_empty());
    }

    #[test]
    fn values_are_shown_with_their_keys() {
        let before = "threads = 2\n[timeouts]\nclient_idle = \"60s\"\n";
        let after =
            "io = \"epoll\"\n[timeouts]\nclient_idle = \"30s\"\n[upstream.app]\nservers = []\n";
        assert_eq!(
            said(before, after),
            [
                "threads: removed 2",
                "timeouts.client_idle: \"60s\" -> \"30s\"",
                "io: added \"epoll\"",
                "upstream: added"
            ]
        );
        let long = format!("a = \"{}\"", "é".repeat(50));
        assert_eq!(
            said("", &long),
            [format!("a: added \"{}...", "é".repeat(39))]
        );
    }

    #[test]
    fn added_and_removed_servers_are_listed() {
        let before = "[upstream.app]\nservers = [\"a:1\", \"b:1\", \"c:1\"]";
        let after = "[upstream.app]\nservers = [\"b:1\", \"c:1\", \"d:1\"]";
        assert_eq!(
            said(before, after),
            [
                "upstream.app.servers: removed \"a:1\"",
                "upstream.app.servers: added \"d:1\""
            ]
        );
    }

    #[test]
    fn prepended_route_is_reported_as_single_change() {
        let route = |path: &str, status: u16| {
            format!("[[route]]\nwhen.path = \"{path}\"\nrespond.status = {status}\n")
        };
        let before = route("/a", 200) + &route("/b", 200) + &route("/c", 200);
        let after = route("/0", 200) + &route("/a", 200) + &route("/b", 404) + &route("/c", 200);
        assert_eq!(
            said(&before, &after),
            ["route[1]: added", "route[3].respond.status: 200 -> 404"]
        );
        assert_eq!(
            said(&after, &before),
            ["route[1]: removed", "route[2].respond.status: 404 -> 200"]
        );
    }

    #[test]
    fn secrets_are_not_shown() {
        let before = "[[route]]\nbasic_auth.users = { a = \"hash1\" }\nrequest.set = { Authorization = \"b1\" }";
        let after = "[[route]]\nbasic_auth.users = { a = \"hash2\", b = \"hash3\" }\nrequest.set = { Authorization = \"b2\" }";
        let said = said(before, after);
        assert_eq!(
            said,
            [
                "route[1].basic_auth.users.a: changed",
                "route[1].basic_auth.users.b: added",
                "route[1].request.set.Authorization: changed"
            ]
        );
    }

    #[test]
    fn type_change_is_reported() {
        assert_eq!(said("a = 1", "a = [1]"), ["a: changed"]);
        assert_eq!(said("a = 1", "a = true"), ["a: 1 -> true"]);
        assert_eq!(
            said("a = [[1], [2]]", "a = [[1], [3]]"),
            ["a[2]: removed", "a[2]: added"]
        );
    }
}
