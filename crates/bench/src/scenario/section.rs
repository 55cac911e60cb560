//! Reads one table of an experiment file key by key, with the position of every mistake.
//!
//! Written by hand instead of derived: an error states the line, the expected value and the nearest valid key.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use onrush_measure::amount::{self, AmountError};
use onrush_measure::suggestion::suggestion;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::value::number;
use crate::limits::NAME_MAX;

/// An error in a file, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// File name as given.
    pub file: String,
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1, in characters.
    pub column: usize,
    /// The value found, and the expected one.
    pub message: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}:{}: {}",
            self.file, self.line, self.column, self.message
        )
    }
}

/// File name and text, for the position of mistakes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
}

impl Source<'_> {
    pub(crate) fn mistake(&self, at: Range<usize>, message: impl Into<String>) -> Mistake {
        let before = &self.text[..at.start.min(self.text.len())];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Mistake {
            file: self.file.into(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: message.into(),
        }
    }
}

/// A value with its position.
#[derive(Debug, Clone)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) span: Range<usize>,
}

/// A table whose keys are all known.
pub(crate) struct Section<'a> {
    pub(crate) source: Source<'a>,
    pub(crate) span: Range<usize>,
    table: &'a DeTable<'a>,
}

/// Checks that a name chosen by the user, to which other parts of the file refer, is not empty.
pub(crate) fn check_named(source: Source<'_>, what: &str, name: &At<&str>) -> Read<()> {
    if !name.value.is_empty() {
        return Ok(());
    }
    let said = format!("a {what} without a name: expected a name, by which other keys refer to it");
    Err(source.mistake(name.span.clone(), said))
}

/// A value, or the first mistake.
pub(crate) type Read<T> = Result<T, Mistake>;

