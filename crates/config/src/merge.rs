//! Merges the files of a configuration into one table with positions in [`Sources`].
//!
//! Included files come before the file that includes them. Lists of tables and groups of servers are combined from all
//! files; every other key may be in only one file.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::include::KEY;
use crate::sources::{IncludeMessage, Source, Sources, Span};
use crate::toml_values::place_of;

/// Keys written as `[[…]]`.
const LISTS: [&str; 2] = ["listen", "route"];
/// Keys written as `[….NAME]`.
const BY_NAME: [&str; 1] = ["upstream"];

pub(crate) struct Merged<'s> {
    pub(crate) table: DeTable<'s>,
    /// Conflicts between files, and TOML errors.
    pub(crate) wrong: Vec<IncludeMessage>,
    /// Whether all files were found and are valid TOML. Otherwise errors about missing keys would be misleading.
    pub(crate) is_whole: bool,
}

pub(crate) fn merged(sources: &Sources) -> Merged<'_> {
    let mut merged = Merged {
        table: DeTable::new(),
        wrong: sources.errors.clone(),
        is_whole: sources.errors.is_empty(),
    };
    let order = files_in_order(sources);
    let tables: Vec<_> = order
        .iter()
        .map(|at| merged.parsed(&sources.files[*at]))
        .collect();
    if merged.is_whole {
        tables
            .into_iter()
            .for_each(|table| merged.add(table, sources));
    }
    merged
}

/// Files in order: each after the files it includes.
fn files_in_order(sources: &Sources) -> Vec<usize> {
    fn visit(at: usize, sources: &Sources, order: &mut Vec<usize>) {
        for included in &sources.files[at].included {
            visit(*included, sources, order);
        }
        order.push(at);
    }
    let mut order = Vec::new();
    visit(0, sources, &mut order);
    order
}

impl<'s> Merged<'s> {
    fn parsed(&mut self, source: &'s Source) -> DeTable<'s> {
        let (table, errors) = DeTable::parse_recoverable(&source.text);
        for error in errors {
            // The parser writes the expected tokens on a second line.
            let message = error.message().trim().replace('\n', "; ");
            let span = source.to_span(error.span().unwrap_or_default());
            self.wrong.push((span, format!("not TOML: {message}")));
            self.is_whole = false;
        }
        match source.start {
            0 => table.into_inner(),
            by => shift_table(table.into_inner(), by),
        }
    }

    fn add(&mut self, table: DeTable<'s>, sources: &Sources) {
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            if name == KEY {
                continue;
            }
            let Some((before, _)) = self.table.get_key_value(name) else {
                self.table.insert(key, value);
                continue;
            };
            let before = before.span();
            let is_list = LISTS.contains(&name);
            let is_by_name = BY_NAME.contains(&name);
            if !is_list && !is_by_name {
                self.wrong
                    .push(duplicate_name(name, before, key.span(), sources));
                continue;
            }
            let span = place_of(&value);
            let there = self.table.get_mut(name).map(Spanned::get_mut);
            match (there, value.into_inner()) {
                (Some(DeValue::Array(all)), DeValue::Array(more)) if is_list => {
                    more.into_iter().for_each(|item| all.push(item));
                }
                (Some(DeValue::Table(all)), DeValue::Table(more)) if is_by_name => {
                    append(all, more, name, sources, &mut self.wrong);
                }
                // The existing value has the wrong type; this is reported when it is read.
                (_, DeValue::Array(_)) if is_list => {}
                (_, DeValue::Table(_)) if is_by_name => {}
                _ if is_list => {
                    let message = format!("{name} is written [[{name}]], once for each");
                    self.wrong.push((span, message));
                }
                _ => {
                    let message = format!("{name} is written [{name}.NAME], once for each");
                    self.wrong.push((span, message));
                }
            }
        }
    }
}

/// Reports a name that is in two files, at the later place.
fn duplicate_name(name: &str, one: Span, other: Span, sources: &Sources) -> IncludeMessage {
    let (first, last) = match one.start < other.start {
        true => (one, other),
        false => (other, one),
    };
    let message = format!(
        "{name} is defined in two files, here and in {}: expected it in one of them",
        sources.format_place(&first)
    );
    (last, message)
}

/// Adds the entries of table `key` of another file; names must differ.
fn append<'s>(
    all: &mut DeTable<'s>,
    more: DeTable<'s>,
    key: &str,
    sources: &Sources,
    wrong: &mut Vec<IncludeMessage>,
) {
    for (name, value) in more {
        let Some((before, _)) = all.get_key_value(&**name.get_ref()) else {
            all.insert(name, value);
            continue;
        };
        let full = format!("{key}.{}", name.get_ref());
        wrong.push(duplicate_name(&full, before.span(), name.span(), sources));
    }
}

fn moved_span(span: Span, by: usize) -> Span {
    span.start + by..span.end + by
}

fn shift_table(table: DeTable<'_>, by: usize) -> DeTable<'_> {
    let mut moved = DeTable::new();
    for (key, value) in table {
        let span = moved_span(key.span(), by);
        moved.insert(Spanned::new(span, key.into_inner()), moved_value(value, by));
    }
    moved
}

fn moved_value(value: Spanned<DeValue<'_>>, by: usize) -> Spanned<DeValue<'_>> {
    let span = moved_span(value.span(), by);
    let value = match value.into_inner() {
        DeValue::Table(table) => DeValue::Table(shift_table(table, by)),
        DeValue::Array(array) => DeValue::Array(
            array
                .into_iter()
                .map(|item| moved_value(item, by))
                .collect(),
        ),
        plain => plain,
    };
    Spanned::new(span, value)
}
