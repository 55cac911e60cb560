//! Helpers for the clients' output: numbers, times, sizes, and JSON within text.

use serde::de::DeserializeOwned;

use super::report::is_amount;

/// Text after `start` on the first line that begins with it, ignoring surrounding blanks.
pub(super) fn after_prefix<'a>(text: &'a str, start: &str) -> Result<&'a str, String> {
    find(text, start).ok_or_else(|| format!("no line begins with `{start}`"))
}

pub(super) fn find<'a>(text: &'a str, start: &str) -> Option<&'a str> {
    let mut lines = text.lines().map(str::trim);
    lines
        .find_map(|line| line.strip_prefix(start))
        .map(str::trim)
}

pub(super) fn count_after(text: &str, start: &str) -> Result<u64, String> {
    let word = first_word(after_prefix(text, start)?);
    count(word).ok_or_else(|| not_a_number(start, word))
}

pub(super) fn amount_after(text: &str, start: &str) -> Result<f64, String> {
    let word = first_word(after_prefix(text, start)?);
    amount(word).ok_or_else(|| not_a_number(start, word))
}

pub(super) fn not_a_number(of: &str, word: &str) -> String {
    format!("`{word}` of `{of}` is not a valid number")
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}

pub(super) fn count(word: &str) -> Option<u64> {
    word.parse().ok()
}

/// A number that is finite and not negative.
pub(super) fn amount(word: &str) -> Option<f64> {
    word.parse().ok().filter(|value| is_amount(*value))
}

/// Parses `512.00us`, `1.20ms`, `5.00s`, `1.00m`, `1.00h` to seconds.
pub(super) fn seconds(text: &str) -> Option<f64> {
    let (number, unit) = number_and_unit(text)?;
    let factor = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        _ => return None,
    };
    Some(number * factor)
}

/// Parses `1.23MB` with powers of 1,024.
pub(super) fn bytes(text: &str) -> Option<f64> {
    let (number, unit) = number_and_unit(text)?;
    let power = match unit {
        "B" => 0,
        "KB" => 1,
        "MB" => 2,
        "GB" => 3,
        "TB" => 4,
        _ => return None,
    };
    Some(number * 1_024_f64.powi(power))
}

fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let unit_at = text.find(|letter: char| letter.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(unit_at);
    Some((amount(number)?, unit))
}

/// Removes terminal colour sequences (ECMA-48 5.4: `ESC [`, parameters, a final byte).
pub(super) fn strip_ansi(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut parts = text.split("\u{1b}[");
    plain.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let is_final = |letter: char| ('@'..='~').contains(&letter);
        let rest = part.find(is_final).map_or("", |at| &part[at + 1..]);
        plain.push_str(rest);
    }
    plain
}

/// Parses concatenated JSON objects, at least one; other text is an error.
pub(super) fn objects<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, String> {
    let values = serde_json::Deserializer::from_str(text).into_iter::<T>();
    let values: Result<Vec<T>, _> = values.collect();
    match values {
        Ok(values) if values.is_empty() => Err("no JSON object found".to_owned()),
        Ok(values) => Ok(values),
        Err(error) => Err(format!("its JSON: {error}")),
    }
}

/// The first JSON object that parses as `T`. Some clients print log lines before it, which may be JSON too.
pub(super) fn json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let mut why = "no JSON object found".to_owned();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with('{') {
            let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<T>();
            match values.next() {
                Some(Ok(value)) => return Ok(value),
                // The object starts here but is incomplete.
                Some(Err(error)) if error.is_eof() => return Err(format!("its JSON: {error}")),
                Some(Err(error)) => why = format!("its JSON: {error}"),
                None => {}
            }
        }
        at += line.len();
    }
    Err(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_read_with_their_units() {
        assert_eq!(seconds("512.00us"), Some(512e-6));
        assert_eq!(seconds("1.50m"), Some(90.0));
        assert_eq!(bytes("1.5KB"), Some(1_536.0));
        for wrong in ["", "5", "ms", "-1ms", "nans", "1e999s", "5 ms", "5years"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
        assert_eq!(bytes("1.5PB"), None);
    }

    #[test]
    fn ansi_colours_are_stripped() {
        let text = "sockperf: \u{1b}[2;35m====> 1\u{1b}[0m\nnext\u{1b}[";
        assert_eq!(strip_ansi(text), "sockperf: ====> 1\nnext");
    }

    #[test]
    fn json_is_found_after_log_lines() {
        #[derive(Debug, serde::Deserialize)]
        struct Wanted {
            wanted: u64,
        }
        let text = "starting\n{\"level\": \"info\"}\n  {\n\"wanted\": 3 }\nthe end {";
        assert_eq!(json::<Wanted>(text).expect("it is there").wanted, 3);
        for (text, part) in [
            ("", "no JSON object"),
            ("wanted: 3", "no JSON object"),
            ("{\"wanted\": 3", "EOF"),
            ("{\"want\": 3}", "missing field"),
        ] {
            let why = json::<Wanted>(text).expect_err(text);
            assert!(why.contains(part), "{text}: {why}");
        }
    }
}
