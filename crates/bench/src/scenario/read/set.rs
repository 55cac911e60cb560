//! `set` of works, variants and scales: a value that nothing names would be measured as if it made a difference.

use super::given::Given;
use super::variant::is_own_value;
use crate::scenario::section::{Read, Section};

/// Looks for each name of a `set` in the whole file: which program, host or link uses it is up to the variants.
///
/// # Errors
/// The first name that stands nowhere in braces.
pub(super) fn check_set(experiment: &Section<'_>, given: &Given<'_>) -> Read<()> {
    for work in experiment.tables("work")? {
        let variants = work.value.get("variant").into_iter();
        let variants = variants
            .filter_map(|list| list.get_ref().as_array())
            .flatten();
        let tables = variants.filter_map(|variant| variant.get_ref().as_table());
        for table in std::iter::once(work.value).chain(tables) {
            let names = table.get("set").and_then(|set| set.get_ref().as_table());
            for name in names.into_iter().flat_map(|names| names.keys()) {
                check_named_somewhere(experiment, name.get_ref(), name.span())?;
            }
        }
    }
    let mut of_scale = given.scale.set.keys();
    of_scale.try_for_each(|name| check_named_somewhere(experiment, name, 0..0))
}

fn check_named_somewhere(
    experiment: &Section<'_>,
    name: &str,
    span: std::ops::Range<usize>,
) -> Read<()> {
    if is_own_value(name) || experiment.source.text.contains(&format!("{{{name}}}")) {
        return Ok(());
    }
    let said = format!("nothing in this file names {{{name}}}: setting it changes nothing");
    Err(experiment.source.mistake(span, said))
}