impl<'a> Section<'a> {
    /// Opens a table. A key not in `keys` is a mistake; the error suggests the nearest one.
    pub(crate) fn open(
        source: Source<'a>,
        table: &'a DeTable<'a>,
        span: Range<usize>,
        keys: &[&str],
    ) -> Read<Section<'a>> {
        for key in table.keys() {
            let name: &str = key.get_ref();
            if !keys.contains(&name) {
                return Err(source.mistake(key.span(), unknown("key", name, keys)));
            }
        }
        Ok(Section {
            source,
            span,
            table,
        })
    }

    /// All keys with their positions, for tables with keys chosen by the user.
    pub(crate) fn names(table: &'a DeTable<'a>) -> Vec<At<&'a str>> {
        let mut names: Vec<_> = table
            .keys()
            .map(|key| At {
                value: key.get_ref().as_ref(),
                span: key.span(),
            })
            .collect();
        names.sort_by_key(|name| name.span.start);
        names
    }

    pub(crate) fn value(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.table.get(key)
    }

    pub(crate) fn missing(&self, key: &str, what: &str) -> Mistake {
        let said = format!("`{key}` is missing here: {what}");
        self.source.mistake(self.span.clone(), said)
    }

    fn wrong<T>(&self, value: &Spanned<DeValue<'_>>, expected: &str) -> Read<T> {
        let found = value.get_ref().type_str();
        Err(self
            .source
            .mistake(value.span(), format!("expected {expected}, found {found}")))
    }

    pub(crate) fn text(&self, key: &str) -> Read<Option<At<String>>> {
        let Some(value) = self.value(key) else {
            return Ok(None);
        };
        match value.get_ref().as_str() {
            Some(text) => Ok(Some(At {
                value: text.into(),
                span: value.span(),
            })),
            None => self.wrong(value, "a string in quotes"),
        }
    }

    pub(crate) fn texts(&self, key: &str) -> Read<Option<Vec<At<String>>>> {
        let Some(value) = self.value(key) else {
            return Ok(None);
        };
        let Some(array) = value.get_ref().as_array() else {
            return self.wrong(value, "a list of strings, [\"…\", \"…\"]");
        };
        let mut texts = Vec::new();
        for entry in array.iter() {
            match entry.get_ref().as_str() {
                Some(text) => texts.push(At {
                    value: text.to_owned(),
                    span: entry.span(),
                }),
                None => return self.wrong(entry, "a string in quotes"),
            }
        }
        Ok(Some(texts))
    }

    pub(super) fn flag(&self, key: &str) -> Read<Option<bool>> {
        self.value(key).map_or(Ok(None), |value| {
            let flag = value.get_ref().as_bool().map(Some);
            flag.map_or_else(|| self.wrong(value, "true or false"), Ok)
        })
    }

    /// An integer or a fraction.
    pub(crate) fn number(&self, key: &str) -> Read<Option<At<f64>>> {
        let Some(value) = self.value(key) else {
            return Ok(None);
        };
        match number(value.get_ref()) {
            Some(number) => Ok(Some(At {
                value: number,
                span: value.span(),
            })),
            None => self.wrong(value, "a number"),
        }
    }

    /// A share: `0.6` or `"60%"`.
    pub(crate) fn share(&self, key: &str) -> Read<Option<At<f64>>> {
        let is_text = |value: &Spanned<DeValue<'_>>| value.get_ref().is_str();
        if !self.value(key).is_some_and(is_text) {
            return self.number(key);
        }
        let share = |At { value, span }: At<String>| match amount::percent(&value) {
            Ok(percent) => Ok(At {
                value: percent / 100.0,
                span,
            }),
            Err(why) => Err(self.source.mistake(span, why.to_string())),
        };
        self.text(key)?.map(share).transpose()
    }

    /// An integer within bounds: `10_000` or `"10k"`.
    pub(crate) fn count(&self, key: &str, bounds: Range<u64>) -> Read<Option<u64>> {
        let Some(value) = self.value(key) else {
            return Ok(None);
        };
        let count = whole(value.get_ref(), amount::count);
        match count {
            Some(count) if bounds.contains(&count) => Ok(Some(count)),
            _ => self.wrong_text(
                value,
                &format!(
                    "a whole number from {} to {}",
                    bounds.start,
                    bounds.end.saturating_sub(1)
                ),
            ),
        }
    }

    /// `"250ms"`, `"10s"`, `"2m"`.
    pub(crate) fn duration(&self, key: &str, max: Duration) -> Read<Option<Duration>> {
        let Some(value) = self.value(key) else {
            return Ok(None);
        };
        let Some(text) = value.get_ref().as_str() else {
            return self.wrong_text(value, "a duration such as \"250ms\", \"10s\" or \"2m\"");
        };
        let said = match amount::duration(text) {
            Ok(duration) if duration <= max => return Ok(Some(duration)),
            Ok(_) => format!("expected at most {} s", max.as_secs()),
            Err(why) => why.to_string(),
        };
        Err(self.source.mistake(value.span(), said))
    }

    fn wrong_text<T>(&self, value: &Spanned<DeValue<'_>>, expected: &str) -> Read<T> {
        let found = &self.source.text[value.span()];
        let said = format!("expected {expected}, found `{found}`");
        Err(self.source.mistake(value.span(), said))
    }

    /// A nested table; the caller checks its keys.
    pub(crate) fn table(&self, key: &str) -> Read<Option<At<&'a DeTable<'a>>>> {
        let Some(value) = self.value(key) else {
            return Ok(None);
        };
        match value.get_ref().as_table() {
            Some(table) => Ok(Some(At {
                value: table,
                span: value.span(),
            })),
            None => self.wrong(value, "a table"),
        }
    }

    /// `[[key]]` tables, in file order.
    pub(crate) fn tables(&self, key: &str) -> Read<Vec<At<&'a DeTable<'a>>>> {
        let Some(value) = self.value(key) else {
            return Ok(Vec::new());
        };
        let Some(array) = value.get_ref().as_array() else {
            return self.wrong(value, &format!("tables written as [[{key}]]"));
        };
        let mut tables = Vec::new();
        for entry in array.iter() {
            match entry.get_ref().as_table() {
                Some(table) => tables.push(At {
                    value: table,
                    span: entry.span(),
                }),
                None => return self.wrong(entry, "a table"),
            }
        }
        Ok(tables)
    }

    /// A list of strings, numbers and booleans, as written.
    pub(super) fn values(&self, key: &str) -> Read<Option<Vec<At<String>>>> {
        let Some(value) = self.value(key) else {
            return Ok(None);
        };
        let Some(array) = value.get_ref().as_array() else {
            return self.wrong(value, "a list of values, [10, 100]");
        };
        let values = array.iter().map(|entry| self.written(entry));
        Ok(Some(values.collect::<Read<Vec<_>>>()?))
    }

    /// A string, a number or a boolean, as written.
    pub(super) fn single(&self, key: &str) -> Read<Option<At<String>>> {
        self.value(key).map(|value| self.written(value)).transpose()
    }

    fn written(&self, value: &Spanned<DeValue<'_>>) -> Read<At<String>> {
        let text = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => number.as_str().replace('_', ""),
            DeValue::Float(number) => number.as_str().replace('_', ""),
            DeValue::Boolean(truth) => truth.to_string(),
            _ => return self.wrong(value, "a string in quotes, a number, true or false"),
        };
        Ok(At {
            value: text,
            span: value.span(),
        })
    }

    /// A table of strings with keys chosen by the user; integers are kept as written.
    pub(crate) fn texts_by_name(&self, key: &str) -> Read<BTreeMap<String, String>> {
        let mut texts = BTreeMap::new();
        let Some(table) = self.table(key)? else {
            return Ok(texts);
        };
        for (name, value) in table.value.iter() {
            let text = match value.get_ref() {
                DeValue::String(text) => text.to_string(),
                DeValue::Integer(number) => number.as_str().replace('_', ""),
                _ => return self.wrong(value, "a string in quotes"),
            };
            texts.insert(name.get_ref().to_string(), text);
        }
        Ok(texts)
    }

    /// A table of sizes (`"1k"`, `512`) with keys chosen by the user.
    pub(crate) fn sizes_by_name(&self, key: &str, max: u64) -> Read<BTreeMap<String, u64>> {
        let mut sizes = BTreeMap::new();
        let Some(table) = self.table(key)? else {
            return Ok(sizes);
        };
        for (name, value) in table.value.iter() {
            let size = whole(value.get_ref(), amount::size);
            let Some(size) = size.filter(|size| *size <= max) else {
                return self.wrong_text(value, "a size such as 512, \"64k\" or \"1m\"");
            };
            sizes.insert(name.get_ref().to_string(), size);
        }
        Ok(sizes)
    }
}

