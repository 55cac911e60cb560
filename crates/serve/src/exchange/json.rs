//! JSON strings (RFC 8259) for generated responses.

use std::fmt::Write;

pub(crate) fn push_string(text: &str, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            // In an inline script, U+2028 and U+2029 end a line and `</` may end the element.
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
    fn json_string_is_escaped() {
        let mut out = String::new();
        push_string("a\"\\\n\u{1}</é", &mut out);
        assert_eq!(out, r#""a\"\\\n\u0001\u003c/é""#);
    }
}
