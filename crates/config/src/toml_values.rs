//! Types and places of written values, independent of their key.

use std::ops::RangeInclusive;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Diagnostics, Span};
use crate::plan::FilePath;
use crate::value::Invalid;

/// An integer; `None` for other types and for an overflow.
pub(crate) fn as_number(value: &Spanned<DeValue<'_>>) -> Option<i128> {
    let number = value.get_ref().as_integer()?;
    i128::from_str_radix(number.as_str(), number.radix()).ok()
}

/// Parses a string, or reports an error at its place.
pub(crate) fn parsed<T>(
    text: &Spanned<String>,
    parse: impl Fn(&str) -> Result<T, Invalid>,
    findings: &mut Diagnostics<'_>,
) -> Option<T> {
    match parse(text.get_ref()) {
        Ok(value) => Some(value),
        Err(invalid) => {
            findings.error(text.span(), invalid.to_string());
            None
        }
    }
}

/// Path in a string; a relative one is resolved against the directory of its file.
pub(crate) fn path_of(
    text: &Spanned<String>,
    example: &str,
    findings: &mut Diagnostics<'_>,
) -> Option<FilePath> {
    if text.get_ref().is_empty() || text.get_ref().contains('\0') {
        let message = format!("{:?} is not a path: expected {example}", text.get_ref());
        findings.error(text.span(), message);
        return None;
    }
    let path = findings.resolve(Path::new(text.get_ref()), &text.span());
    Some(FilePath::written(path, text.span()))
}

pub(crate) fn report_kind(
    what: &str,
    value: &Spanned<DeValue<'_>>,
    expected: &str,
    findings: &mut Diagnostics<'_>,
) {
    let kind = kind_of(value);
    findings.error(
        place_of(value),
        format!("{what} is {kind}: expected {expected}"),
    );
}

pub(crate) fn read_texts(
    what: &str,
    value: &Spanned<DeValue<'_>>,
    expected: &str,
    findings: &mut Diagnostics<'_>,
) -> Option<Vec<Spanned<String>>> {
    let mut texts = Vec::new();
    for value in one_or_list(value) {
        let Some(text) = value.get_ref().as_str() else {
            report_kind(what, value, expected, findings);
            return None;
        };
        texts.push(Spanned::new(value.span(), text.to_owned()));
    }
    Some(texts)
}

/// Items of a list; a value that is not a list counts as its only item.
pub(crate) fn one_or_list<'file, 'text>(
    value: &'file Spanned<DeValue<'text>>,
) -> Vec<&'file Spanned<DeValue<'text>>> {
    match value.get_ref() {
        DeValue::Array(array) => array.iter().collect(),
        _ => vec![value],
    }
}

/// Entries in the order of the text; the parser sorts them by name.
pub(crate) fn entries_in_order<'file, 'text>(
    table: &'file DeTable<'text>,
) -> Vec<(Spanned<String>, &'file Spanned<DeValue<'text>>)> {
    let mut entries: Vec<_> = table
        .iter()
        .map(|(key, value)| (Spanned::new(key.span(), key.get_ref().to_string()), value))
        .collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// Place of a value. A list of tables has none of its own, so that of its first item is used.
pub(crate) fn place_of(value: &Spanned<DeValue<'_>>) -> Span {
    match value.get_ref() {
        DeValue::Array(array) if value.span().is_empty() => {
            array.iter().next().map_or(value.span(), Spanned::span)
        }
        _ => value.span(),
    }
}

pub(crate) fn kind_of(value: &Spanned<DeValue<'_>>) -> &'static str {
    match value.get_ref() {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

pub(crate) fn is_true(value: &Spanned<DeValue<'_>>) -> bool {
    value.get_ref().as_bool() == Some(true)
}

pub(crate) fn is_false(value: &Spanned<DeValue<'_>>) -> bool {
    value.get_ref().as_bool() == Some(false)
}

pub(crate) fn as_text(value: &Spanned<DeValue<'_>>) -> Option<Spanned<String>> {
    let text = value.get_ref().as_str()?;
    Some(Spanned::new(value.span(), text.to_owned()))
}

pub(crate) fn in_range<T: TryFrom<u32>>(
    key: &str,
    number: Option<u32>,
    text: &Spanned<String>,
    range: &RangeInclusive<u32>,
    unit: &str,
    findings: &mut Diagnostics<'_>,
) -> Option<T> {
    let Some(number) = number.filter(|number| range.contains(number)) else {
        findings.error(
            text.span(),
            format!(
                "{key} {} is out of range: expected {}{unit} to {}{unit}",
                text.get_ref(),
                range.start(),
                range.end()
            ),
        );
        return None;
    };
    let number = T::try_from(number).ok();
    assert!(number.is_some(), "the range of {key} is one of its type");
    number
}
