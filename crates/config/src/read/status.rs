//! Statuses in configuration files: numbers, ranges and classes.

use toml::Spanned;

use crate::diagnostic::Diagnostics;
use crate::section::Section;
use crate::toml_values::{as_number, one_or_list, parsed, report_kind};
use crate::value;

/// Reads one status or a list, as inclusive ranges. `None` without the key; invalid ones are reported and omitted.
pub(super) fn read_statuses(
    section: &Section<'_, '_>,
    key: &str,
    expected: &str,
    findings: &mut Diagnostics<'_>,
) -> Option<Vec<(u16, u16)>> {
    let value = section.value(key)?;
    let mut all = Vec::new();
    for value in one_or_list(value) {
        let text = match (as_number(value), value.get_ref().as_str()) {
            (Some(number), _) => number.to_string(),
            (None, Some(text)) => text.to_owned(),
            (None, None) => {
                let what = format!("{key} in {}", section.name());
                report_kind(&what, value, expected, findings);
                continue;
            }
        };
        let text = Spanned::new(value.span(), text);
        all.extend(parsed(&text, value::parse_statuses, findings));
    }
    section.refuse_empty(key, expected, findings);
    Some(all)
}
