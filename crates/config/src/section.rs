//! One table of a configuration file: reads keys by name and type, and reports unknown keys with the nearest known one.
//! An invalid value is reported and then treated as absent, so that the rest of the file is still checked.

use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Diagnostics, Span};
use crate::limits;
use crate::plan::FilePath;
use crate::toml_values::{in_range, parsed, path_of, place_of, read_texts, report_kind};
use crate::value::{self, Invalid};
use onrush_measure::suggestion::suggestion;

/// A table with its name for messages and the keys it may have.
pub(crate) struct Section<'file, 'text> {
    name: String,
    span: Span,
    table: &'file DeTable<'text>,
    keys: Keys,
}

#[derive(Clone, Copy)]
pub(crate) struct Keys {
    pub(crate) known: &'static [&'static str],
    /// Keys of earlier and later versions, each with the end of its error message.
    pub(crate) of_other_versions: &'static [(&'static str, &'static str)],
}

impl Keys {
    pub(crate) const fn new(known: &'static [&'static str]) -> Keys {
        Keys {
            known,
            of_other_versions: &[],
        }
    }
}

/// A type of value that is written as a string: its description for messages and its parser.
#[derive(Clone, Copy)]
pub(crate) struct Kind<T> {
    /// For messages: `a duration such as "10s"`.
    pub(crate) expected: &'static str,
    pub(crate) parse: fn(&str) -> Result<T, Invalid>,
}

/// Keys of the top level that are often written too far down: in TOML, a key after `[section]` belongs to that section.
const TOP: [&str; 6] = ["include", "threads", "cpus", "io", "accept", "busy_poll"];

impl<'file, 'text> Section<'file, 'text> {
    /// Reports unknown keys.
    pub(crate) fn open(
        name: impl Into<String>,
        span: Span,
        table: &'file DeTable<'text>,
        keys: Keys,
        findings: &mut Diagnostics<'_>,
    ) -> Section<'file, 'text> {
        let section = Section {
            name: name.into(),
            span,
            table,
            keys,
        };
        for key in table.keys() {
            if !keys.known.contains(&key.get_ref().as_ref()) {
                findings.error_with(key.span(), || section.unknown_key_message(key.get_ref()));
            }
        }
        section
    }

    /// Opens `value` as a table; reports a value of another type.
    pub(crate) fn of(
        name: &str,
        value: &'file Spanned<DeValue<'text>>,
        expected: &str,
        keys: Keys,
        findings: &mut Diagnostics<'_>,
    ) -> Option<Section<'file, 'text>> {
        let Some(table) = value.get_ref().as_table() else {
            report_kind(name, value, expected, findings);
            return None;
        };
        Some(Section::open(name, value.span(), table, keys, findings))
    }

    /// Like [`Section::of`], but accepts any keys.
    pub(crate) fn open_with_any_keys(
        name: &str,
        value: &'file Spanned<DeValue<'text>>,
        expected: &str,
        findings: &mut Diagnostics<'_>,
    ) -> Option<Section<'file, 'text>> {
        let Some(table) = value.get_ref().as_table() else {
            report_kind(name, value, expected, findings);
            return None;
        };
        Some(Section {
            name: name.to_owned(),
            span: value.span(),
            table,
            keys: Keys::new(&[]),
        })
    }

    /// Error message for a key that this table cannot have, with the key that was probably meant.
    fn unknown_key_message(&self, key: &str) -> String {
        let name = &self.name;
        let mut others = self.keys.of_other_versions.iter();
        if let Some((_, answer)) = others.find(|(other, _)| *other == key) {
            return format!("key {key:?} in {name} {answer}");
        }
        if TOP.contains(&key) {
            return format!(
                "key {key:?} does not belong in {name}; expected at the top of the file, before the first [section]"
            );
        }
        match suggestion(key, self.keys.known.iter().copied()) {
            Some(near) => format!("unknown key {key:?} in {name}; nearest: {near:?}"),
            None => {
                let known = self.keys.known.join(", ");
                format!("unknown key {key:?} in {name}; expected one of: {known}")
            }
        }
    }

