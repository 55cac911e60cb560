//! One table of a configuration file: its keys taken by name and kind, and every other key reported
//! with what it was probably meant to be.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Findings, Span};
use crate::nearest::nearest;

/// A table, its name in sentences and the keys it may have.
pub(crate) struct Section<'file, 'text> {
    pub(crate) name: &'file str,
    pub(crate) span: Span,
    pub(crate) table: &'file DeTable<'text>,
    pub(crate) keys: &'file [&'static str],
    /// Keys that mean something in a version to come: a user of today is told so rather than sent
    /// to look for a typo.
    pub(crate) later: &'file [&'static str],
}

/// Keys of the file itself that are often written too far down: in TOML, what follows a [section]
/// belongs to it.
const TOP: [&str; 3] = ["threads", "cpus", "io"];

impl Section<'_, '_> {
    pub(crate) fn report_unknown_keys(&self, findings: &mut Findings<'_>) {
        for (key, _) in in_order(self.table) {
            if !self.keys.contains(&key.get_ref().as_str()) {
                findings.error(key.span(), self.why_not(key.get_ref()));
            }
        }
    }

    /// What is wrong with a key that this table cannot have, and what may have been meant.
    fn why_not(&self, key: &str) -> String {
        let name = self.name;
        if self.later.contains(&key) {
            return format!("key {key:?} in {name} is not supported yet in this version");
        }
        if TOP.contains(&key) {
            return format!(
                "key {key:?} does not belong in {name}; expected at the top of the file, before the first [section]"
            );
        }
        match nearest(key, self.keys.iter().copied()) {
            Some(near) => format!("unknown key {key:?} in {name}; nearest: {near:?}"),
            None => {
                let known = self.keys.join(", ");
                format!("unknown key {key:?} in {name}; expected one of: {known}")
            }
        }
    }

    /// Reports the lack of a key that this table must have.
    pub(crate) fn require(&self, key: &str, expected: &str, findings: &mut Findings<'_>) {
        if !self.is_meant(key) {
            let message = format!("{} has no {key}: expected {expected}", self.name);
            findings.error(self.span.clone(), message);
        }
    }

    /// Whether the key is there, or was meant to be and is misspelt: one mistake, one finding.
    pub(crate) fn is_meant(&self, key: &str) -> bool {
        let is_misspelt = |written: &str| {
            !self.keys.contains(&written)
                && nearest(written, self.keys.iter().copied()) == Some(key)
        };
        self.table
            .keys()
            .any(|written| written.get_ref() == key || is_misspelt(written.get_ref()))
    }

    pub(crate) fn report_kind(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        expected: &str,
        findings: &mut Findings<'_>,
    ) {
        let (name, kind) = (self.name, kind_of(value));
        let message = format!("{key} in {name} is {kind}: expected {expected}");
        findings.error(first_of(value), message);
    }

    pub(crate) fn text(
        &self,
        key: &str,
        expected: &str,
        findings: &mut Findings<'_>,
    ) -> Option<Spanned<String>> {
        let value = self.table.get(key)?;
        match value.get_ref() {
            DeValue::String(text) => Some(Spanned::new(value.span(), text.to_string())),
            _ => {
                self.report_kind(key, value, expected, findings);
                None
            }
        }
    }

    /// A whole number, also out of every range, so that the range's own message can be given.
    pub(crate) fn number(
        &self,
        key: &str,
        expected: &str,
        findings: &mut Findings<'_>,
    ) -> Option<Spanned<i128>> {
        let value = self.table.get(key)?;
        let Some(number) = value.get_ref().as_integer() else {
            self.report_kind(key, value, expected, findings);
            return None;
        };
        let number = i128::from_str_radix(number.as_str(), number.radix());
        if number.is_err() {
            let message = format!("{key} in {} is too large: expected {expected}", self.name);
            findings.error(value.span(), message);
        }
        Some(Spanned::new(value.span(), number.ok()?))
    }

