//! Expressions for a host as expressions for the field `Host`.

/// The end of a host in the field, which may have a last dot and a port.
const END: &str = "\\.?(:[0-9]+)?";

/// An expression for the field that is found where `pattern` is found in the host: letters have no case, and each end may be
/// before a last dot and a port.
pub(super) fn host_pattern(pattern: &str) -> String {
    let mut field = "(?i)".to_owned();
    let mut rest = pattern.trim_start_matches("(?i)");
    let mut is_class = false;
    while let Some(letter) = rest.chars().next() {
        let length = match letter {
            '\\' => letter.len_utf8() + rest[1..].chars().next().map_or(0, char::len_utf8),
            // The first letter of a class may be its end.
            '[' if !is_class => {
                let first = rest[1..].strip_prefix('^').unwrap_or(&rest[1..]);
                let first = first.strip_prefix(']').unwrap_or(first);
                rest.len() - first.len()
            }
            letter => letter.len_utf8(),
        };
        let (part, behind) = rest.split_at(length);
        match part {
            "$" | "\\z" | "\\Z" if !is_class => field += END,
            "]" => is_class = false,
            _ if letter == '[' => is_class = true,
            _ => {}
        }
        field += part;
        rest = behind;
    }
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_may_be_before_a_port() {
        for (pattern, expected) in [
            ("^a\\.org$", "(?i)^a\\.org\\.?(:[0-9]+)?$"),
            ("(?i)^a$|^b$", "(?i)^a\\.?(:[0-9]+)?$|^b\\.?(:[0-9]+)?$"),
            ("^(a$|b)", "(?i)^(a\\.?(:[0-9]+)?$|b)"),
            ("a\\$[]$][^]$]x\\z", "(?i)a\\$[]$][^]$]x\\.?(:[0-9]+)?\\z"),
            ("^a", "(?i)^a"),
        ] {
            assert_eq!(host_pattern(pattern), expected, "{pattern}");
        }
    }
}
