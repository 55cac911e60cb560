//! Values of a sample as one regular expression.

use super::fetch::{Case, Fetch, Method};
use crate::condition::network;
use crate::path::has_top_level_choice;

/// A regular expression for a field whose parts between commas are compared one by one.
pub(super) fn pattern_of_listed(fetch: &Fetch, values: &[String]) -> Result<String, String> {
    const BEGIN: &str = "(?:^|,)[ \\t]*";
    const END: &str = "[ \\t]*(?:,|$)";
    let texts: Vec<String> = values.iter().map(|value| regex::escape(value)).collect();
    let any = format!("(?:{})", texts.join("|"));
    let is_network = |value: &String| value.contains('/') && network(value).is_some();
    let pattern = match fetch.method {
        _ if values.is_empty() => return Err("expected a value to compare with".to_owned()),
        Method::Same if values.iter().any(is_network) => {
            return Err("Onrush does not look for networks in fields".to_owned());
        }
        Method::Same => format!("{BEGIN}{any}{END}"),
        Method::Begin => format!("{BEGIN}{any}"),
        Method::End => format!("{any}{END}"),
        Method::Pattern => {
            let parts: Option<Vec<String>> =
                values.iter().map(|value| part_pattern(value)).collect();
            let parts = parts.ok_or_else(|| {
                "Onrush looks at the whole field, and HAProxy at each part between commas"
                    .to_owned()
            })?;
            parts.join("|")
        }
        _ => return one_pattern(fetch, values),
    };
    Ok(match fetch.case {
        Case::Differs => pattern,
        Case::Ignored => format!("(?i){pattern}"),
    })
}

/// A regular expression for one part between commas, as one for the whole field.
fn part_pattern(pattern: &str) -> Option<String> {
    let (begin, rest) = match pattern.strip_prefix('^') {
        Some(rest) => ("(?:^|,)[ \\t]*", rest),
        None => ("", pattern),
    };
    let (rest, end) = match rest.strip_suffix('$') {
        Some(rest) if !rest.ends_with('\\') => (rest, "[ \\t]*(?:,|$)"),
        _ => (rest, ""),
    };
    let is_anchored = !begin.is_empty() || !end.is_empty();
    if is_anchored && has_top_level_choice(rest) {
        return None;
    }
    let mut part = String::new();
    let mut letters = rest.chars();
    let mut is_class = false;
    while let Some(letter) = letters.next() {
        part.push(letter);
        match letter {
            '\\' => part.extend(letters.next()),
            '[' => is_class = true,
            ']' => is_class = false,
            '^' if is_class && part.ends_with("[^") => part.push(','),
            '^' | '$' if !is_class => return None,
            '.' if !is_class => {
                part.pop();
                part += "[^,]";
            }
            _ => {}
        }
    }
    Some(format!("{begin}(?:{part}){end}"))
}

/// A regular expression that any of the values fulfils.
pub(super) fn one_pattern(fetch: &Fetch, values: &[String]) -> Result<String, String> {
    let one = |value: &String| {
        let text = regex::escape(value);
        match fetch.method {
            Method::Same => format!("^{text}$"),
            Method::Begin => format!("^{text}"),
            Method::End => format!("{text}$"),
            Method::Part => text,
            Method::Pattern => value.clone(),
            Method::Directory => {
                // Paths begin with a slash.
                format!("/{}(/|$)", regex::escape(value.trim_matches('/')))
            }
            Method::Domain => {
                format!(
                    "(^|[./:?]){}([./:?]|$)",
                    regex::escape(value.trim_matches('.'))
                )
            }
            Method::Found => String::new(),
        }
    };
    let pattern = match values {
        [] => return Err("expected a value to compare with".to_owned()),
        [value] => one(value),
        several => {
            let several: Vec<String> = several
                .iter()
                .map(|value| format!("(?:{})", one(value)))
                .collect();
            format!("({})", several.join("|"))
        }
    };
    Ok(match fetch.case {
        Case::Differs => pattern,
        Case::Ignored => format!("(?i){pattern}"),
    })
}
