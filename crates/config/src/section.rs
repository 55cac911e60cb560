//! One table of a configuration file: its keys taken by name and kind, and every other key reported
//! with what it was probably meant to be. What is wrong has been reported and is absent, so that the
//! rest can still be looked at.

use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Findings, Span};
use crate::limits;
use crate::plan::FilePath;
use crate::value::{self, Invalid};
use crate::written::{first_of, in_range, parsed, path_of, read_texts, report_kind};
use onrush_measure::nearest::nearest;

/// A table, its name in sentences and the keys it may have.
pub(crate) struct Section<'file, 'text> {
    name: String,
    span: Span,
    table: &'file DeTable<'text>,
    keys: Keys,
}

/// The keys that a table may have.
#[derive(Clone, Copy)]
pub(crate) struct Keys {
    pub(crate) known: &'static [&'static str],
    /// Keys of earlier and later versions, each with the end of the error message.
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

/// What the text of a value has to be, and what it means.
#[derive(Clone, Copy)]
pub(crate) struct Kind<T> {
    /// In sentences: `a duration such as "10s"`.
    pub(crate) expected: &'static str,
    pub(crate) parse: fn(&str) -> Result<T, Invalid>,
}

/// Keys of the file itself that are often written too far down: in TOML, what follows a `[section]`
/// belongs to it.
const TOP: [&str; 6] = ["include", "threads", "cpus", "io", "accept", "busy_poll"];

impl<'file, 'text> Section<'file, 'text> {
    /// Reports the keys that are not known.
    pub(crate) fn open(
        name: impl Into<String>,
        span: Span,
        table: &'file DeTable<'text>,
        keys: Keys,
        findings: &mut Findings<'_>,
    ) -> Section<'file, 'text> {
        let section = Section {
            name: name.into(),
            span,
            table,
            keys,
        };
        for key in table.keys() {
            if !keys.known.contains(&key.get_ref().as_ref()) {
                findings.error_with(key.span(), || section.why_not(key.get_ref()));
            }
        }
        section
    }

    /// The table `value`, or a finding.
    pub(crate) fn of(
        name: &str,
        value: &'file Spanned<DeValue<'text>>,
        expected: &str,
        keys: Keys,
        findings: &mut Findings<'_>,
    ) -> Option<Section<'file, 'text>> {
        let Some(table) = value.get_ref().as_table() else {
            report_kind(name, value, expected, findings);
            return None;
        };
        Some(Section::open(name, value.span(), table, keys, findings))
    }

