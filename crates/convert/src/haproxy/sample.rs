//! Translates ACLs into conditions on paths, hosts, fields and clients.

use super::fetch::{
    Case, ComparedPart, Fetch, Method, SampleState, SampleValue, Subject, Truth, fetch, method,
};
use super::raw_path::{Effect, with_unknown_part};
use super::request_changes::{Part, RequestChanges};
use super::value_pattern::{one_pattern, pattern_of_cookie, pattern_of_listed};
use super::work::Context;
use crate::expression::condition::{Atom, Path, Scheme, Test, network};
use crate::expression::decide::Formula;
use crate::expression::dialect::translate;
use crate::expression::pcre::{literals_of, of_host};

/// The condition of an ACL, given the words after its name or between braces.
pub(super) fn formula(
    work: &Context<'_, '_>,
    words: &[String],
    changed: &RequestChanges,
    effect: Effect,
) -> Result<Formula, String> {
    let Some((name, rest)) = words.split_first() else {
        return Err("expected a sample such as path_beg".to_owned());
    };
    let mut fetch = fetch(name)?;
    let mut values: Vec<String> = Vec::new();
    let mut rest = rest.iter();
    let mut are_flags = true;
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-i" if are_flags => fetch.case = Case::Ignored,
            "-n" | "-u" if are_flags => drop((word == "-u").then(|| rest.next())),
            "-m" if are_flags => {
                fetch.method = method(rest.next().map_or("", String::as_str))?;
                let is_truth = matches!(fetch.subject, Subject::Scheme | Subject::Truth(_));
                if is_truth && fetch.method == Method::Same {
                    return Err("Onrush does not compare Booleans as strings".to_owned());
                }
            }
            "-f" if are_flags => {
                let file = rest.next().map_or("", String::as_str);
                values.extend(work.lines_of(file)?);
            }
            "-M" if are_flags => return Err("Onrush has no maps".to_owned()),
            "--" if are_flags => are_flags = false,
            _ => {
                are_flags = false;
                values.push(word.clone());
            }
        }
    }
    if fetch.subject == Subject::Port && changed.is_unclear(Part::Port) {
        return Err("an earlier rule changes the port".to_owned());
    }
    fetch.ignore_converted_case(&values)?;
    let written = values.clone();
    if fetch.method == Method::Pattern {
        let carried = values.iter().map(|value| translate(value));
        values = carried.collect::<Result<_, _>>()?;
    }
    let formula = compare(&fetch, &values, &work.listeners)?;
    let formula = match fetch.of {
        SampleState::Current => changed.on_original(formula),
        SampleState::Received => formula,
    };
    Ok(with_unknown_part(formula, effect, &fetch, &written))
}

/// Whether an ACL of these words tests the server name of the TLS handshake.
pub(super) fn is_server_name(words: &[String]) -> bool {
    let name = words.first().and_then(|name| fetch(name).ok());
    name.is_some_and(|fetch| fetch.subject == Subject::ServerName)
}

/// Difference between an ACL of these words and its condition.
pub(super) fn difference(words: &[String]) -> Option<&'static str> {
    let name = words.first()?;
    let fetch = fetch(name).ok()?;
    let converters = ["host_only", "field(1,:)", "word(1,:)"];
    let is_bare = !converters.iter().any(|part| name.contains(part));
    match fetch.subject {
        Subject::Host if is_bare && name.contains("hdr") && fetch.counts != SampleValue::Number => {
            Some(
                "the port in Host is not compared, and case is ignored; HAProxy compares the port, and case without -i",
            )
        }
        Subject::ServerName => Some(
            "the name in Host is compared; HAProxy compares the name in the TLS handshake (SNI)",
        ),
        Subject::Query(_) => Some(
            "parameters are compared decoded, and any of several values may match; HAProxy also separates them at ;",
        ),
        _ => None,
    }
}

