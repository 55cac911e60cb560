//! Combines the values of an ACL into one regular expression.

use std::net::Ipv4Addr;

use super::fetch::{Case, Fetch, Method, Subject};
use crate::expression::parts::ElementDelimiters;

const BEGIN: &str = "(?:^|,)[ \\t]*";
const END: &str = "[ \\t]*(?:,|$)";

/// An expression for a field whose comma-separated elements are compared one by one.
pub(super) fn pattern_of_listed(fetch: &Fetch, values: &[String]) -> Result<String, String> {
    let whole = || {
        "Onrush compares the whole field, HAProxy each element of a comma-separated list".to_owned()
    };
    if values.is_empty() {
        return Err("expected a value to compare with".to_owned());
    }
    let has_comma = values.iter().any(|value| value.contains(','));
    if has_comma && fetch.method != Method::Pattern {
        return Err(whole());
    }
    let any = |one: fn(&str) -> Option<String>| {
        let several: Option<Vec<String>> = values.iter().map(|value| one(value)).collect();
        let several = several.map(|several| format!("(?:{})", several.join("|")));
        several.ok_or_else(|| "expected a value to compare with".to_owned())
    };
    let same = |value: &str| Some(regex::escape(value));
    let pattern = match fetch.method {
        Method::Same => format!("{BEGIN}{}{END}", any(same)?),
        Method::Begin => format!("{BEGIN}{}", any(same)?),
        Method::End => format!("{}{END}", any(same)?),
        Method::Part => any(same)?,
        Method::Directory => format!("(?:{BEGIN}|[/?]){}(?:[/?]|{END})", any(directory)?),
        Method::Domain => format!("(?:{BEGIN}|[./:?]){}(?:[./:?]|{END})", any(domain)?),
        Method::Address => {
            let addresses: Option<Vec<String>> =
                values.iter().map(|value| address(value)).collect();
            let addresses = addresses.ok_or_else(|| {
                "Onrush cannot search fields for networks or IPv6 addresses".to_owned()
            })?;
            format!("{BEGIN}(?:{}){END}", addresses.join("|"))
        }
        Method::Pattern => {
            let parts = ElementDelimiters {
                separator: ',',
                begin: BEGIN,
                before: "",
                end: END,
            };
            let patterns = values.iter().map(|value| {
                let (flags, bare) = match value.strip_prefix("(?i)") {
                    Some(bare) => ("i", bare),
                    None => ("", value.as_str()),
                };
                let pattern = parts.pattern(bare)?;
                Some(match flags {
                    "" => pattern,
                    flags => format!("(?{flags}:{pattern})"),
                })
            });
            let patterns: Option<Vec<String>> = patterns.collect();
            patterns.ok_or_else(whole)?.join("|")
        }
        Method::Boolean | Method::Number | Method::Found => return Err(numbers()),
    };
    Ok(in_case(fetch.case, pattern))
}

/// An IPv4 address in the forms that HAProxy parses: with leading zeros, IPv4-mapped, and with a port.
fn address(value: &str) -> Option<String> {
    let address: Ipv4Addr = value.parse().ok()?;
    let numbers = address.octets().map(|number| format!("0*{number}"));
    let numbers = numbers.join("\\.");
    Some(format!("(?i:::ffff:)?{numbers}(?:[^0-9.,][^,]*)?"))
}

/// The value without the delimiters at its ends, which HAProxy strips; none if nothing is left.
fn directory(value: &str) -> Option<String> {
    between(value, &['/', '?'])
}

fn domain(value: &str) -> Option<String> {
    between(value, &['/', '?', '.', ':'])
}

fn between(value: &str, delimiters: &[char]) -> Option<String> {
    let bare = value.trim_matches(delimiters);
    (!bare.is_empty()).then(|| regex::escape(bare))
}

/// An expression for a cookie in its field, which HAProxy splits at semicolons and commas.
pub(super) fn pattern_of_cookie(
    fetch: &Fetch,
    name: &str,
    values: &[String],
) -> Result<String, String> {
    let begin = format!("(?:^|[;,])[ \\t]*{}[ \\t]*=[ \\t]*", regex::escape(name));
    if fetch.method == Method::Found {
        // HAProxy does not find a cookie if the field ends after the equals sign.
        return Ok(format!("{begin}[^ \\t]"));
    }
    let is_part = |value: &String| !value.contains([';', ',']);
    if values.is_empty() || !values.iter().all(is_part) {
        return Err("expected a cookie value without ; and ,".to_owned());
    }
    let values: Vec<String> = values.iter().map(|value| regex::escape(value)).collect();
    let flags = match fetch.case {
        Case::Differs => "",
        Case::Ignored => "i",
    };
    let pattern = format!("{begin}(?{flags}:{})", values.join("|"));
    match fetch.method {
        Method::Same => Ok(format!("{pattern}[ \\t]*(?:[;,]|$)")),
        Method::Begin => Ok(pattern),
        _ => Err("Onrush can only compare a cookie with a whole value or its start".to_owned()),
    }
}

/// An expression that matches if any of the values does.
pub(super) fn one_pattern(fetch: &Fetch, values: &[String]) -> Result<String, String> {
    let one = |value: &String| {
        let text = regex::escape(value);
        Ok(match fetch.method {
            Method::Same => format!("^{text}$"),
            Method::Begin => format!("^{text}"),
            Method::End => format!("{text}$"),
            Method::Part => text,
            Method::Pattern => value.clone(),
            // Paths begin with a slash.
            Method::Directory if fetch.subject == Subject::Path => {
                format!("/{}(/|$)", directory(value).ok_or_else(numbers)?)
            }
            Method::Directory => {
                format!("(^|[/?]){}([/?]|$)", directory(value).ok_or_else(numbers)?)
            }
            Method::Domain => format!("(^|[./:?]){}([./:?]|$)", domain(value).ok_or_else(numbers)?),
            Method::Address | Method::Boolean | Method::Number | Method::Found => {
                return Err(numbers());
            }
        })
    };
    let pattern = match values {
        [] => return Err("expected a value to compare with".to_owned()),
        [value] => one(value)?,
        several => {
            let several = several.iter().map(|value| {
                let pattern = one(value)?;
                Ok(format!("(?:{pattern})"))
            });
            let several: Vec<String> = several.collect::<Result<_, String>>()?;
            format!("({})", several.join("|"))
        }
    };
    Ok(in_case(fetch.case, pattern))
}

fn numbers() -> String {
    "Onrush compares strings, not numbers or addresses".to_owned()
}

fn in_case(case: Case, pattern: String) -> String {
    match case {
        Case::Differs => pattern,
        Case::Ignored => format!("(?i){pattern}"),
    }
}
