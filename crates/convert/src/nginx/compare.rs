//! Conditions on variables, as in `if` and `map`.

use std::collections::BTreeSet;

use super::client_address::client;
use super::field::{Comparison, field, field_with_underscores};
use super::map::Map;
use super::method::method;
use super::request_uri::target;
use super::undecided::why_unknown;
use super::variable::{
    Constants, Piece, UNDERSCORES, canonical, expanded, literal, names, pieces, value_of,
};
use crate::expression::condition::{Atom, Path, Scheme, Test, network};
use crate::expression::decide::Formula;
use crate::expression::dialect::translate;
use crate::expression::pcre::{find, of_caseless_host};

/// The condition of an `if`, given its words with the parentheses.
pub(super) fn condition(
    words: &[String],
    constants: &Constants,
    maps: &[Map<'_>],
) -> Result<Formula, String> {
    let text = words.join(" ");
    let inner = text.trim().strip_prefix('(');
    let inner = inner.and_then(|inner| inner.strip_suffix(')'));
    let Some(inner) = inner.map(str::trim) else {
        return Err("expected a condition in parentheses".to_owned());
    };
    let (subject, rest) = match inner.split_once(char::is_whitespace) {
        Some((subject, rest)) => (subject, rest.trim()),
        None => (inner, ""),
    };
    if subject.starts_with('-') || subject.starts_with("!-") {
        return Err("Onrush has no conditions on files".to_owned());
    }
    let Some(name) = subject.strip_prefix('$') else {
        return Err(format!("{subject:?} is not a variable"));
    };
    let name = &*canonical(name.trim_start_matches('{').trim_end_matches('}'));
    let (operator, value) = match rest.split_once(char::is_whitespace) {
        Some((operator, value)) => (operator, value.trim()),
        None => (rest, ""),
    };
    // Only texts have variables; in an expression `$` is an anchor.
    let matches = |prefix: &str| translate(&format!("{prefix}{value}")).map(Comparison::Found);
    let is_text = matches!(operator, "=" | "!=");
    let text = expanded(value, constants);
    if is_text
        && pieces(&text)
            .iter()
            .any(|piece| matches!(piece, Piece::Variable(_)))
    {
        return Err(format!(
            "${name} can only be compared with fixed strings, and {value:?} has variables"
        ));
    }
    let (is_negated, wanted) = match operator {
        "" => (false, Comparison::Set),
        "=" => (false, Comparison::Equal(&text)),
        "!=" => (true, Comparison::Equal(&text)),
        "~" => (false, matches("")?),
        "~*" => (false, matches("(?i)")?),
        "!~" => (true, matches("")?),
        "!~*" => (true, matches("(?i)")?),
        other => return Err(format!("{other:?} is not an operator of nginx")),
    };
    let formula = compare(name, &wanted, constants, maps)?;
    Ok(match is_negated {
        true => Formula::Not(Box::new(formula)),
        false => formula,
    })
}

/// The condition that the variable `name` has the wanted value.
fn compare(
    name: &str,
    wanted: &Comparison<'_>,
    constants: &Constants,
    maps: &[Map<'_>],
) -> Result<Formula, String> {
    if let Some(why) = why_unknown(name, constants) {
        return Err(why);
    }
    let known = value_of(name, constants);
    if let Some(known) = known {
        return compare_text(known, wanted, constants, maps);
    }
    if let Some(map) = maps.iter().find(|map| map.target() == name) {
        return compare_map(map, wanted, constants, maps);
    }
    let atom = match name {
        "host" => host(wanted)?,
        "server_name" => {
            return Err("the first name of the server is a regular expression".to_owned());
        }
        "scheme" => return scheme(wanted, &["http", "https"]),
        "https" => return scheme(wanted, &["", "on"]),
        "request_method" => return method(wanted),
        "remote_addr" => return client(wanted),
        "uri" | "document_uri" => path(wanted),
        "request_uri" => {
            let formula = target(wanted)?;
            return check_all(&formula).map(|()| formula);
        }
        name => {
            if name.starts_with("arg_") && is_encoded(wanted) {
                return Err("parameters are compared decoded".to_owned());
            }
            let formula = match value_of(UNDERSCORES, constants) {
                Some(_) => field_with_underscores(name, wanted)?,
                None => field(name, wanted),
            };
            let formula = formula.ok_or_else(|| format!("Onrush has no condition on ${name}"))?;
            return check_all(&formula).map(|()| formula);
        }
    };
    Ok(Formula::Atom(check(atom)?))
}

/// Whether a value has letters that a decoded parameter does not have.
fn is_encoded(wanted: &Comparison<'_>) -> bool {
    let plus = match wanted {
        Comparison::Equal(_) | Comparison::Alike(_) => "+",
        // A quantifier otherwise.
        Comparison::Found(_) | Comparison::FoundFilled(_) | Comparison::Set => "\\+",
    };
    let text = wanted.text();
    text.contains('%') || text.contains(plus)
}

/// The condition that the source of a map has the key of this entry; always true for the default, which is the last
/// entry.
pub(super) fn key(
    map: &Map<'_>,
    at: usize,
    constants: &Constants,
    maps: &[Map<'_>],
) -> Result<Formula, String> {
    let Some(key) = map.key(at) else {
        return Ok(Formula::always());
    };
    if map.is_geo() {
        if map.variable().as_deref() != Some("remote_addr") {
            let source = map.source();
            return Err(format!(
                "networks can only be compared with the client address, not with {source}"
            ));
        }
        if let Some(why) = why_unknown("remote_addr", constants) {
            return Err(why);
        }
        let network = network(key).ok_or_else(|| format!("{key:?} is not a network"))?;
        return Ok(Formula::Atom(Atom::From(vec![network])));
    }
    let wanted = match (key.strip_prefix('\\'), key.strip_prefix('~')) {
        (Some(literal), _) => Comparison::Alike(literal),
        // No value that is not empty matches this.
        (None, Some("^$" | "*^$")) => return Ok(Formula::never()),
        (None, Some(rest)) => Comparison::FoundFilled(match rest.strip_prefix('*') {
            Some(rest) => translate(&format!("(?i){rest}"))?,
            None => translate(rest)?,
        }),
        (None, None) if map.has_hosts() && is_wide(key) => Comparison::Found(wide(key)),
        (None, None) if map.is_long() => Comparison::Equal(key),
        (None, None) => Comparison::Alike(key),
    };
    // A map may only use the maps before it, which excludes cycles.
    let before = maps.iter().position(|known| known.target() == map.target());
    let maps = &maps[..before.unwrap_or(0)];
    if let Some(name) = map.variable() {
        return compare(&name, &wanted, constants, maps);
    }
    let names = names(map.source());
    match names.iter().find_map(|name| why_unknown(name, constants)) {
        Some(why) => Err(why),
        None => compare_text(&expanded(map.source(), constants), &wanted, constants, maps),
    }
}

/// Whether a key of a map with `hostnames` is a wildcard.
fn is_wide(key: &str) -> bool {
    key.starts_with('.') || key.starts_with("*.") || key.ends_with(".*")
}

/// An expression for a wildcard key.
fn wide(key: &str) -> String {
    if let Some(beginning) = key.strip_suffix(".*") {
        return format!("(?i)^{}\\.", regex::escape(beginning));
    }
    match key.strip_prefix('*') {
        Some(below) => format!("(?i)^.+{}$", regex::escape(below)),
        None => format!("(?i)^(.+\\.)?{}$", regex::escape(&key[1..])),
    }
}

/// The condition that a map has the wanted value.
fn compare_map(
    map: &Map<'_>,
    wanted: &Comparison<'_>,
    constants: &Constants,
    maps: &[Map<'_>],
) -> Result<Formula, String> {
    let mut any = Vec::new();
    let mut before = Vec::new();
    for at in 0..map.len() {
        let key = key(map, at, constants, maps)?;
        let value = expanded(map.value(at), constants);
        if value.contains('$') {
            return Err(format!(
                "the value of {value:?} is only known during a request"
            ));
        }
        let is_wanted = match wanted {
            Comparison::Equal(text) => value == *text,
            Comparison::Alike(text) => value.eq_ignore_ascii_case(text),
            Comparison::Set => is_set(&value),
            Comparison::Found(pattern) => find(pattern, &value)?,
            Comparison::FoundFilled(pattern) => !value.is_empty() && find(pattern, &value)?,
        };
        if is_wanted {
            let not_before = Formula::Not(Box::new(Formula::Any(before.clone())));
            any.push(Formula::All(vec![not_before, key]));
        } else {
            before.push(key);
        }
    }
    Ok(Formula::Any(any))
}

/// The condition that a text has the wanted value.
fn compare_text(
    text: &str,
    wanted: &Comparison<'_>,
    constants: &Constants,
    maps: &[Map<'_>],
) -> Result<Formula, String> {
    let pieces = pieces(text);
    let holds = match (&*pieces, wanted) {
        // Evaluate the other variable without its own constant, which could lead back here.
        ([Piece::Variable(name)], wanted) => {
            let others: Constants = constants
                .iter()
                .filter(|(known, _)| known != name)
                .cloned()
                .collect();
            return compare(name, wanted, &others, maps);
        }
        ([] | [Piece::Text(_)], Comparison::Equal(value)) => text == *value,
        ([] | [Piece::Text(_)], Comparison::Alike(value)) => text.eq_ignore_ascii_case(value),
        ([] | [Piece::Text(_)], Comparison::Set) => is_set(text),
        ([] | [Piece::Text(_)], Comparison::Found(pattern)) => find(pattern, text)?,
        ([] | [Piece::Text(_)], Comparison::FoundFilled(pattern)) => {
            !text.is_empty() && find(pattern, text)?
        }
        (_, Comparison::Set) => return joined_is_set(text, constants, maps),
        _ => {
            return Err(format!(
                "the value of {text:?} is only known during a request"
            ));
        }
    };
    Ok(match holds {
        true => Formula::always(),
        false => Formula::never(),
    })
}

/// Maximum number of variables in a joined text; each two of them are a part of the condition.
const JOINED_MAX: usize = 8;

/// The condition that a text with variables is neither empty nor 0: one of its parts is set, or two are not empty.
fn joined_is_set(text: &str, constants: &Constants, maps: &[Map<'_>]) -> Result<Formula, String> {
    let (names, literal) = (names(text), literal(text));
    if is_set(&literal) {
        return Ok(Formula::always());
    }
    // A variable with a constant was set after this text, which has its earlier value.
    let is_later = |name: &String| value_of(name, constants).is_some();
    if names.len() > JOINED_MAX || names.iter().any(is_later) {
        return Err(format!(
            "Onrush has no condition on the whole value {text:?}"
        ));
    }
    let (mut any, mut filled) = (Vec::new(), Vec::new());
    for name in &names {
        let set = compare(name, &Comparison::Set, constants, maps)?;
        if set == Formula::always() || set == Formula::Atom(Atom::Path(Path::Any)) {
            return Ok(Formula::always());
        }
        any.push(set);
        // Matches every character, the end of a line included.
        let one = Comparison::Found("[^0]|0".to_owned());
        let one = compare(name, &one, constants, maps)?;
        any.extend(
            filled
                .iter()
                .cloned()
                .map(|other| Formula::All(vec![other, one.clone()])),
        );
        filled.push(one);
    }
    Ok(Formula::Any(match literal.is_empty() {
        true => any,
        false => filled,
    }))
}

/// Whether `if` takes the text for true.
fn is_set(text: &str) -> bool {
    !text.is_empty() && text != "0"
}

/// Checks that Onrush accepts the regular expression.
fn check(atom: Atom) -> Result<Atom, String> {
    match pattern_of(&atom) {
        Some(pattern) => Path::pattern(pattern).map(|_| atom),
        None => Ok(atom),
    }
}

/// Checks the regular expressions of all conditions in a formula. Compiling one takes time, and the spellings of a name
/// have the same one.
fn check_all(formula: &Formula) -> Result<(), String> {
    let mut patterns = BTreeSet::new();
    let mut waiting = vec![formula];
    while let Some(formula) = waiting.pop() {
        match formula {
            Formula::Atom(atom) => patterns.extend(pattern_of(atom)),
            Formula::Not(inner) => waiting.push(inner),
            Formula::All(parts) | Formula::Any(parts) => waiting.extend(parts),
            Formula::Unknown(_) => {}
        }
    }
    let mut patterns = patterns.into_iter();
    patterns.try_for_each(|pattern| Path::pattern(pattern).map(drop))
}

fn pattern_of(atom: &Atom) -> Option<&str> {
    match atom {
        Atom::Path(Path::Pattern(pattern))
        | Atom::Header(_, Test::Matches(pattern))
        | Atom::Query(_, Test::Matches(pattern)) => Some(pattern),
        _ => None,
    }
}

fn host(wanted: &Comparison<'_>) -> Result<Atom, String> {
    match wanted {
        Comparison::Equal(host) | Comparison::Alike(host) => host_named(host),
        // A host is never empty.
        Comparison::Found(pattern) | Comparison::FoundFilled(pattern) => {
            Ok(header("Host", Test::Matches(of_caseless_host(pattern))))
        }
        Comparison::Set => Ok(header("Host", Test::Present)),
    }
}

fn host_named(host: &str) -> Result<Atom, String> {
    let name = host.to_ascii_lowercase();
    match onrush_config::value::parse_host(&name) {
        Ok(_) => Ok(Atom::Host(vec![name])),
        Err(invalid) => Err(invalid.to_string()),
    }
}

fn header(name: &str, test: Test) -> Atom {
    Atom::Header(name.to_owned(), test)
}

fn scheme(wanted: &Comparison<'_>, names: &[&str; 2]) -> Result<Formula, String> {
    let mut any = Vec::new();
    for (scheme, name) in [Scheme::Http, Scheme::Https].into_iter().zip(names) {
        let is_wanted = match wanted {
            Comparison::Equal(value) => name == value,
            Comparison::Alike(value) => name.eq_ignore_ascii_case(value),
            Comparison::Set => is_set(name),
            Comparison::Found(pattern) => find(pattern, name)?,
            Comparison::FoundFilled(pattern) => !name.is_empty() && find(pattern, name)?,
        };
        if is_wanted {
            any.push(Formula::Atom(Atom::Scheme(scheme)));
        }
    }
    Ok(Formula::Any(any))
}

fn path(wanted: &Comparison<'_>) -> Atom {
    Atom::Path(match wanted {
        Comparison::Equal(path) => Path::Exact((*path).to_owned()),
        Comparison::Alike(path) => Path::Pattern(format!("(?i)^{}$", regex::escape(path))),
        Comparison::Found(pattern) | Comparison::FoundFilled(pattern) => {
            Path::Pattern(pattern.clone())
        }
        Comparison::Set => Path::Any,
    })
}
