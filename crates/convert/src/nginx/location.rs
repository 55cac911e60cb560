//! Locations of a server, in the order in which Onrush must match them.
//!
//! nginx finds the longest prefix, then tries the expressions inside that location, next to it and around it, unless
//! `^~` prevents that. The resulting order is: exact paths; prefixes to which other expressions apply than to the rest,
//! longest first, each after its expressions; the other expressions; the other prefixes, longest first.

use std::cmp::Reverse;

use super::guard::{guards_own, has_slashes, is_guarded, modifier, refuses, wider};
use super::scope::Scope;
use crate::expression::condition::{Conjunction, Path};
use crate::expression::pattern::{PrefixPattern, prefix_pattern};
use crate::source::directive::Directive;
use crate::source::guards::Guards;
use crate::source::note::Notes;

/// A location with its precedence.
#[derive(Clone, Debug)]
pub(super) struct Location<'a> {
    pub(super) directive: &'a Directive,
    pub(super) scope: Scope<'a>,
    pub(super) path: PrefixPattern,
    pub(super) asks: MatchExtent,
    kind: Kind,
    /// Prefix locations around it, from the outermost: number of the directive, and kind.
    outer: Vec<(usize, Kind)>,
}

/// Note on a location that refuses requests and that Onrush cannot match together with the conditions around it.
pub(super) const REFUSED_EVERYWHERE: &str =
    "Onrush cannot combine this path with the conditions around it: all of its paths are refused";

impl Location<'_> {
    /// Whether its path is a regular expression, which is tried in order.
    pub(super) fn is_expression(&self) -> bool {
        self.kind == Kind::Pattern
    }

    /// Whether its paths are refused if the result cannot match them exactly.
    pub(super) fn closes(&self, guards: Guards) -> bool {
        refuses(self.directive) || guards == Guards::Closed && guards_own(self.directive)
    }
}

/// Requests that a location matches in the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MatchExtent {
    /// The same requests as in nginx.
    Exactly,
    /// More requests than in nginx, because Onrush cannot match its expression. All of them are refused.
    Wider,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Exact,
    /// `^~`
    Preferred,
    Pattern,
    Prefix,
}

/// The locations of `level`, in order. Locations with expressions may occur several times, for different prefixes.
pub(super) fn locations<'a>(
    notes: &mut Notes,
    level: &'a [Directive],
    scope: &Scope<'a>,
    guards: Guards,
) -> Vec<Location<'a>> {
    let mut found = Vec::new();
    gather(notes, level, scope, guards, &[], &mut found);
    let found = reachable(notes, found);
    let is = |kind: Kind| move |location: &Location<'_>| location.kind == kind;
    let (mut ordered, rest): (Vec<_>, Vec<_>) = found.into_iter().partition(is(Kind::Exact));
    let (patterns, mut prefixes): (Vec<_>, Vec<_>) = rest.into_iter().partition(is(Kind::Pattern));
    prefixes.sort_by_key(|location| Reverse(prefix(location).map_or(0, str::len)));
    let has_own = |location: &Location<'_>| !location.outer.is_empty();
    if !prefixes.iter().any(is(Kind::Preferred)) && !patterns.iter().any(has_own) {
        ordered.extend(patterns);
        ordered.extend(prefixes);
        return ordered;
    }
    let common: Vec<usize> = (0..patterns.len())
        .filter(|at| patterns[*at].outer.is_empty())
        .collect();
    let lists: Vec<Vec<usize>> = prefixes
        .iter()
        .map(|location| applicable(location, &patterns))
        .collect();
    let is_special = precedes_common(&prefixes, &lists, &common);
    for (at, location) in prefixes.iter().enumerate() {
        if is_special[at] {
            narrowed(notes, location, &lists[at], &patterns, guards, &mut ordered);
            ordered.push(location.clone());
        }
    }
    for (at, location) in prefixes.iter().enumerate() {
        let own = lists[at].len() - common.len().min(lists[at].len());
        // The widest prefix with the same expressions includes them.
        let is_within = |other: usize| {
            other != at && lists[other] == lists[at] && is_beneath(location, &prefixes[other])
        };
        if !is_special[at] && !(0..prefixes.len()).any(is_within) {
            narrowed(
                notes,
                location,
                &lists[at][..own],
                &patterns,
                guards,
                &mut ordered,
            );
        }
    }
    ordered.extend(common.iter().map(|at| patterns[*at].clone()));
    let others = prefixes.into_iter().zip(&is_special);
    ordered.extend(
        others
            .filter(|(_, special)| !**special)
            .map(|(location, _)| location),
    );
    ordered
}