    /// The table `value` with whatever keys, or a finding.
    pub(crate) fn of_any_keys(
        name: &str,
        value: &'file Spanned<DeValue<'text>>,
        expected: &str,
        findings: &mut Findings<'_>,
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

    /// What is wrong with a key that this table cannot have, and what may have been meant.
    fn why_not(&self, key: &str) -> String {
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
        match nearest(key, self.keys.known.iter().copied()) {
            Some(near) => format!("unknown key {key:?} in {name}; nearest: {near:?}"),
            None => {
                let known = self.keys.known.join(", ");
                format!("unknown key {key:?} in {name}; expected one of: {known}")
            }
        }
    }

    /// As sentences call it.
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

    /// The place of a key, or of the table that lacks it.
    pub(crate) fn place(&self, key: &str) -> Span {
        self.table
            .get_key_value(key)
            .map_or_else(|| self.span(), |(key, _)| key.span())
    }

    /// Reports the lack of a key that this table must have.
    pub(crate) fn require(&self, key: &str, expected: &str, findings: &mut Findings<'_>) {
        if !self.is_meant(key) {
            let message = format!("{} has no {key}: expected {expected}", self.name);
            findings.error(self.span(), message);
        }
    }

    /// Whether the key is there, or was meant to be and is misspelt: one mistake, one finding.
    pub(crate) fn is_meant(&self, key: &str) -> bool {
        let known = self.keys.known;
        let is_misspelt = |written: &str| {
            !known.contains(&written) && nearest(written, known.iter().copied()) == Some(key)
        };
        let mut looked_at = self.table.keys().take(limits::KEYS_COMPARED_MAX);
        self.has(key) || looked_at.any(|written| is_misspelt(written.get_ref()))
    }

    /// Reports each of `keys` that is there: they say nothing when `reason`.
    pub(crate) fn warn_of_idle(&self, keys: &[&str], reason: &str, findings: &mut Findings<'_>) {
        for key in keys.iter().filter(|key| self.has(key)) {
            findings.warning(self.place(key), format!("{key} has no effect {reason}"));
        }
    }

    /// As [`Section::warn_of_idle`], where it would be a contradiction.
    pub(crate) fn refuse(&self, keys: &[&str], reason: &str, findings: &mut Findings<'_>) {
        for key in keys.iter().filter(|key| self.has(key)) {
            findings.error(self.place(key), format!("{key} {reason}"));
        }
    }

    pub(crate) fn report_kind(&self, key: &str, expected: &str, findings: &mut Findings<'_>) {
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
        findings: &mut Findings<'_>,
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

    /// What a text means.
    pub(crate) fn read<T>(
        &self,
        key: &str,
        kind: Kind<T>,
        findings: &mut Findings<'_>,
    ) -> Option<T> {
        let text = self.text(key, kind.expected, findings)?;
        parsed(&text, kind.parse, findings)
    }

    /// What a text means, or a number that may stand for one: `4`, `"4"` and `"auto"`.
    pub(crate) fn read_number<T>(
        &self,
        key: &str,
        kind: Kind<T>,
        findings: &mut Findings<'_>,
    ) -> Option<T> {
        let text = self.number_or_text(key, kind.expected, findings)?;
        parsed(&text, kind.parse, findings)
    }

    /// What one text or each of a list means.
    pub(crate) fn read_list<T>(
        &self,
        key: &str,
        kind: Kind<T>,
        findings: &mut Findings<'_>,
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

    /// As [`Section::read_list`], where nothing would mean nobody or everybody: which, is not guessed.
    pub(crate) fn read_some<T>(
        &self,
        key: &str,
        kind: Kind<T>,
        findings: &mut Findings<'_>,
    ) -> Option<Vec<T>> {
        self.refuse_empty(key, kind.expected, findings);
        self.read_list(key, kind, findings)
    }

    /// Reports an empty list.
    pub(crate) fn refuse_empty(&self, key: &str, expected: &str, findings: &mut Findings<'_>) {
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

    /// A path; a relative one is meant from where the file is.
    pub(crate) fn path(
        &self,
        key: &str,
        example: &str,
        findings: &mut Findings<'_>,
    ) -> Option<FilePath> {
        let text = self.text(key, example, findings)?;
        path_of(&text, example, findings)
    }

    /// A whole number, also out of every range, so that the range's own message can be given.
    pub(crate) fn number(
        &self,
        key: &str,
        expected: &str,
        findings: &mut Findings<'_>,
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

    /// A whole number, or text that may say the same (`"auto"`, `"10k"`, `"0-3"`), as text.
    fn number_or_text(
        &self,
        key: &str,
        expected: &str,
        findings: &mut Findings<'_>,
    ) -> Option<Spanned<String>> {
        let value = self.value(key)?;
        if value.get_ref().is_integer() {
            let number = self.number(key, expected, findings)?;
            return Some(Spanned::new(number.span(), number.get_ref().to_string()));
        }
        self.text(key, expected, findings)
    }

    /// A number of things in a range, all of which is a `T`: `100` or `"10k"`.
    pub(crate) fn count<T: TryFrom<u32>>(
        &self,
        key: &str,
        range: RangeInclusive<u32>,
        findings: &mut Findings<'_>,
    ) -> Option<T> {
        let text = self.number_or_text(key, "a count such as 100 or \"10k\"", findings)?;
        let written = text.get_ref();
        // A negative number is a number, and out of range.
        let count = if written.starts_with('-') && written.parse::<i128>().is_ok() {
            None
        } else {
            u32::try_from(parsed(&text, value::parse_count, findings)?).ok()
        };
        in_range(key, count, &text, &range, "", findings)
    }

    /// A share in a range of per cent, all of which is a `T`: `"50%"`.
    pub(crate) fn percent<T: TryFrom<u32>>(
        &self,
        key: &str,
        range: RangeInclusive<u32>,
        findings: &mut Findings<'_>,
    ) -> Option<T> {
        let text = self.text(key, "a share such as \"50%\"", findings)?;
        let percent = parsed(&text, value::parse_percent, findings)?;
        in_range(key, Some(percent), &text, &range, "%", findings)
    }

    pub(crate) fn truth(&self, key: &str, findings: &mut Findings<'_>) -> Option<bool> {
        let truth = self.value(key)?.get_ref().as_bool();
        if truth.is_none() {
            self.report_kind(key, "true or false", findings);
        }
        truth
    }

    /// The tables written `[[key]]`, in their order.
    pub(crate) fn tables(
        &self,
        key: &str,
        count_max: usize,
        findings: &mut Findings<'_>,
    ) -> Vec<(&'file DeTable<'text>, Span)> {
        let Some(value) = self.value(key) else {
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
                DeValue::Table(table) => all.push((table, value.span())),
                _ => findings.error(value.span(), written()),
            }
        }
        all
    }
}