fn compare(fetch: &Fetch, values: &[String], listeners: &[String]) -> Result<Formula, String> {
    if fetch.method == Method::Found && is_always_there(fetch) {
        return Ok(Formula::always());
    }
    if fetch.counts == SampleValue::Number {
        if !matches!(fetch.method, Method::Same | Method::Number) {
            return Err("Onrush can test whether a field exists, but cannot count it".to_owned());
        }
        let test = count(values)?;
        return Ok(Formula::Atom(field(&fetch.subject, test)));
    }
    let atom = match &fetch.subject {
        Subject::Truth(truth) => {
            return Ok(match is_true(fetch, values)? == (*truth == Truth::Always) {
                true => Formula::always(),
                false => Formula::never(),
            });
        }
        Subject::Scheme => Atom::Scheme(match is_true(fetch, values)? {
            true => Scheme::Https,
            false => Scheme::Http,
        }),
        Subject::Method if fetch.method != Method::Same || fetch.case == Case::Ignored => {
            return Err(
                "methods can only be compared as a whole and in capital letters".to_owned(),
            );
        }
        Subject::Method => Atom::Method(methods(values)?),
        Subject::Client
            if values.is_empty() || !matches!(fetch.method, Method::Same | Method::Address) =>
        {
            return Err("expected a network as the value".to_owned());
        }
        Subject::Client => {
            let networks = values
                .iter()
                .map(|value| network(value).ok_or_else(|| format!("{value:?} is not a network")));
            Atom::From(networks.collect::<Result<_, _>>()?)
        }
        Subject::Port if !matches!(fetch.method, Method::Same | Method::Number) => {
            return Err("expected a port as the value".to_owned());
        }
        Subject::Port => return ports(listeners, values),
        Subject::Path => return path(fetch, values),
        Subject::Host => return host(fetch, values),
        Subject::ServerName => {
            let https = Formula::Atom(Atom::Scheme(Scheme::Https));
            return Ok(Formula::All(vec![https, host(fetch, values)?]));
        }
        Subject::Header(_) | Subject::Query(_) => {
            let test = match (fetch.method, fetch.case, values) {
                (Method::Found, _, _) => Test::Present,
                (Method::Same, Case::Differs, [one]) if fetch.values == ComparedPart::Whole => {
                    Test::Is(one.clone())
                }
                _ if fetch.values == ComparedPart::Listed => {
                    Test::Matches(pattern_of_listed(fetch, values)?)
                }
                _ => Test::Matches(one_pattern(fetch, values)?),
            };
            field(&fetch.subject, test)
        }
        Subject::Cookie(name) => header(
            "Cookie",
            Test::Matches(pattern_of_cookie(fetch, name, values)?),
        ),
    };
    check(atom).map(Formula::Atom)
}

/// Whether every request has the sample.
fn is_always_there(fetch: &Fetch) -> bool {
    let may_be_missing = matches!(
        fetch.subject,
        Subject::Host
            | Subject::ServerName
            | Subject::Header(_)
            | Subject::Query(_)
            | Subject::Cookie(_)
    );
    fetch.counts == SampleValue::Number || !may_be_missing
}

/// Whether an ACL on a Boolean holds if the sample is true. HAProxy ignores the values unless it compares numbers.
fn is_true(fetch: &Fetch, values: &[String]) -> Result<bool, String> {
    let words: Vec<&str> = values.iter().map(String::as_str).collect();
    match (fetch.method, &words[..]) {
        (Method::Same | Method::Boolean, _) => Ok(true),
        (Method::Number, ["1"] | ["eq", "1"] | ["ge", "1"] | ["gt", "0"]) => Ok(true),
        (Method::Number, ["0"] | ["eq", "0"] | ["lt", "1"] | ["le", "0"]) => Ok(false),
        _ => Err("expected 0 or 1 as the value".to_owned()),
    }
}

/// The condition that a listener has one of these ports: numbers and ranges such as `8000:8999`, with optional
/// operators.
fn ports(listeners: &[String], values: &[String]) -> Result<Formula, String> {
    let number = |text: &str| {
        let number = text.parse::<u16>();
        number.map_err(|_| format!("{text:?} is not a port"))
    };
    let mut ranges = Vec::new();
    let mut operator = "eq";
    for value in values {
        if matches!(value.as_str(), "eq" | "ge" | "gt" | "le" | "lt") {
            operator = value;
            continue;
        }
        ranges.push(match (operator, value.split_once(':')) {
            ("eq", Some((first, last))) => (number(first)?, number(last)?),
            ("eq", None) => (number(value)?, number(value)?),
            ("ge", None) => (number(value)?, u16::MAX),
            ("gt", None) => (number(value)?.saturating_add(1), u16::MAX),
            ("le", None) => (0, number(value)?),
            ("lt", None) => (0, number(value)?.saturating_sub(1)),
            _ => return Err(format!("{value:?} is not a port")),
        });
    }
    let is_meant = |listener: &&String| {
        // A Unix socket counts as port 0.
        let port = listener
            .rsplit_once(':')
            .and_then(|(_, port)| port.parse().ok());
        let port: u16 = port.unwrap_or(0);
        let mut ranges = ranges.iter();
        ranges.any(|(first, last)| (*first..=*last).contains(&port))
    };
    let meant: Vec<String> = listeners.iter().filter(is_meant).cloned().collect();
    Ok(match meant.len() {
        0 => Formula::never(),
        count if count == listeners.len() => Formula::always(),
        _ => Formula::Atom(Atom::Listener(meant)),
    })
}

fn header(name: &str, test: Test) -> Atom {
    Atom::Header(name.to_owned(), test)
}

fn field(subject: &Subject, test: Test) -> Atom {
    match subject {
        Subject::Query(name) => Atom::Query(name.clone(), test),
        Subject::Header(name) => header(name, test),
        _ => header("Host", test),
    }
}

/// Checks that Onrush accepts the regular expression.
fn check(atom: Atom) -> Result<Atom, String> {
    let pattern = match &atom {
        Atom::Path(Path::Pattern(pattern)) => pattern,
        Atom::Header(_, Test::Matches(pattern)) | Atom::Query(_, Test::Matches(pattern)) => pattern,
        _ => return Ok(atom),
    };
    Path::pattern(pattern).map(|_| atom)
}

