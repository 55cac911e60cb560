//! Changes to a request by earlier rules. HAProxy evaluates each condition on the changed request, Onrush on the
//! original one.

use crate::expression::condition::{Atom, Path, Scheme, Test};
use crate::expression::decide::Formula;
use crate::expression::pcre::{is_found, literals_of};
use crate::settings::route::plain;

/// Difference between the request at one point of the rules and the original request.
#[derive(Clone, Debug, Default)]
pub(super) struct RequestChanges {
    /// Changes of fields, in the order of the rules.
    fields: Vec<(Names, FieldChange)>,
    pub(super) path: PathState,
    /// Parts with unknown values, because Onrush has no equivalent of a rule that changed them.
    unclear: Vec<Part>,
}

/// A part of a request besides its fields and its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Client,
    Method,
    Port,
    Query,
}

/// The fields that a rule changes.
#[derive(Clone, Debug)]
pub(super) enum Names {
    One(String),
    /// All fields with a matching name, in lower case.
    Matching(regex::Regex),
    All,
}

impl Names {
    fn contain(&self, name: &str) -> bool {
        match self {
            Names::One(one) => one.eq_ignore_ascii_case(name),
            Names::Matching(pattern) => pattern.is_match(&name.to_ascii_lowercase()),
            Names::All => true,
        }
    }
}

/// Change of fields by a rule. Values are templates of Onrush.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FieldChange {
    Set(String),
    Add(String),
    Removed,
    /// The value is unknown at conversion.
    Unclear,
}

/// State of the path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum PathState {
    #[default]
    Original,
    /// A path that started with `from` now starts with `to`.
    Moved {
        from: String,
        to: String,
    },
    Constant(String),
    Unclear,
}

/// Current state of a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Field {
    /// Whether the original values are gone.
    is_replaced: bool,
    /// Values set by rules, as templates of Onrush.
    values: Vec<String>,
    is_unclear: bool,
}

const UNCLEAR: &str = "an earlier rule changes the value to compare, and the new value is unknown";

fn unclear() -> Formula {
    Formula::Unknown(UNCLEAR.to_owned())
}

fn constantly(held: Option<()>) -> Formula {
    held.map_or(Formula::never(), |()| Formula::always())
}

impl RequestChanges {
    pub(super) fn change(&mut self, names: Names, change: FieldChange) {
        self.fields.push((names, change));
    }

    pub(super) fn mark_unknown(&mut self, part: Part) {
        self.unclear.push(part);
    }

    pub(super) fn mark_all_unknown(&mut self) {
        self.change(Names::All, FieldChange::Unclear);
        self.path = PathState::Unclear;
        self.unclear
            .extend([Part::Client, Part::Method, Part::Port, Part::Query]);
    }

    pub(super) fn is_unclear(&self, part: Part) -> bool {
        self.unclear.contains(&part)
    }

    fn field(&self, name: &str) -> Field {
        let mut field = Field::default();
        for (_, change) in self.fields.iter().filter(|(names, _)| names.contain(name)) {
            match change {
                FieldChange::Set(value) => {
                    field = Field {
                        is_replaced: true,
                        values: vec![value.clone()],
                        is_unclear: false,
                    }
                }
                FieldChange::Add(value) => field.values.push(value.clone()),
                FieldChange::Removed => {
                    field = Field {
                        is_replaced: true,
                        ..Field::default()
                    }
                }
                FieldChange::Unclear => field.is_unclear = true,
            }
        }
        field
    }

    /// The value of a field as a template of Onrush; `original` is the template of its original value. None if it is
    /// unknown.
    pub(super) fn value(&self, name: &str, original: &str) -> Option<String> {
        let field = self.field(name);
        match field.values.last() {
            _ if field.is_unclear => None,
            Some(last) => Some(last.clone()),
            None if field.is_replaced => Some(String::new()),
            None => Some(original.to_owned()),
        }
    }

    /// Translates a formula on the changed request into one on the original request.
    pub(super) fn on_original(&self, formula: Formula) -> Formula {
        match formula {
            Formula::Atom(atom) => self.atom(atom),
            Formula::Not(inner) => Formula::Not(Box::new(self.on_original(*inner))),
            Formula::All(parts) => Formula::All(self.all_seen(parts)),
            Formula::Any(parts) => Formula::Any(self.all_seen(parts)),
            unknown @ Formula::Unknown(_) => unknown,
        }
    }

