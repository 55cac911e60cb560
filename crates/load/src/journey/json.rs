//! Values in a JSON body, exactly as the server wrote them: numbers keep all digits. Pure.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// Byte order mark, which a parser may ignore (RFC 8259 section 8.1).
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Returns the value at `pointer` in `body` (RFC 6901); `None` if the body is not JSON or has no such value. Of members
/// with the same name the last one counts.
pub(super) fn find<'b>(body: &'b [u8], pointer: &str) -> Option<&'b RawValue> {
    let body = body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body);
    let whole: &RawValue = serde_json::from_slice(body).ok()?;
    if pointer.is_empty() {
        return Some(whole);
    }
    let mut steps = pointer.strip_prefix('/')?.split('/');
    steps.try_fold(whole, |value, step| {
        let step = step.replace("~1", "/").replace("~0", "~");
        match value.get().as_bytes().first()? {
            b'{' => {
                let mut members: BTreeMap<String, &RawValue> =
                    serde_json::from_str(value.get()).ok()?;
                members.remove(&step)
            }
            b'[' => {
                let items: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
                items.get(index(&step)?).copied()
            }
            _ => None,
        }
    })
}

/// Parses an array index, which has no leading zeros (RFC 6901 section 4).
fn index(step: &str) -> Option<usize> {
    let is_plain = step == "0" || !step.starts_with(['0', '+']);
    step.parse().ok().filter(|_| is_plain)
}

/// Returns the value as later requests send it: a string without quotes, other values as the server wrote them, without
/// whitespace between tokens. `None` for `null`.
pub(super) fn text(value: &RawValue) -> Option<String> {
    let written = value.get();
    match written.as_bytes().first()? {
        b'n' => None,
        b'"' => serde_json::from_str(written).ok(),
        _ => Some(compact(written)),
    }
}

fn compact(written: &str) -> String {
    let (mut in_text, mut is_escaped) = (false, false);
    let is_kept = |letter: &char| {
        let is_blank = matches!(letter, ' ' | '\t' | '\r' | '\n');
        let is_kept = in_text || !is_blank;
        match letter {
            '"' if !is_escaped => in_text = !in_text,
            _ => {}
        }
        is_escaped = in_text && *letter == '\\' && !is_escaped;
        is_kept
    };
    written.chars().filter(is_kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(body: &str, pointer: &str) -> Option<String> {
        text(find(body.as_bytes(), pointer)?)
    }

    #[test]
    fn json_non_strings_are_kept_verbatim() {
        for written in [
            "12345678901234567890123",
            "3.14159265358979323846",
            "0.10",
            "1E2",
            "-0",
            "1e400",
            "true",
            "[1.50,1e2]",
            r#"{"b":1,"a":" \" 2"}"#,
        ] {
            let body = format!(r#"{{"a": {{"v":  {written} }} }}"#);
            assert_eq!(at(&body, "/a/v").as_deref(), Some(written));
        }
        assert_eq!(
            at("[ 1, \n { \"a\" : \"b c\" } ]", "").as_deref(),
            Some(r#"[1,{"a":"b c"}]"#)
        );
    }

    #[test]
    fn json_pointers_follow_rfc_6901() {
        let body =
            r#"{"a/b": 1, "m~n": [10, [20]], "": 3, "x": "\u00e9\"", "d": 1, "d": 2, "n": null}"#;
        for (pointer, expected) in [
            ("/a~1b", Some("1")),
            ("/m~0n/1/0", Some("20")),
            ("/", Some("3")),
            ("/x", Some("é\"")),
            ("/d", Some("2")),
            ("/n", None),
            ("/m~0n/01", None),
            ("/m~0n/+1", None),
            ("/m~0n/-", None),
            ("/m~0n/2", None),
            ("/x/0", None),
            ("x", None),
        ] {
            assert_eq!(at(body, pointer).as_deref(), expected, "{pointer}");
        }
    }

    #[test]
    fn deep_json_and_byte_order_mark_are_parsed() {
        let deep = format!(r#"{{"v":1,"d":{}{}}}"#, "[".repeat(2000), "]".repeat(2000));
        assert_eq!(at(&deep, "/v").as_deref(), Some("1"));
        assert_eq!(at("\u{feff}{\"v\":1}", "/v").as_deref(), Some("1"));
        for body in ["", "{", "{\"v\":1} x", "<html>", "{'v':1}"] {
            assert_eq!(at(body, "/v"), None, "{body}");
        }
    }
}
