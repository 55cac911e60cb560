//! Conditions on `$request_method`.

use super::field::Comparison;
use crate::expression::condition::Atom;
use crate::expression::decide::Formula;
use crate::expression::pcre::find;

/// The methods of nginx, without TRACE and CONNECT, which never reach a location. Expressions are compared with each of
/// them.
const KNOWN: [&str; 14] = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "OPTIONS",
    "PATCH",
    "PROPFIND",
    "PROPPATCH",
    "MKCOL",
    "COPY",
    "MOVE",
    "LOCK",
    "UNLOCK",
];

/// The condition that the method has the wanted value.
pub(super) fn method(wanted: &Comparison<'_>) -> Result<Formula, String> {
    let name = match wanted {
        Comparison::Equal(name) => (*name).to_owned(),
        Comparison::Alike(name) => name.to_ascii_uppercase(),
        Comparison::Found(pattern) | Comparison::FoundFilled(pattern) => return found(pattern),
        Comparison::Set => return Ok(Formula::always()),
    };
    match is_method(&name) {
        true => Ok(one_of(vec![name])),
        false => Err(format!("{name:?} is not a method")),
    }
}

/// The condition that an expression matches the method. The result for a method outside of [`KNOWN`] is unknown.
fn found(pattern: &str) -> Result<Formula, String> {
    if let Some(names) = listed(pattern) {
        return Ok(one_of(names));
    }
    let (mut found, mut others) = (Vec::new(), Vec::new());
    for name in KNOWN {
        let list = match find(pattern, name)? {
            true => &mut found,
            false => &mut others,
        };
        list.push(name.to_owned());
    }
    let is_unknown = Formula::All(vec![
        Formula::Not(Box::new(one_of(others))),
        Formula::Unknown(
            "the expression can only be compared with the methods that nginx knows".to_owned(),
        ),
    ]);
    Ok(match found.is_empty() {
        true => is_unknown,
        false => Formula::Any(vec![one_of(found), is_unknown]),
    })
}

/// The methods of an expression that lists whole names, such as `^(GET|POST)$`.
fn listed(pattern: &str) -> Option<Vec<String>> {
    let names = pattern.strip_prefix('^')?.strip_suffix('$')?;
    let inner = names
        .strip_prefix('(')
        .and_then(|names| names.strip_suffix(')'));
    let names: Vec<String> = match inner {
        Some(names) => names.split('|').map(str::to_owned).collect(),
        None => vec![names.to_owned()],
    };
    names.iter().all(|name| is_method(name)).then_some(names)
}

fn one_of(names: Vec<String>) -> Formula {
    match names.is_empty() {
        true => Formula::never(),
        false => Formula::Atom(Atom::Method(names)),
    }
}

fn is_method(name: &str) -> bool {
    !name.is_empty() && name != "CONNECT" && name.bytes().all(|byte| byte.is_ascii_uppercase())
}