    /// A whole number, or text that may say the same (`"auto"`, `"10k"`, `"0-3"`), as text.
    pub(crate) fn number_or_text(
        &self,
        key: &str,
        expected: &str,
        findings: &mut Findings<'_>,
    ) -> Option<Spanned<String>> {
        let value = self.table.get(key)?;
        if value.get_ref().is_integer() {
            let number = self.number(key, expected, findings)?;
            return Some(Spanned::new(number.span(), number.get_ref().to_string()));
        }
        self.text(key, expected, findings)
    }

    pub(crate) fn truth(&self, key: &str, findings: &mut Findings<'_>) -> Option<bool> {
        let value = self.table.get(key)?;
        let truth = value.get_ref().as_bool();
        if truth.is_none() {
            self.report_kind(key, value, "true or false", findings);
        }
        truth
    }

    /// The tables written `[[key]]`, in their order.
    pub(crate) fn tables<T>(
        &self,
        key: &str,
        count_max: usize,
        findings: &mut Findings<'_>,
        read: fn(&DeTable<'_>, Span, &mut Findings<'_>) -> T,
    ) -> Vec<T> {
        let Some(value) = self.table.get(key) else {
            return Vec::new();
        };
        let written = || format!("{key} is written [[{key}]], once for each");
        let DeValue::Array(array) = value.get_ref() else {
            findings.error(first_of(value), written());
            return Vec::new();
        };
        if array.len() > count_max {
            let count = array.len();
            let message = format!("there are {count} [[{key}]]: expected at most {count_max}");
            findings.error(array[count_max].span(), message);
        }
        let mut all = Vec::new();
        for value in array.iter().take(count_max) {
            match value.get_ref() {
                DeValue::Table(table) => all.push(read(table, value.span(), findings)),
                _ => findings.error(value.span(), written()),
            }
        }
        all
    }
}

/// The table, or a finding.
pub(crate) fn expect_table<'file, 'text>(
    what: &str,
    value: &'file Spanned<DeValue<'text>>,
    example: &str,
    findings: &mut Findings<'_>,
) -> Option<&'file DeTable<'text>> {
    let table = value.get_ref().as_table();
    if table.is_none() {
        let kind = kind_of(value);
        let message = format!("{what} is {kind}: expected a table such as {example}");
        findings.error(first_of(value), message);
    }
    table
}

/// One text, or a list of them.
pub(crate) fn read_texts(
    what: &str,
    value: &Spanned<DeValue<'_>>,
    expected: &str,
    findings: &mut Findings<'_>,
) -> Option<Vec<Spanned<String>>> {
    let values = match value.get_ref() {
        DeValue::Array(array) => array.iter().collect(),
        _ => vec![value],
    };
    let mut texts = Vec::new();
    for value in values {
        let Some(text) = value.get_ref().as_str() else {
            let kind = kind_of(value);
            findings.error(
                first_of(value),
                format!("{what} is {kind}: expected {expected}"),
            );
            return None;
        };
        texts.push(Spanned::new(value.span(), text.to_owned()));
    }
    Some(texts)
}

/// The entries in the order they were written; the parser keeps them in that of the alphabet.
pub(crate) fn in_order<'file, 'text>(
    table: &'file DeTable<'text>,
) -> Vec<(Spanned<String>, &'file Spanned<DeValue<'text>>)> {
    let mut entries: Vec<_> = table
        .iter()
        .map(|(key, value)| (Spanned::new(key.span(), key.get_ref().to_string()), value))
        .collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// The place of a value; that of its first element when it is a list of tables, which has none of
/// its own.
pub(crate) fn first_of(value: &Spanned<DeValue<'_>>) -> Span {
    match value.get_ref() {
        DeValue::Array(array) if value.span().is_empty() => {
            array.iter().next().map_or(value.span(), Spanned::span)
        }
        _ => value.span(),
    }
}

pub(crate) fn kind_of(value: &Spanned<DeValue<'_>>) -> &'static str {
    match value.get_ref() {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
