//! Checks `set` of works, variants and scales: an unused value would look as if it had no effect on the measurement.

use super::given::WorkContext;
use super::variant::is_own_value;
use crate::scenario::section::{Read, Section};

/// Checks that each name in a `set` is used as `{name}` somewhere in the file, since each variant has its own programs,
/// hosts and links.
///
/// # Errors
/// The first unused name.
pub(super) fn check_set(experiment: &Section<'_>, given: &WorkContext<'_>) -> Read<()> {
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
    let said = format!("nothing in this file uses {{{name}}}: setting it has no effect");
    Err(experiment.source.mistake(span, said))
}