/// An integer, or an amount in a string.
fn whole(value: &DeValue<'_>, parse: fn(&str) -> Result<u64, AmountError>) -> Option<u64> {
    match value {
        DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
        DeValue::String(text) => parse(text).ok(),
        _ => None,
    }
}

/// `unknown key "rouds"; did you mean "rounds"?`, or the list of valid names if none is similar.
pub(crate) fn unknown(what: &str, name: &str, valid: &[&str]) -> String {
    // A longer name is similar to no valid one; shorten it for the message.
    let printable = |letter: char| if letter.is_control() { ' ' } else { letter };
    let mut shown: String = name.chars().take(NAME_MAX).map(printable).collect();
    if name.chars().count() > NAME_MAX {
        shown.push('…');
    }
    let name = &*shown;
    match suggestion(name, valid.iter().copied()) {
        Some(key) => format!("unknown {what} `{name}`; did you mean `{key}`?"),
        None => format!(
            "unknown {what} `{name}`; valid here: {}",
            valid
                .iter()
                .map(|key| format!("`{key}`"))
                .collect::<Vec<_>>()
                .join(", ")
        ),
    }
}

/// Reads `name`, which can be part of a file name.
pub(crate) fn name(section: &Section<'_>, what: &str) -> Read<At<String>> {
    let name = section
        .text("name")?
        .ok_or_else(|| section.missing("name", what))?;
    let is_odd = |letter: char| letter == '/' || letter.is_control();
    let length = name.value.chars().count();
    if name.value.trim().is_empty() || name.value.contains(is_odd) || length > NAME_MAX {
        return Err(section.source.mistake(
            name.span,
            format!(
                "expected a name of 1 to {NAME_MAX} characters without `/`, line breaks and other control characters"
            ),
        ));
    }
    Ok(name)
}

pub(crate) fn plain(texts: Vec<At<String>>) -> Vec<String> {
    texts.into_iter().map(|text| text.value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_key_is_suggested_else_all_are_listed() {
        let keys = ["rounds", "measure"];
        assert!(unknown("key", "round", &keys).contains("did you mean `rounds`"));
        assert!(unknown("key", "colour", &keys).contains("`rounds`, `measure`"));
    }
}