    fn all_seen(&self, parts: Vec<Formula>) -> Vec<Formula> {
        parts
            .into_iter()
            .map(|part| self.on_original(part))
            .collect()
    }

    fn atom(&self, atom: Atom) -> Formula {
        let part = match &atom {
            Atom::Header(name, test) => return self.header(name, test),
            Atom::Host(names) => return self.host(names),
            Atom::Path(path) => return self.path(path),
            Atom::Method(_) => Part::Method,
            Atom::Query(..) => Part::Query,
            Atom::From(_) => Part::Client,
            Atom::Listener(_) => Part::Port,
            Atom::Scheme(_) => return Formula::Atom(atom),
        };
        match self.is_unclear(part) {
            true => unclear(),
            false => Formula::Atom(atom),
        }
    }

    fn header(&self, name: &str, test: &Test) -> Formula {
        let field = self.field(name);
        if field.is_unclear {
            return unclear();
        }
        if *test == Test::Absent {
            return match (field.values.is_empty(), field.is_replaced) {
                (false, _) => Formula::never(),
                (true, true) => Formula::always(),
                (true, false) => Formula::Atom(Atom::Header(name.to_owned(), Test::Absent)),
            };
        }
        let mut any: Vec<Formula> = field
            .values
            .iter()
            .map(|value| of_value(value, test))
            .collect();
        if !field.is_replaced {
            any.push(Formula::Atom(Atom::Header(name.to_owned(), test.clone())));
        }
        Formula::Any(any)
    }

    fn host(&self, names: &[String]) -> Formula {
        let field = self.field("host");
        let original = || Formula::Atom(Atom::Host(names.to_vec()));
        match &field.values[..] {
            [] if !field.is_unclear && !field.is_replaced => original(),
            [] if !field.is_unclear => Formula::never(),
            [value] if !field.is_unclear && field.is_replaced => match &plain(value) {
                Some(host) if !host.contains(':') => {
                    let host = host.to_ascii_lowercase();
                    {
                        let mut names = names.iter();
                        constantly(names.any(|name| is_among(&host, name)).then_some(()))
                    }
                }
                None if value == "{host}" => original(),
                _ => unclear(),
            },
            _ => unclear(),
        }
    }

    fn path(&self, path: &Path) -> Formula {
        match &self.path {
            PathState::Original => Formula::Atom(Atom::Path(path.clone())),
            PathState::Constant(now) => constantly(path.holds(now).then_some(())),
            PathState::Moved { from, to } => moved(from, to, path),
            PathState::Unclear => unclear(),
        }
    }

    /// Replaces the prefix `from` of the path by `to`.
    pub(super) fn move_path(&mut self, from: &str, to: &str) {
        self.path = match &self.path {
            PathState::Original => PathState::Moved {
                from: from.to_owned(),
                to: to.to_owned(),
            },
            PathState::Constant(now) => match now.strip_prefix(from) {
                Some(rest) => PathState::Constant(format!("{to}{rest}")),
                None => PathState::Constant(now.clone()),
            },
            PathState::Moved {
                from: first,
                to: now,
            } => match now.strip_prefix(from) {
                Some(rest) => PathState::Moved {
                    from: first.clone(),
                    to: format!("{to}{rest}"),
                },
                None => match from.strip_prefix(now.as_str()) {
                    Some(more) => PathState::Moved {
                        from: format!("{first}{more}"),
                        to: to.to_owned(),
                    },
                    None => PathState::Unclear,
                },
            },
            PathState::Unclear => PathState::Unclear,
        };
    }
}

/// Whether a value set by a rule passes a test.
fn of_value(value: &str, test: &Test) -> Formula {
    let holds = |text: &str| match test {
        Test::Present => true,
        Test::Absent => false,
        Test::Is(expected) => text == expected,
        Test::Matches(pattern) => is_found(pattern, text),
    };
    if let Some(text) = plain(value) {
        return constantly(holds(&text).then_some(()));
    }
    match (value, test) {
        (_, Test::Present) => Formula::always(),
        ("{scheme}", _) => {
            let schemes = [Scheme::Http, Scheme::Https].into_iter();
            let fitting = schemes.filter(|scheme| holds(scheme.name()));
            Formula::Any(
                fitting
                    .map(|scheme| Formula::Atom(Atom::Scheme(scheme)))
                    .collect(),
            )
        }
        _ => unclear(),
    }
}

fn is_among(host: &str, name: &str) -> bool {
    match name.strip_prefix('*') {
        Some(below) => host.ends_with(below) && host.len() > below.len(),
        None => host == name,
    }
}

