//! What the tests of whole files share.

use std::path::Path;

use onrush_config::{Parsed, parse};

/// As `onrush serve --config conf/onrush.toml` would.
pub(crate) fn parsed(text: &str) -> Parsed {
    match parse(text, Path::new("conf/onrush.toml")) {
        Ok(parsed) => parsed,
        Err(errors) => panic!("{text}\nis refused:\n{errors}"),
    }
}

/// `line:column: message` of each error, without the excerpts.
pub(crate) fn errors(text: &str) -> Vec<String> {
    match parse(text, Path::new("onrush.toml")) {
        Ok(parsed) => panic!("{text}\nis accepted as:\n{:?}", parsed.plan),
        Err(errors) => errors
            .iter()
            .map(|error| format!("{}:{}: {}", error.line, error.column, error.message))
            .collect(),
    }
}

/// The same of each warning.
pub(crate) fn warnings(text: &str) -> Vec<String> {
    parsed(text)
        .warnings
        .iter()
        .map(|warning| format!("{}:{}: {}", warning.line, warning.column, warning.message))
        .collect()
}

/// Cases: what is written, and everything said about it.
pub(crate) type Sentences = [(&'static str, &'static [&'static str])];

/// That each text is refused with its sentences. The cases are about one part of a file each; the
/// parts that any file needs come after it.
pub(crate) fn check_errors(cases: &Sentences) {
    check(cases, errors);
}

/// That each text is accepted with its warnings.
pub(crate) fn check_warnings(cases: &Sentences) {
    check(cases, warnings);
}

fn check(cases: &Sentences, findings: fn(&str) -> Vec<String>) {
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