/// Removes locations that no request reaches: nginx finds the longest prefix on each level, and then only looks inside
/// that location.
fn reachable<'a>(notes: &mut Notes, found: Vec<Location<'a>>) -> Vec<Location<'a>> {
    let rivals: Vec<Option<&Location<'a>>> = found
        .iter()
        .map(|location| shadowing_location(location, &found))
        .collect();
    let is_reached: Vec<bool> = rivals.iter().map(Option::is_none).collect();
    for (location, rival) in found.iter().zip(&rivals) {
        if let Some(rival) = rival {
            let shown = rival.directive.shown();
            let why = format!("no request reaches it: {shown} matches its paths");
            notes.without_effect(location.directive, why);
        }
    }
    let both = found.into_iter().zip(is_reached);
    let reached = both.filter(|(_, is_reached)| *is_reached);
    reached.map(|(location, _)| location).collect()
}

/// A location next to one of the enclosing locations that matches all of its paths.
fn shadowing_location<'l, 'a>(
    location: &Location<'_>,
    found: &'l [Location<'a>],
) -> Option<&'l Location<'a>> {
    let (Path::Prefix(path) | Path::Exact(path)) = &location.path.path else {
        return None;
    };
    if location.is_expression() {
        return None;
    }
    let rivals = |(level, (around, _)): (usize, &(usize, Kind))| {
        let is_around = |other: &&Location<'_>| other.directive.number == *around;
        let around = found.iter().find(is_around)?;
        let length = prefix(around).map_or(0, str::len);
        found.iter().find(|rival| {
            let takes_all = match &rival.path.path {
                Path::Prefix(rival) => rival.len() > length && path.starts_with(rival.as_str()),
                rival @ Path::Exact(_) => *rival == location.path.path,
                _ => false,
            };
            !rival.is_expression() && rival.outer == location.outer[..level] && takes_all
        })
    };
    location.outer.iter().enumerate().find_map(rivals)
}

/// Indexes of the expressions that nginx tries for paths with this longest prefix, in order.
fn applicable(location: &Location<'_>, patterns: &[Location<'_>]) -> Vec<usize> {
    let mut chain = location.outer.clone();
    chain.push((location.directive.number, location.kind));
    let mut list = Vec::new();
    // Expressions inside the location, then those next to each level, unless the location of that level has `^~`.
    for length in (0..=chain.len()).rev() {
        let keeps_away = chain
            .get(length)
            .is_some_and(|(_, kind)| *kind == Kind::Preferred);
        let is_there = |at: &usize| patterns[*at].outer == chain[..length];
        if !keeps_away {
            list.extend((0..patterns.len()).filter(is_there));
        }
    }
    list
}

