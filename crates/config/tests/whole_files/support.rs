//! Helpers of the tests of whole files.

use std::path::Path;

use onrush_config::{Parsed, parse};

/// Parses a file as `onrush serve --config conf/onrush.toml` does.
pub(crate) fn parsed(text: &str) -> Parsed {
    match parse(text, Path::new("conf/onrush.toml")) {
        Ok(parsed) => parsed,
        Err(errors) => panic!("{text}\nis refused:\n{errors}"),
    }
}

/// Formats each error as `line:column: message`, without excerpts.
pub(crate) fn errors(text: &str) -> Vec<String> {
    match parse(text, Path::new("onrush.toml")) {
        Ok(parsed) => panic!("{text}\nis accepted as:\n{:?}", parsed.plan),
        Err(errors) => errors
            .iter()
            .map(|error| format!("{}:{}: {}", error.line, error.column, error.message))
            .collect(),
    }
}

/// Formats each warning as `line:column: message`.
pub(crate) fn warnings(text: &str) -> Vec<String> {
    parsed(text)
        .warnings
        .iter()
        .map(|warning| format!("{}:{}: {}", warning.line, warning.column, warning.message))
        .collect()
}

/// Cases: a text, and all messages about it.
pub(crate) type MessageCases = [(&'static str, &'static [&'static str])];

/// Checks that each text is refused with these messages; the parts that every file needs are appended.
pub(crate) fn check_errors(cases: &MessageCases) {
    check(cases, errors);
}

/// Checks that each text is accepted with these warnings.
pub(crate) fn check_warnings(cases: &MessageCases) {
    check(cases, warnings);
}

fn check(cases: &MessageCases, findings: fn(&str) -> Vec<String>) {
    let mut wrong = String::new();
    for (text, expected) in cases {
        let whole = format!("{text}\n[[route]]\npath = \"=/last\"\nsynthetic = true\n");
        let found = findings(&whole);
        if found != *expected {
            wrong +=
                &format!("{text}\n  is said to have {found:#?}\n  and not       {expected:#?}\n\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
