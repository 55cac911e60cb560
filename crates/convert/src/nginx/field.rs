//! Conditions on variables of request fields, cookies and parameters.

use super::map::Map;
use super::variable::field_name;
use crate::expression::condition::{Atom, Test};
use crate::expression::decide::Formula;
use crate::expression::parts::ElementDelimiters;
use crate::expression::pcre::is_found;

/// Wanted value of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Comparison<'a> {
    Equal(&'a str),
    /// Equal, ignoring case.
    Alike(&'a str),
    /// Matches a regular expression, with `(?i)` to ignore case.
    Found(String),
    /// Matches a regular expression and is not empty: nginx does not try the expressions of a map on an empty value.
    FoundFilled(String),
    /// Neither empty nor 0.
    Set,
}

impl Comparison<'_> {
    /// The text or expression; empty for [`Comparison::Set`].
    pub(super) fn text(&self) -> &str {
        match self {
            Comparison::Equal(text) | Comparison::Alike(text) => text,
            Comparison::Found(pattern) | Comparison::FoundFilled(pattern) => pattern,
            Comparison::Set => "",
        }
    }
}

/// The condition on a field, cookie or parameter; none for other variables.
pub(super) fn field(name: &str, wanted: &Comparison<'_>) -> Option<Formula> {
    let field = match name {
        "content_type" => Some("Content-Type".to_owned()),
        "content_length" => Some("Content-Length".to_owned()),
        name => name.strip_prefix("http_").map(field_name),
    };
    if let Some(field) = field {
        return Some(tested(wanted, |test| Atom::Header(field.clone(), test)));
    }
    if let Some(parameter) = name.strip_prefix("arg_") {
        return Some(parameter_test(parameter, wanted));
    }
    let cookie = name.strip_prefix("cookie_")?;
    cookie_test(cookie, wanted)
}

/// Maximum number of letters in the name of a parameter whose spellings are all tried; each doubles the number of conditions.
const LETTERS_MAX: usize = 4;

/// A parameter, which nginx finds by its name in either case. Onrush compares the case, so other spellings are conditions of their
/// own, or an unknown part if the name is long.
fn parameter_test(name: &str, wanted: &Comparison<'_>) -> Formula {
    let spelt = |name: &str| tested(wanted, |test| Atom::Query(name.to_owned(), test));
    let spellings = spellings(name);
    let unknown = Formula::Unknown(
        "names of parameters are case-sensitive; nginx ignores their case".to_owned(),
    );
    let filled = |name: &String| {
        let test = Test::Matches(ANY_CHARACTER.to_owned());
        Formula::Atom(Atom::Query(name.clone(), test))
    };
    let is_other = |spelling: &&String| *spelling != name;
    let others = || Formula::Any(spellings.iter().filter(is_other).map(filled).collect());
    // Each condition must divide the requests once: conditions on all spellings at the same time would multiply.
    match (takes_none(wanted), &spellings[..]) {
        (true, []) => Formula::All(vec![spelt(name), unknown]),
        (false, []) => Formula::Any(vec![spelt(name), unknown]),
        (_, [only]) => spelt(only),
        (true, _) => {
            let none = Formula::Not(Box::new(others()));
            let written = match is_empty(wanted) {
                true => Formula::Not(Box::new(filled(&name.to_owned()))),
                false => spelt(name),
            };
            Formula::All(vec![Formula::Any(vec![none, unknown]), written])
        }
        (false, _) if matches!(wanted, Comparison::FoundFilled(_)) => {
            let some = Formula::All(vec![others(), unknown]);
            Formula::Any(vec![spelt(name), some])
        }
        (false, all) => Formula::Any(all.iter().map(|name| spelt(name)).collect()),
    }
}

/// An expression that matches every value that is not empty, the end of a line included.
const ANY_CHARACTER: &str = "[^0]|0";