/// Whether each prefix must come before the common expressions.
fn precedes_common(prefixes: &[Location<'_>], lists: &[Vec<usize>], common: &[usize]) -> Vec<bool> {
    let all = 0..prefixes.len();
    let own: Vec<bool> = all
        .clone()
        .map(|at| {
            let is_other = |other: usize| {
                lists[other] != lists[at] && is_beneath(&prefixes[other], &prefixes[at])
            };
            let has_own = lists[at] != common;
            has_own && (!lists[at].ends_with(common) || all.clone().any(is_other))
        })
        .collect();
    let is_in = |at: usize, outer: usize| own[outer] && is_beneath(&prefixes[at], &prefixes[outer]);
    all.clone()
        .map(|at| all.clone().any(|outer| is_in(at, outer)))
        .collect()
}

/// Whether a prefix starts with another one.
fn is_beneath(location: &Location<'_>, outer: &Location<'_>) -> bool {
    let paths = prefix(location).zip(prefix(outer));
    paths.is_some_and(|(path, outer)| path.starts_with(outer))
}

/// Adds these expressions, limited to paths with a prefix.
fn narrowed<'a>(
    notes: &mut Notes,
    location: &Location<'a>,
    list: &[usize],
    patterns: &[Location<'a>],
    guards: Guards,
    ordered: &mut Vec<Location<'a>>,
) {
    for pattern in list.iter().map(|at| &patterns[*at]) {
        let path = match pattern.path.path.and(&location.path.path) {
            Conjunction::Is(path) => path,
            Conjunction::Never => continue,
            Conjunction::Inexpressible if pattern.closes(guards) => {
                notes.approximated(pattern.directive, REFUSED_EVERYWHERE);
                ordered.push(Location {
                    asks: MatchExtent::Wider,
                    ..pattern.clone()
                });
                continue;
            }
            Conjunction::Inexpressible => {
                let why = "Onrush cannot combine this expression with the path around it";
                notes.left_out(pattern.directive, why);
                continue;
            }
        };
        // The captured text is only known for the expression's own prefix.
        let captured = pattern.path.captured.clone();
        let captured = captured.filter(|_| path == pattern.path.path);
        ordered.push(Location {
            path: PrefixPattern { path, captured },
            ..pattern.clone()
        });
    }
}

fn prefix<'l>(location: &'l Location<'_>) -> Option<&'l str> {
    match &location.path.path {
        Path::Prefix(path) => Some(path),
        _ => None,
    }
}

fn gather<'a>(
    notes: &mut Notes,
    level: &'a [Directive],
    scope: &Scope<'a>,
    guards: Guards,
    outer: &[Location<'a>],
    found: &mut Vec<Location<'a>>,
) {
    for directive in level
        .iter()
        .filter(|directive| directive.name() == "location")
    {
        let inner_scope = scope.of_location(directive.inside());
        let (kind, path, asks) = match read(directive, scope, outer.last()) {
            Ok(Some((_, path))) if path.path.is_unreachable() => continue,
            Ok(Some((kind, path))) => (kind, path, MatchExtent::Exactly),
            // Named locations are only reached by internal redirects.
            Ok(None) => continue,
            Err(why) if guards == Guards::Closed && is_guarded(directive) => {
                let (path, paths) = wider(directive);
                let why = format!("{why}; {paths} are refused (--open-guards leaves them out)");
                notes.left_out(directive, why);
                (Kind::Pattern, path, MatchExtent::Wider)
            }
            Err(why) => {
                notes.left_out(directive, why);
                continue;
            }
        };
        if asks == MatchExtent::Exactly {
            notes.carried(directive);
        }
        // A wider expression inside a location with an expression is handled as if it were outside.
        let is_within = |outer: &Location<'_>| outer.kind == Kind::Pattern;
        let outer = match asks == MatchExtent::Wider && outer.iter().any(is_within) {
            true => &[],
            false => outer,
        };
        let chain = outer.iter();
        let location = Location {
            directive,
            scope: inner_scope,
            path,
            asks,
            kind,
            outer: chain
                .map(|outer| (outer.directive.number, outer.kind))
                .collect(),
        };
        let chain = [outer, std::slice::from_ref(&location)].concat();
        if asks == MatchExtent::Exactly {
            gather(
                notes,
                directive.inside(),
                &location.scope,
                guards,
                &chain,
                found,
            );
        }
        let is_known = |known: &Location<'_>| {
            known.kind == kind && known.path == location.path && known.outer == location.outer
        };
        if kind != Kind::Pattern && found.iter().any(is_known) {
            notes.without_effect(directive, "an earlier location has the same path");
            continue;
        }
        found.push(location);
    }
}

/// Kind and path of a location; none for a named location.
fn read(
    directive: &Directive,
    scope: &Scope<'_>,
    outer: Option<&Location<'_>>,
) -> Result<Option<(Kind, PrefixPattern)>, String> {
    if scope.value("merge_slashes") == "off" && has_slashes(directive) {
        return Err("Onrush compares paths without empty segments".to_owned());
    }
    let plain = |path: Path| PrefixPattern {
        path,
        captured: None,
    };
    let Some((modifier, text)) = modifier(directive) else {
        return Err("expected a path, with or without =, ~, ~* or ^~ before it".to_owned());
    };
    if text.starts_with('@') {
        return Ok(None);
    }
    if text.contains(char::REPLACEMENT_CHARACTER) {
        return Err("the path has bytes that are not UTF-8".to_owned());
    }
    if outer.is_some_and(|outer| outer.kind == Kind::Pattern) {
        return Err("Onrush cannot combine this path with the expression around it".to_owned());
    }
    let is_path = text.starts_with('/');
    let prefix = || plain(Path::Prefix(text.to_owned()));
    match modifier {
        "=" if is_path => Ok(Some((Kind::Exact, plain(Path::Exact(text.to_owned()))))),
        "" if is_path => Ok(Some((Kind::Prefix, prefix()))),
        "^~" if is_path => Ok(Some((Kind::Preferred, prefix()))),
        "=" | "" | "^~" => Err(format!(
            "{text:?} does not start with a slash: no request matches it"
        )),
        "~" | "~*" => {
            let pattern = match modifier {
                "~*" => format!("(?i){text}"),
                _ => text.to_owned(),
            };
            let path = match prefix_pattern(&pattern) {
                // In an expression `$` also matches before a final line break, which an exact path would not.
                Some(PrefixPattern {
                    path: Path::Exact(_),
                    ..
                })
                | None => plain(Path::from_pcre(&pattern)?),
                Some(simple) => simple,
            };
            within(path, outer).map(Some)
        }
        other => Err(format!(
            "{other:?} is not a modifier: expected =, ~, ~* or ^~"
        )),
    }
}