/// Parses a comparison of a count, such as `gt 0` or `eq 0`.
fn count(values: &[String]) -> Result<Test, String> {
    let words: Vec<&str> = values.iter().map(String::as_str).collect();
    match words[..] {
        ["gt", "0"] | ["ge", "1"] => Ok(Test::Present),
        ["0"] | ["eq", "0"] | ["lt", "1"] => Ok(Test::Absent),
        _ => Err("Onrush can test whether a field exists, but cannot count it".to_owned()),
    }
}

fn methods(values: &[String]) -> Result<Vec<String>, String> {
    let is_method = |name: &&String| {
        !name.is_empty() && *name != "CONNECT" && name.bytes().all(|byte| byte.is_ascii_uppercase())
    };
    // CONNECT requests never reach a route.
    let names: Vec<String> = values
        .iter()
        .filter(|name| *name != "CONNECT")
        .cloned()
        .collect();
    match !names.is_empty() && names.iter().all(|name| is_method(&name)) {
        true => Ok(names),
        false => Err(
            "methods must be in capital letters, and CONNECT is refused before routes".to_owned(),
        ),
    }
}

/// More values than this become one expression. Separate conditions on literal paths can be combined with other
/// conditions, expressions often cannot.
const PATHS_MAX: usize = 8;

fn path(fetch: &Fetch, values: &[String]) -> Result<Formula, String> {
    if matches!(
        fetch.method,
        Method::Address | Method::Boolean | Method::Number
    ) {
        return Err("paths can only be compared as strings".to_owned());
    }
    if fetch.values == ComparedPart::WithQuery {
        return target(fetch, values);
    }
    let is_plain = fetch.case == Case::Differs && values.len() <= PATHS_MAX;
    let one = |value: &String| match fetch.method {
        Method::Same => Some(Path::Exact(value.clone())),
        Method::Begin => Some(Path::Prefix(value.clone())),
        Method::End if values.len() == 1 => Some(Path::Suffix(value.clone())),
        Method::Part if values.len() == 1 => Some(Path::Contains(value.clone())),
        _ => None,
    };
    let paths: Option<Vec<Path>> = values.iter().map(one).collect();
    let paths = match paths.filter(|_| is_plain) {
        Some(paths) => paths,
        None => vec![Path::pattern(&one_pattern(fetch, values)?)?],
    };
    let is_bad = |letter: char| matches!(letter, '?' | '#' | ' ') || letter.is_control();
    let mut any = Vec::new();
    for path in paths {
        match &path {
            Path::Exact(text) | Path::Prefix(text) if text.contains('?') => {
                return Err("conditions on paths do not include the query".to_owned());
            }
            // No path can match.
            Path::Exact(text) | Path::Prefix(text)
                if !text.starts_with('/') || text.contains(is_bad) => {}
            _ => any.push(Formula::Atom(Atom::Path(path))),
        }
    }
    Ok(Formula::Any(any))
}

/// A condition on path and query, if it only concerns the start of the path.
fn target(fetch: &Fetch, values: &[String]) -> Result<Formula, String> {
    const WHY: &str = "Onrush has no condition on path and query together";
    let mut any = Vec::new();
    for value in values {
        let beginnings: Vec<String> = match (fetch.method, fetch.case) {
            (Method::Begin, Case::Differs) => vec![value.clone()],
            (Method::Pattern, Case::Differs) => {
                let literals = value.strip_prefix('^').and_then(literals_of);
                let literals = literals.ok_or_else(|| WHY.to_owned())?;
                literals.into_iter().map(String::from_iter).collect()
            }
            _ => return Err(WHY.to_owned()),
        };
        for beginning in beginnings {
            if beginning.contains('?') || !beginning.starts_with('/') {
                return Err(WHY.to_owned());
            }
            any.push(Formula::Atom(Atom::Path(Path::Prefix(beginning))));
        }
    }
    Ok(Formula::Any(any))
}

fn host(fetch: &Fetch, values: &[String]) -> Result<Formula, String> {
    let name = |value: &String| {
        let value = value.to_ascii_lowercase();
        let name = match fetch.method {
            Method::Same => value,
            Method::End if value.starts_with('.') => format!("*{value}"),
            _ => return None,
        };
        onrush_config::value::parse_host(&name).ok().map(|_| name)
    };
    if fetch.method == Method::Found {
        return Ok(Formula::Atom(header("Host", Test::Present)));
    }
    let names: Option<Vec<String>> = values.iter().map(name).collect();
    if let Some(names) = names {
        return Ok(Formula::Atom(Atom::Host(names)));
    }
    let pattern = of_host(&one_pattern(fetch, values)?);
    let pattern = match pattern.starts_with("(?i)") {
        true => pattern,
        false => format!("(?i){pattern}"),
    };
    check(header("Host", Test::Matches(pattern))).map(Formula::Atom)
}
