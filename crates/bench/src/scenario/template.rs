//! Replaces `{name}` in command lines and files by values known only during the run: ports, directories, CPUs.
//!
//! A name has only lower-case letters, digits, `_` and `.` between the braces, so that braces of nginx and Lua stay as
//! they are; `{{name}}` is a literal `{name}`.

use std::collections::BTreeMap;

/// Values for the templates of one program in one trial, by name.
pub type Values = BTreeMap<String, String>;

/// A name in a template, by its byte offsets (braces included).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place<'a> {
    /// The name between the braces.
    pub(super) name: &'a str,
    start: usize,
    end: usize,
    literal: bool,
}

/// All names in a template, in order.
pub(super) fn places(template: &str) -> Vec<Place<'_>> {
    let bytes = template.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(offset) = template[at..].find('{') {
        let start = at + offset;
        let name_start = start + 1 + usize::from(bytes.get(start + 1) == Some(&b'{'));
        let literal = name_start == start + 2;
        let name_len = template[name_start..]
            .bytes()
            .take_while(|byte| is_name_byte(*byte))
            .count();
        let name_end = name_start + name_len;
        let closing = if literal { "}}" } else { "}" };
        at = start + 1;
        if name_len > 0 && template[name_end..].starts_with(closing) {
            at = name_end + closing.len();
            found.push(Place {
                name: &template[name_start..name_end],
                start,
                end: at,
                literal,
            });
        }
    }
    found
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'.'
}

/// The first name without a value.
pub(super) fn first_unknown(template: &str, known: impl Fn(&str) -> bool) -> Option<&str> {
    places(template)
        .into_iter()
        .find(|place| !place.literal && !known(place.name))
        .map(|place| place.name)
}

/// Whether a template contains `{name}`.
pub fn is_named(template: &str, name: &str) -> bool {
    places(template)
        .iter()
        .any(|place| !place.literal && place.name == name)
}

/// Replaces names by values. Names without a value stay as they are; the check of the experiment excludes them.
pub fn render(template: &str, values: &Values) -> String {
    let mut text = String::with_capacity(template.len());
    let mut at = 0;
    for place in places(template) {
        text.push_str(&template[at..place.start]);
        match values.get(place.name).filter(|_| !place.literal) {
            Some(value) => text.push_str(value),
            None => {
                text.push('{');
                text.push_str(place.name);
                text.push('}');
            }
        }
        at = place.end;
    }
    text.push_str(&template[at..]);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(template: &str) -> String {
        let values = [("port", "8080"), ("server.port", "9090")];
        render(template, &values.map(|(k, v)| (k.into(), v.into())).into())
    }

    #[test]
    fn known_names_are_expanded_other_braces_kept() {
        assert_eq!(filled("http://127.0.0.1:{port}/"), "http://127.0.0.1:8080/");
        assert_eq!(
            filled("location / { return 200; } {server.port}"),
            "location / { return 200; } 9090"
        );
        assert_eq!(filled("local t = {} -- {"), "local t = {} -- {");
        assert_eq!(filled("${Port} {p-q}"), "${Port} {p-q}");
    }

    #[test]
    fn doubled_braces_are_literal() {
        assert_eq!(filled("{{port}} is {port}"), "{port} is 8080");
    }

    #[test]
    fn unknown_placeholder_is_found_outside_literals() {
        let known = |name: &str| name == "port";
        assert_eq!(first_unknown("{port} {{prot}} {prot}", known), Some("prot"));
        assert_eq!(first_unknown("{port} {{prot}}", known), None);
    }
}
