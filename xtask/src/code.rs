//! Blanks comments and literals in Rust source, so that a rule about code does not match text in them.

/// Replaces every comment and the contents of every string and character literal by blanks. Line numbers stay.
pub(crate) fn without_comments_and_literals(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut blanked = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = skipped(bytes, at);
        for byte in &mut blanked[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end.max(at + 1);
    }
    String::from_utf8(blanked).expect("whole literals and comments became ASCII blanks")
}

/// End of the comment or literal that begins at `at`, or `at` if none begins there.
fn skipped(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let before = if at == 0 { b' ' } else { bytes[at - 1] };
    let in_word = before.is_ascii_alphanumeric() || before == b'_';
    let length = match rest {
        [b'/', b'/', ..] => position(rest, |rest| rest[0] == b'\n'),
        [b'/', b'*', ..] => block_comment(rest),
        [b'"', ..] => quoted(rest, b'"'),
        // The prefixes b, c, br and cr stay as code; the loop then reaches the `"` or `r` after them.
        [b'r', b'"' | b'#', ..] if !in_word || matches!(before, b'b' | b'c') => raw_string(rest),
        [b'\'', ..] => character(rest),
        _ => 0,
    };
    at + length
}

/// First position for which the condition holds, or the end.
fn position(bytes: &[u8], is_it: impl Fn(&[u8]) -> bool) -> usize {
    (0..bytes.len())
        .find(|at| is_it(&bytes[*at..]))
        .unwrap_or(bytes.len())
}

/// Block comments nest.
fn block_comment(bytes: &[u8]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < bytes.len() {
        match &bytes[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    bytes.len()
}

/// Length from a quote to the next unescaped quote, both included.
fn quoted(bytes: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// `r"…"` or `r#"…"#`; 0 for a raw identifier such as `r#type`.
fn raw_string(bytes: &[u8]) -> usize {
    let hashes = bytes[1..].iter().take_while(|byte| **byte == b'#').count();
    let content = 1 + hashes;
    if bytes.get(content) != Some(&b'"') {
        return 0;
    }
    let end = [b"\"".as_slice(), &vec![b'#'; hashes]].concat();
    let length = position(&bytes[content + 1..], |rest| rest.starts_with(&end));
    (content + 1 + length + end.len()).min(bytes.len())
}

/// `'x'` or `'\n'`; 0 for a lifetime.
fn character(bytes: &[u8]) -> usize {
    if bytes.get(1) == Some(&b'\\') {
        return quoted(bytes, b'\'');
    }
    // One character of up to four bytes, then the closing quote.
    let text = String::from_utf8_lossy(&bytes[1..bytes.len().min(6)]);
    let Some(letter) = text.chars().next() else {
        return 0;
    };
    match bytes.get(1 + letter.len_utf8()) {
        Some(b'\'') => letter.len_utf8() + 2,
        _ => 0,
    }
}

/// Number of lines before the module of unit tests at the end of a file; all lines if there is none. `code` has been
/// blanked.
pub(crate) fn lines_before_tests(code: &str) -> usize {
    let lines: Vec<&str> = code.lines().collect();
    let is_test_module = |at: usize| {
        let mut following = lines[at + 1..]
            .iter()
            .skip_while(|line| line.starts_with("#["));
        lines[at] == "#[cfg(test)]"
            && following
                .next()
                .is_some_and(|line| line.starts_with("mod ") && line.ends_with('{'))
    };
    (0..lines.len())
        .find(|at| is_test_module(*at))
        .unwrap_or(lines.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked() {
        for (text, expected) in [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            ("f(\"x \\\" y\", z)", "f(        , z)"),
            ("r\"a\\\" b", "      b"),
            ("br##\"a\"# b\"## c", "b             c"),
            ("r#type", "r#type"),
            ("for\"x\"", "for   "),
            ("&'a str, 'b', '\\'', 'ü'", "&'a str,    ,     ,     "),
            ("\"over\nlines\"x", "     \n      x"),
            ("\"never closed", "             "),
            ("/* never closed", "               "),
        ] {
            assert_eq!(without_comments_and_literals(text), expected, "of {text}");
        }
    }

    #[test]
    fn unit_tests_start_at_test_module() {
        assert_eq!(lines_before_tests("a\n#[cfg(test)]\nmod tests {\n}"), 1);
        assert_eq!(
            lines_before_tests("a\n#[cfg(test)]\n#[rustfmt::skip]\nmod tests {\n}"),
            1
        );
        assert_eq!(lines_before_tests("#[cfg(test)]\nmod support;\nb\n"), 3);
        assert_eq!(lines_before_tests("#[cfg(test)]\nuse x;\nb\n"), 3);
    }
}