/// Translates a condition on a path with the new prefix `to` into one on the original path with the prefix `from`.
fn moved(from: &str, to: &str, path: &Path) -> Formula {
    let of = |path: Path| Formula::Atom(Atom::Path(path));
    match path {
        Path::Any => Formula::always(),
        Path::Exact(exact) => match exact.strip_prefix(to) {
            Some(rest) => of(Path::Exact(format!("{from}{rest}"))),
            None => Formula::never(),
        },
        Path::Prefix(prefix) => match (prefix.strip_prefix(to), to.starts_with(prefix.as_str())) {
            (_, true) => Formula::always(),
            (Some(rest), false) => of(Path::Prefix(format!("{from}{rest}"))),
            (None, false) => Formula::never(),
        },
        // Both prefixes end before the last segment, so the suffix is unchanged.
        Path::Suffix(end) if from.ends_with('/') && to.ends_with('/') && !end.contains('/') => {
            of(path.clone())
        }
        Path::Pattern(pattern) => match pattern.strip_prefix('^').and_then(literals_of) {
            Some(literals) => {
                let literals = literals.into_iter().map(String::from_iter);
                Formula::Any(
                    literals
                        .map(|text| moved(from, to, &Path::Prefix(text)))
                        .collect(),
                )
            }
            None => unclear(),
        },
        Path::Suffix(_) | Path::Contains(_) | Path::Within(..) => unclear(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Formula {
        Formula::Atom(Atom::Path(Path::Prefix(text.to_owned())))
    }

    fn field(test: Test) -> Formula {
        Formula::Atom(Atom::Header("X-A".to_owned(), test))
    }

    #[test]
    fn conditions_on_changed_fields_are_evaluated() {
        let is_yes = || Test::Is("yes".to_owned());
        let set = |value: &str| FieldChange::Set(value.to_owned());
        let any = |parts: Vec<Formula>| Formula::Any(parts);
        for (changes, test, expected) in [
            (vec![FieldChange::Removed], is_yes(), any(vec![])),
            (vec![FieldChange::Removed], Test::Absent, Formula::always()),
            (vec![set("yes")], is_yes(), any(vec![Formula::always()])),
            (vec![set("no")], is_yes(), any(vec![Formula::never()])),
            (
                vec![FieldChange::Removed, FieldChange::Add("yes".to_owned())],
                is_yes(),
                any(vec![Formula::always()]),
            ),
            (
                vec![FieldChange::Add("no".to_owned())],
                is_yes(),
                any(vec![Formula::never(), field(is_yes())]),
            ),
            (
                vec![set("{client.address}")],
                is_yes(),
                any(vec![unclear()]),
            ),
            (vec![FieldChange::Unclear], is_yes(), unclear()),
            (
                vec![FieldChange::Unclear, FieldChange::Removed],
                is_yes(),
                any(vec![]),
            ),
        ] {
            let mut changed = RequestChanges::default();
            for change in &changes {
                changed.change(Names::One("x-a".to_owned()), change.clone());
            }
            assert_eq!(
                changed.on_original(field(test.clone())),
                expected,
                "{changes:?} {test:?}"
            );
        }
    }

    #[test]
    fn conditions_are_mapped_to_original_path() {
        for (from, to, asked, expected) in [
            ("/v1/", "/", "/admin", prefix("/v1/admin")),
            ("/v1/", "/admin/", "/admin", Formula::always()),
            ("/v1/", "/x/", "/admin", Formula::never()),
            ("/v1/", "/admin/", "/admin/s", prefix("/v1/s")),
        ] {
            let mut changed = RequestChanges::default();
            changed.move_path(from, to);
            assert_eq!(
                changed.on_original(prefix(asked)),
                expected,
                "{from} to {to}: {asked}"
            );
        }
    }

    #[test]
    fn successive_path_moves_are_merged() {
        let mut changed = RequestChanges::default();
        changed.move_path("/a/", "/b/c/");
        changed.move_path("/b/", "/d/");
        let once = PathState::Moved {
            from: "/a/".to_owned(),
            to: "/d/c/".to_owned(),
        };
        assert_eq!(changed.path, once);
        changed.move_path("/d/c/e/", "/");
        let longer = PathState::Moved {
            from: "/a/e/".to_owned(),
            to: "/".to_owned(),
        };
        assert_eq!(changed.path, longer);
    }
}
