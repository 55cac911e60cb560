//! The locations of a server, in the order in which Onrush has to look at them.
//!
//! nginx looks for the longest prefix, then for the first expression, and takes the prefix if that is exact, says `^~`, or no
//! expression is found. So routes come in this order: exact paths; prefixes with `^~`, and longer ones beneath them;
//! expressions; the other prefixes, the longest first.

use super::scope::Scope;
use crate::condition::Path;
use crate::directive::Directive;
use crate::note::Notes;
use crate::pattern::{Simple, simple};

/// A location with its place in the order.
#[derive(Clone, Debug)]
pub(super) struct Location<'a> {
    pub(super) directive: &'a Directive,
    pub(super) scope: Scope<'a>,
    pub(super) path: Simple,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Exact,
    /// `^~`
    Preferred,
    /// An expression inside a prefix, which is looked at before those outside.
    InnerPattern,
    Pattern,
    Prefix,
}

/// The locations of `level`, in order.
pub(super) fn locations<'a>(
    notes: &mut Notes,
    level: &'a [Directive],
    scope: &Scope<'a>,
) -> Vec<Location<'a>> {
    let mut found = Vec::new();
    gather(notes, level, scope, None, &mut found);
    let preferred: Vec<String> = found
        .iter()
        .filter(|location| location.kind == Kind::Preferred)
        .filter_map(|location| prefix(location).map(str::to_owned))
        .collect();
    for location in &mut found {
        let path = prefix(location).filter(|_| location.kind == Kind::Prefix);
        let is_beneath = |path: &str| {
            preferred
                .iter()
                .any(|outer| path.starts_with(outer.as_str()))
        };
        if path.is_some_and(is_beneath) {
            location.kind = Kind::Preferred;
            let how =
                "expressions of other locations are not looked at here, as in the ^~ around it";
            notes.approximated(location.directive, how);
        }
    }
    // Expressions keep their order.
    found.sort_by_key(|location| {
        let length = prefix(location).map_or(0, str::len);
        let length = match location.kind {
            Kind::Preferred | Kind::Prefix => length,
            Kind::Exact | Kind::InnerPattern | Kind::Pattern => 0,
        };
        (location.kind, std::cmp::Reverse(length))
    });
    found
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
    outer: Option<&Path>,
    found: &mut Vec<Location<'a>>,
) {
    for directive in level
        .iter()
        .filter(|directive| directive.name() == "location")
    {
        let inner_scope = scope.of_location(directive.inside());
        let (kind, path) = match read(directive, outer) {
            Ok(Some(read)) => read,
            // A named one is where others lead.
            Ok(None) => continue,
            Err(why) => {
                notes.left_out(directive, why);
                continue;
            }
        };
        notes.carried(directive);
        gather(
            notes,
            directive.inside(),
            &inner_scope,
            Some(&path.path),
            found,
        );
        let is_known = |known: &Location<'_>| known.kind == kind && known.path == path;
        if kind != Kind::Pattern && found.iter().any(is_known) {
            notes.without_effect(directive, "there is a location of this name before it");
            continue;
        }
        found.push(Location {
            directive,
            scope: inner_scope,
            path,
            kind,
        });
    }
}

/// Kind and path of a location; none for one that only has a name.
fn read(directive: &Directive, outer: Option<&Path>) -> Result<Option<(Kind, Simple)>, String> {
    let plain = |path: Path| Simple {
        path,
        captured: None,
    };
    let (modifier, text) = match directive.arguments() {
        [text] => match text.strip_prefix(['=', '~', '^']) {
            // nginx takes them without a space between, too.
            Some(_) => {
                let begin = text.find(|letter| !matches!(letter, '=' | '~' | '^' | '*'));
                text.split_at(begin.filter(|_| !text.starts_with("^/")).unwrap_or(0))
            }
            None => ("", text.as_str()),
        },
        [modifier, text] => (modifier.as_str(), text.as_str()),
        _ => return Err("expected a path, with or without =, ~, ~* or ^~ before it".to_owned()),
    };
    if text.starts_with('@') {
        return Ok(None);
    }
    let is_bad = |letter: char| matches!(letter, '?' | '#' | ' ') || letter.is_control();
    let is_path = text.starts_with('/') && !text.contains(is_bad);
    let not_path = || Err(format!("{text:?} is no path: no request has it"));
    match modifier {
        "=" if is_path => Ok(Some((Kind::Exact, plain(Path::Exact(text.to_owned()))))),
        "" if is_path => Ok(Some((Kind::Prefix, plain(Path::Prefix(text.to_owned()))))),
        "^~" if is_path => Ok(Some((
            Kind::Preferred,
            plain(Path::Prefix(text.to_owned())),
        ))),
        "=" | "" | "^~" => not_path(),
        "~" | "~*" => {
            let pattern = match modifier {
                "~*" => format!("(?i){text}"),
                _ => text.to_owned(),
            };
            let path = match simple(&pattern) {
                Some(simple) => simple,
                None => plain(Path::pattern(&pattern)?),
            };
            within(path, outer).map(Some)
        }
        other => Err(format!("{other:?} is none of =, ~, ~* and ^~")),
    }
}

/// An expression within the prefix around it.
fn within(path: Simple, outer: Option<&Path>) -> Result<(Kind, Simple), String> {
    let Some(outer) = outer.filter(|outer| **outer != Path::Prefix("/".to_owned())) else {
        return Ok((Kind::Pattern, path));
    };
    match path.path.and(outer) {
        crate::condition::Both::Is(both) => {
            // What was captured is known behind the expression's own prefix.
            let captured = path.captured.filter(|_| both == path.path);
            let path = Simple {
                path: both,
                captured,
            };
            Ok((Kind::InnerPattern, path))
        }
        _ => {
            Err("Onrush cannot ask for this expression and the path around it together".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nginx::tests::work_of;

    /// The paths of the locations of a server, in order.
    fn order(text: &str) -> Vec<String> {
        work_of(text, |work, level| {
            let found = locations(&mut work.notes, level, &Scope::default());
            let paths = found
                .iter()
                .filter_map(|location| location.path.path.written());
            paths.collect()
        })
    }

    #[test]
    fn locations_stand_in_the_order_of_their_precedence() {
        let text =
            "location / {} location ~ b {} location /a/ {} location = /x {} location ^~ /i/ {}
            location ~* a {} location /a/long/ {} location /i/deep {} location @n {}";
        assert_eq!(
            order(text),
            [
                "=/x", "/i/deep", "/i/", "~b", "~(?i)a", "/a/long/", "/a/", "/"
            ]
        );
    }

    #[test]
    fn an_expression_inside_a_prefix_comes_before_those_outside() {
        let text = "location ~ \\.js$ {} location /a/ { location ~ \\.php$ {} location /a/b {} }";
        assert_eq!(
            order(text),
            ["~^/a/(?s-u:.*)(?:\\.php$)", "~\\.js$", "/a/b", "/a/"]
        );
    }

    #[test]
    fn modifiers_need_no_space() {
        assert_eq!(
            order("location =/a {} location ~\\.b$ {} location ^~/c {}"),
            ["=/a", "/c", "~\\.b$"]
        );
    }
}
