//! Formats a count with its noun.

pub(super) fn pluralize(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