/// The spellings of a name with upper and lower case letters; none if there are too many.
fn spellings(name: &str) -> Vec<String> {
    let lower = name.to_ascii_lowercase();
    let is_letter = |letter: &char| letter.is_ascii_alphabetic();
    let letters = lower.chars().filter(is_letter).count();
    if letters > LETTERS_MAX {
        return Vec::new();
    }
    let spelt = |spelling: usize| {
        let mut at = 0;
        let letters = lower.chars().map(|letter| {
            let is_upper = is_letter(&letter) && spelling >> at & 1 == 1;
            at += usize::from(is_letter(&letter));
            match is_upper {
                true => letter.to_ascii_uppercase(),
                false => letter,
            }
        });
        letters.collect()
    };
    (0..1_usize << letters).map(spelt).collect()
}

/// Whether only an empty or missing value fulfils the condition.
fn is_empty(wanted: &Comparison<'_>) -> bool {
    match wanted {
        Comparison::Equal(text) | Comparison::Alike(text) => text.is_empty(),
        Comparison::Found(pattern) => matches!(pattern.as_str(), "^$" | "(?i)^$"),
        Comparison::FoundFilled(_) | Comparison::Set => false,
    }
}

/// Whether an empty or missing value fulfils the condition.
fn takes_none(wanted: &Comparison<'_>) -> bool {
    match wanted {
        Comparison::Equal(text) | Comparison::Alike(text) => text.is_empty(),
        Comparison::Found(pattern) => is_found(pattern, ""),
        Comparison::FoundFilled(_) | Comparison::Set => false,
    }
}

/// Maximum number of hyphens in a name that are also tried as underscores; each doubles the number of conditions.
const HYPHENS_MAX: usize = 3;

/// Like `field`, if nginx accepts field names with underscores: `$http_a_b` is the field `a-b` or `a_b`. Fails if the
/// name has more than [`HYPHENS_MAX`] hyphens.
pub(super) fn field_with_underscores(
    name: &str,
    wanted: &Comparison<'_>,
) -> Result<Option<Formula>, String> {
    // nginx finds these by their whole names (ngx_http_core_variables).
    const WHOLE: [&str; 2] = ["http_user_agent", "http_x_forwarded_for"];
    let of_field = name.strip_prefix("http_").map(field_name);
    let Some(of_field) = of_field.filter(|_| !WHOLE.contains(&name)) else {
        return Ok(field(name, wanted));
    };
    let joints: Vec<usize> = of_field.match_indices('-').map(|(at, _)| at).collect();
    if joints.len() > HYPHENS_MAX {
        return Err(format!(
            "${name} may be one of too many fields: expected a name with fewer underscores"
        ));
    }
    let spelt = (0..1_usize << joints.len()).map(|spelling| {
        let is_joint = |at| joints.iter().position(|joint| *joint == at);
        let letters = of_field
            .char_indices()
            .map(|(at, letter)| match is_joint(at) {
                Some(joint) if spelling >> joint & 1 == 1 => '_',
                _ => letter,
            });
        let of_field: String = letters.collect();
        tested(wanted, |test| Atom::Header(of_field.clone(), test))
    });
    let all = spelt.collect();
    Ok(Some(match takes_none(wanted) {
        true => Formula::All(all),
        false => Formula::Any(all),
    }))
}

/// A missing field counts as an empty value.
fn tested(wanted: &Comparison<'_>, atom: impl Fn(Test) -> Atom) -> Formula {
    let pattern = match wanted {
        Comparison::Equal("") | Comparison::Alike("") => "^$".to_owned(),
        Comparison::Equal(value) => return Formula::Atom(atom(Test::Is((*value).to_owned()))),
        Comparison::Alike(value) => format!("(?i)^{}$", regex::escape(value)),
        Comparison::Found(pattern) | Comparison::FoundFilled(pattern) => pattern.clone(),
        Comparison::Set => "^(0.|[^0])".to_owned(),
    };
    let takes_none = is_found(&pattern, "");
    let found = Formula::Atom(atom(Test::Matches(pattern)));
    match takes_none {
        true if matches!(wanted, Comparison::FoundFilled(_)) => {
            let empty = Formula::Atom(atom(Test::Matches("^\\z".to_owned())));
            Formula::All(vec![Formula::Not(Box::new(empty)), found])
        }
        true => Formula::Any(vec![Formula::Atom(atom(Test::Absent)), found]),
        false => found,
    }
}

