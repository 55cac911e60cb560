//! One table of all files of a configuration, in which every place is one of [`Sources`].
//!
//! What files include comes before their own: as if it stood in the place of `include`, which is at the top. Lists of tables
//! and groups of servers come from all files, everything else from one.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::include::KEY;
use crate::sources::{Source, Sources, Span, Wrong};
use crate::written::first_of;

/// Written `[[…]]`, once for each.
const LISTS: [&str; 2] = ["listen", "route"];
/// Written `[….NAME]`.
const BY_NAME: [&str; 1] = ["upstream"];

/// What stands in all files.
pub(crate) struct Merged<'s> {
    pub(crate) table: DeTable<'s>,
    /// What cannot stand side by side, and what is no TOML.
    pub(crate) wrong: Vec<Wrong>,
    /// Whether every file is TOML and every file that is asked for is there: otherwise the rest would seem to lack something.
    pub(crate) is_whole: bool,
}

/// Merges all files.
pub(crate) fn merged(sources: &Sources) -> Merged<'_> {
    let mut merged = Merged {
        table: DeTable::new(),
        wrong: sources.wrong.clone(),
        is_whole: sources.wrong.is_empty(),
    };
    let order = in_order(sources);
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

/// The files in the order in which they count.
fn in_order(sources: &Sources) -> Vec<usize> {
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
            // The parser puts what it expected on a line of its own.
            let message = error.message().trim().replace('\n', "; ");
            let span = source.global(error.span().unwrap_or_default());
            self.wrong.push((span, format!("not TOML: {message}")));
            self.is_whole = false;
        }
        match source.start {
            0 => table.into_inner(),
            by => moved_table(table.into_inner(), by),
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
                self.wrong.push(twice(name, before, key.span(), sources));
                continue;
            }
            let span = first_of(&value);
            let there = self.table.get_mut(name).map(Spanned::get_mut);
            match (there, value.into_inner()) {
                (Some(DeValue::Array(all)), DeValue::Array(more)) if is_list => {
                    more.into_iter().for_each(|item| all.push(item));
                }
                (Some(DeValue::Table(all)), DeValue::Table(more)) if is_by_name => {
                    append(all, more, name, sources, &mut self.wrong);
                }
                // Of the one that is there, it is said when it is read.
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

/// That a name stands in two files: said at the one that was included last.
fn twice(name: &str, one: Span, other: Span, sources: &Sources) -> Wrong {
    let (first, last) = match one.start < other.start {
        true => (one, other),
        false => (other, one),
    };
    let message = format!(
        "{name} stands in two files, here and in {}: expected it in one of them",
        sources.shown(&first)
    );
    (last, message)
}

/// Adds the entries of the table `key` of another file, whose names have to be others.
fn append<'s>(
    all: &mut DeTable<'s>,
    more: DeTable<'s>,
    key: &str,
    sources: &Sources,
    wrong: &mut Vec<Wrong>,
) {
    for (name, value) in more {
        let Some((before, _)) = all.get_key_value(&**name.get_ref()) else {
            all.insert(name, value);
            continue;
        };
        let full = format!("{key}.{}", name.get_ref());
        wrong.push(twice(&full, before.span(), name.span(), sources));
    }
}

fn moved_span(span: Span, by: usize) -> Span {
    span.start + by..span.end + by
}

fn moved_table(table: DeTable<'_>, by: usize) -> DeTable<'_> {
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
        DeValue::Table(table) => DeValue::Table(moved_table(table, by)),
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