/// An expression, or the exact path of the enclosing location if it matches the expression.
fn within(
    path: PrefixPattern,
    outer: Option<&Location<'_>>,
) -> Result<(Kind, PrefixPattern), String> {
    match outer.filter(|outer| outer.kind == Kind::Exact) {
        None => Ok((Kind::Pattern, path)),
        Some(outer) => match path.path.and(&outer.path.path) {
            Conjunction::Is(_) => Ok((Kind::Exact, outer.path.clone())),
            _ => Err("no request can match both this path and the path around it".to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nginx::tests::work_of;

    /// The paths of the locations of a server, in order.
    fn order(text: &str) -> Vec<String> {
        work_of(text, |work, level| {
            let found = locations(&mut work.notes, level, &Scope::default(), Guards::Closed);
            let paths = found
                .iter()
                .filter_map(|location| location.path.path.written());
            paths.collect()
        })
    }

    #[test]
    fn locations_are_ordered_by_precedence() {
        let text =
            "location / {} location ~ b {} location /a/ {} location = /x {} location ^~ /i/ {}
            location ~* a {} location /a/long/ {} location /i/deep {} location @n {}";
        assert_eq!(
            order(text),
            [
                "=/x",
                "~^/i/deep(?s-u:.*)(?:b)",
                "~^/i/deep(?s-u:.*)(?i:a)",
                "/i/deep",
                "/i/",
                "~b",
                "~(?i)a",
                "/a/long/",
                "/a/",
                "/"
            ]
        );
    }

    #[test]
    fn nested_regex_location_comes_first() {
        let text = "location ~ \\.js$ {} location /a/ { location ~ \\.php$ {} location /a/b {} }";
        assert_eq!(
            order(text),
            ["~^/a/(?s-u:.*)(?:\\.php$)", "~\\.js$", "/a/b", "/a/"]
        );
    }

    #[test]
    fn regex_locations_apply_to_longest_prefix() {
        let text = "location ^~ /a {} location /app {} location ~ \\.sql$ {}";
        let expected = ["~^/app(?s-u:.*)(?:\\.sql$)", "/app", "/a", "~\\.sql$"];
        assert_eq!(order(text), expected);
        let text = "location ^~ /a/ { location ~ \\.php$ {} } location ~ b {}";
        let expected = ["~^/a/(?s-u:.*)(?:\\.php$)", "/a/", "~b"];
        assert_eq!(order(text), expected);
        let text = "location /a/ { location ~ \\.php$ {} } location /a/b/ {}";
        let expected = ["/a/b/", "~^/a/(?s-u:.*)(?:\\.php$)", "/a/"];
        assert_eq!(order(text), expected);
    }

    #[test]
    fn unreachable_locations_are_removed() {
        let text = "location /a/ { location /a/b/c/ {} location = /a/b/x {} location /a/c/ {} } location /a/b/ {}";
        assert_eq!(order(text), ["/a/c/", "/a/b/", "/a/"]);
        let text = "location /a/ { location /a/b {} } location ~ ^/a/b {}";
        assert_eq!(order(text), ["/a/b", "/a/b", "/a/"]);
        let text = "location /a/ { location /a/b/ { location /a/b/c {} } } location /a/b/ {}";
        assert_eq!(order(text), ["/a/b/", "/a/"]);
        let text = "location / { location = /x {} } location = /x { return 403; }";
        assert_eq!(order(text), ["=/x", "/"]);
        let text = "location /a { location /a/b/c {} } location /a/b { location /a/b/d {} }";
        assert_eq!(order(text), ["/a/b/d", "/a/b", "/a"]);
    }

    #[test]
    fn location_modifiers_need_no_space() {
        assert_eq!(
            order("location =/a {} location ~\\.b$ {} location ^~/c {} location ~^/d {}"),
            ["=/a", "/c", "~\\.b$", "/d"]
        );
    }
}
