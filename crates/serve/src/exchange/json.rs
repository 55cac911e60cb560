//! JSON text (RFC 8259), as far as responses of our own need it.

use std::fmt::Write;

/// Appends `text` as a string in its quotes.
pub(crate) fn push_string(text: &str, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            // Within a script of a page these two end a line, and an element would end at a slash behind "<".
            '\u{0}'..='\u{1f}' | '\u{7f}' | '\u{2028}' | '\u{2029}' | '<' => {
                write!(out, "\\u{:04x}", u32::from(letter)).expect("a String takes everything");
            }
            _ => out.push(letter),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_cannot_end_itself() {
        let mut out = String::new();
        push_string("a\"\\\n\u{1}</é", &mut out);
        assert_eq!(out, r#""a\"\\\n\u0001\u003c/é""#);
    }
}