/// A condition on a cookie in the field `Cookie`, by its name in any case.
fn cookie_test(name: &str, wanted: &Comparison<'_>) -> Option<Formula> {
    let begin = format!("(?i:(?:^|[;,]) *{} *= *)", regex::escape(name));
    let cookie = |value: &str| {
        let pattern = format!("{begin}{value}");
        Formula::Atom(Atom::Header("Cookie".to_owned(), Test::Matches(pattern)))
    };
    let none = || Formula::Not(Box::new(cookie("[^; ]")));
    Some(match wanted {
        Comparison::Equal("") | Comparison::Alike("") => none(),
        Comparison::Equal(value) => cookie(&format!("{}(?:;|$)", regex::escape(value))),
        Comparison::Alike(value) => cookie(&format!("(?i:{})(?:;|$)", regex::escape(value))),
        Comparison::Set => cookie("(?:0[^;]|[^0; ])"),
        Comparison::Found(pattern) | Comparison::FoundFilled(pattern) => {
            let takes_none = is_found(pattern, "");
            let (flags, bare) = match pattern.strip_prefix("(?i)") {
                Some(bare) => ("i", bare),
                None => ("", pattern.as_str()),
            };
            let parts = ElementDelimiters {
                separator: ';',
                begin: "",
                before: "[^;]*",
                end: "(?:;|$)",
            };
            let found = cookie(&format!("(?{flags}:{})", parts.pattern(bare)?));
            match takes_none {
                true if matches!(wanted, Comparison::FoundFilled(_)) => {
                    let empty = Formula::Not(Box::new(cookie("(?:;|$)")));
                    Formula::All(vec![empty, found])
                }
                true => Formula::Any(vec![none(), found]),
                false => found,
            }
        }
    })
}

/// Difference between a condition of nginx with these words and the resulting formula.
pub(super) fn difference(formula: &Formula, words: &str, maps: &[Map<'_>]) -> Option<&'static str> {
    let names = super::variable::names(words);
    let has_target = names.iter().any(|name| is_target(name, maps));
    let is_long = |name: &String| {
        let mut named = maps.iter().filter(|map| map.target() == name);
        named.any(Map::is_long)
    };
    if let Some(how) = of_atoms(formula) {
        return Some(how);
    }
    if has_target {
        let how = "the normalized path without the query is compared, not the raw request target";
        return Some(how);
    }
    let how = "the map has many entries, so its keys are compared case-sensitively";
    names.iter().any(is_long).then_some(how)
}

/// Whether a variable is the raw request target, or a map of it.
fn is_target(name: &str, maps: &[Map<'_>]) -> bool {
    let at = maps.iter().position(|map| map.target() == name);
    let of_map = |at: usize| {
        let names = super::variable::names(maps[at].source());
        names.iter().any(|name| is_target(name, &maps[..at]))
    };
    name == "request_uri" || at.is_some_and(of_map)
}

fn of_atoms(formula: &Formula) -> Option<&'static str> {
    match formula {
        Formula::Not(inner) => of_atoms(inner),
        Formula::All(parts) | Formula::Any(parts) => parts.iter().find_map(of_atoms),
        Formula::Unknown(_) => None,
        Formula::Atom(Atom::Query(..)) => Some(
            "values are decoded, any of several may match, and names of more than four letters are case-sensitive; nginx ignores case and uses the first raw value",
        ),
        Formula::Atom(Atom::Header(name, Test::Matches(_) | Test::Is(_))) => {
            match name.to_ascii_lowercase().as_str() {
                "host" => None,
                "cookie" => {
                    Some("any of several cookies with this name may match; nginx uses the first")
                }
                _ => Some(
                    "each value of a repeated field is compared; nginx joins them with commas first",
                ),
            }
        }
        Formula::Atom(_) => None,
    }
}