    /// Name of the table in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn span(&self) -> Span {
        self.span.clone()
    }

    pub(crate) fn table(&self) -> &'file DeTable<'text> {
        self.table
    }

    pub(crate) fn value(&self, key: &str) -> Option<&'file Spanned<DeValue<'text>>> {
        self.table.get(key)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Position of a key, or of the table if the key is missing.
    pub(crate) fn place(&self, key: &str) -> Span {
        self.table
            .get_key_value(key)
            .map_or_else(|| self.span(), |(key, _)| key.span())
    }

    /// Reports a missing key that this table must have.
    pub(crate) fn require(&self, key: &str, expected: &str, findings: &mut Diagnostics<'_>) {
        if !self.is_present_or_misspelt(key) {
            let message = format!("{} has no {key}: expected {expected}", self.name);
            findings.error(self.span(), message);
        }
    }

    /// Whether the key is present or probably misspelt: a misspelt key is reported once, and not also as missing.
    pub(crate) fn is_present_or_misspelt(&self, key: &str) -> bool {
        let known = self.keys.known;
        let is_misspelt = |written: &str| {
            !known.contains(&written) && suggestion(written, known.iter().copied()) == Some(key)
        };
        let mut looked_at = self.table.keys().take(limits::KEYS_COMPARED_MAX);
        self.has(key) || looked_at.any(|written| is_misspelt(written.get_ref()))
    }

    /// Warns of each present key in `keys`: it has no effect, for `reason`.
    pub(crate) fn warn_ignored(&self, keys: &[&str], reason: &str, findings: &mut Diagnostics<'_>) {
        for key in keys.iter().filter(|key| self.has(key)) {
            findings.warning(self.place(key), format!("{key} has no effect {reason}"));
        }
    }

    /// Like [`Section::warn_of_idle`], but reports errors: the keys contradict another setting.
    pub(crate) fn report_conflict(
        &self,
        keys: &[&str],
        reason: &str,
        findings: &mut Diagnostics<'_>,
    ) {
        for key in keys.iter().filter(|key| self.has(key)) {
            findings.error(self.place(key), format!("{key} {reason}"));
        }
    }

    pub(crate) fn report_kind(&self, key: &str, expected: &str, findings: &mut Diagnostics<'_>) {
        if let Some(value) = self.value(key) {
            report_kind(&self.in_name(key), value, expected, findings);
        }
    }

    fn in_name(&self, key: &str) -> String {
        format!("{key} in {}", self.name)
    }

    pub(crate) fn text(
        &self,
        key: &str,
        expected: &str,
        findings: &mut Diagnostics<'_>,
    ) -> Option<Spanned<String>> {
        let value = self.value(key)?;
        match value.get_ref() {
            DeValue::String(text) => Some(Spanned::new(value.span(), text.to_string())),
            _ => {
                self.report_kind(key, expected, findings);
                None
            }
        }
    }

    /// Parses a string.
    pub(crate) fn read<T>(
        &self,
        key: &str,
        kind: Kind<T>,
        findings: &mut Diagnostics<'_>,
    ) -> Option<T> {
        let text = self.text(key, kind.expected, findings)?;
        parsed(&text, kind.parse, findings)
    }

    /// Parses a string or an integer, such as `4`, `"4"` or `"auto"`.
    pub(crate) fn read_number<T>(
        &self,
        key: &str,
        kind: Kind<T>,
        findings: &mut Diagnostics<'_>,
    ) -> Option<T> {
        let text = self.number_or_text(key, kind.expected, findings)?;
        parsed(&text, kind.parse, findings)
    }

    /// Parses one string or a list of strings.
    pub(crate) fn read_list<T>(
        &self,
        key: &str,
        kind: Kind<T>,
        findings: &mut Diagnostics<'_>,
    ) -> Option<Vec<T>> {
        let texts = read_texts(
            &self.in_name(key),
            self.value(key)?,
            kind.expected,
            findings,
        )?;
        let all = texts
            .iter()
            .filter_map(|text| parsed(text, kind.parse, findings));
        Some(all.collect())
    }

    /// Like [`Section::read_list`], but reports an empty list, which could mean nobody or everybody.
    pub(crate) fn read_nonempty_list<T>(
        &self,
        key: &str,
        kind: Kind<T>,
        findings: &mut Diagnostics<'_>,
    ) -> Option<Vec<T>> {
        self.refuse_empty(key, kind.expected, findings);
        self.read_list(key, kind, findings)
    }

    pub(crate) fn refuse_empty(&self, key: &str, expected: &str, findings: &mut Diagnostics<'_>) {
        if let Some(value) = self.value(key)
            && value
                .get_ref()
                .as_array()
                .is_some_and(|list| list.is_empty())
        {
            let message = format!("{} is empty: expected {expected}", self.in_name(key));
            findings.error(value.span(), message);
        }
    }

    /// A path, relative to the directory of the file.
    pub(crate) fn path(
        &self,
        key: &str,
        example: &str,
        findings: &mut Diagnostics<'_>,
    ) -> Option<FilePath> {
        let text = self.text(key, example, findings)?;
        path_of(&text, example, findings)
    }

    /// An integer of any size, so that the caller can check it against its own range.
    pub(crate) fn number(
        &self,
        key: &str,
        expected: &str,
        findings: &mut Diagnostics<'_>,
    ) -> Option<Spanned<i128>> {
        let value = self.value(key)?;
        let Some(number) = value.get_ref().as_integer() else {
            self.report_kind(key, expected, findings);
            return None;
        };
        let number = i128::from_str_radix(number.as_str(), number.radix());
        if number.is_err() {
            let message = format!("{key} in {} is too large: expected {expected}", self.name);
            findings.error(value.span(), message);
        }
        Some(Spanned::new(value.span(), number.ok()?))
    }

    /// An integer or a string (`"auto"`, `"10k"`, `"0-3"`), as a string.
    fn number_or_text(
        &self,
        key: &str,
        expected: &str,
        findings: &mut Diagnostics<'_>,
    ) -> Option<Spanned<String>> {
        let value = self.value(key)?;
        if value.get_ref().is_integer() {
            let number = self.number(key, expected, findings)?;
            return Some(Spanned::new(number.span(), number.get_ref().to_string()));
        }
        self.text(key, expected, findings)
    }

    /// A count such as `100` or `"10k"`. Every number in `range` must fit into `T`.
    pub(crate) fn count<T: TryFrom<u32>>(
        &self,
        key: &str,
        range: RangeInclusive<u32>,
        findings: &mut Diagnostics<'_>,
    ) -> Option<T> {
        let text = self.number_or_text(key, "a count such as 100 or \"10k\"", findings)?;
        let written = text.get_ref();
        // A negative integer is reported as out of range, not as malformed.
        let count = if written.starts_with('-') && written.parse::<i128>().is_ok() {
            None
        } else {
            u32::try_from(parsed(&text, value::parse_count, findings)?).ok()
        };
        in_range(key, count, &text, &range, "", findings)
    }

    /// A percentage such as `"50%"`. Every number in `range` must fit into `T`.
    pub(crate) fn percent<T: TryFrom<u32>>(
        &self,
        key: &str,
        range: RangeInclusive<u32>,
        findings: &mut Diagnostics<'_>,
    ) -> Option<T> {
        let text = self.text(key, "a share such as \"50%\"", findings)?;
        let percent = parsed(&text, value::parse_percent, findings)?;
        in_range(key, Some(percent), &text, &range, "%", findings)
    }

    pub(crate) fn truth(&self, key: &str, findings: &mut Diagnostics<'_>) -> Option<bool> {
        let truth = self.value(key)?.get_ref().as_bool();
        if truth.is_none() {
            self.report_kind(key, "true or false", findings);
        }
        truth
    }

    /// The tables written as `[[key]]`, in order.
    pub(crate) fn tables(
        &self,
        key: &str,
        count_max: usize,
        findings: &mut Diagnostics<'_>,
    ) -> Vec<(&'file DeTable<'text>, Span)> {
        let Some(value) = self.value(key) else {
            return Vec::new();
        };
        let written = || format!("{key} is written [[{key}]], once for each");
        let DeValue::Array(array) = value.get_ref() else {
            findings.error(place_of(value), written());
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
                DeValue::Table(table) => all.push((table, value.span())),
                _ => findings.error(value.span(), written()),
            }
        }
        all
    }
}
