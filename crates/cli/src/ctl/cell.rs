//! Table cells: JSON values from the server, formatted as text.

use serde_json::Value;

pub(super) fn text_cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => printable(text),
        other => other.to_string(),
    }
}

/// A string with its control characters escaped, which a terminal would obey.
fn printable(text: &str) -> String {
    let escaped = text.chars().map(|character| match character.is_control() {
        true => character.escape_default().to_string(),
        false => character.to_string(),
    });
    escaped.collect()
}

/// Formats seconds with a suitable unit.
pub(super) fn time(value: &Value) -> String {
    match value.as_f64() {
        None => "-".to_owned(),
        Some(seconds) if seconds < 1e-3 => format!("{:.0} us", seconds * 1e6),
        Some(seconds) if seconds < 1.0 => format!("{:.1} ms", seconds * 1e3),
        Some(seconds) => format!("{seconds:.2} s"),
    }
}

pub(super) fn bytes(value: &Value) -> String {
    let mut amount = value.as_f64().unwrap_or(0.0);
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if amount < 1024.0 {
            return match unit {
                "B" => format!("{amount} B"),
                unit => format!("{amount:.1} {unit}"),
            };
        }
        amount /= 1024.0;
    }
    format!("{amount:.1} TiB")
}

/// Iterates over a JSON array; empty for any other value.
pub(super) fn array_items(list: &Value) -> impl Iterator<Item = &Value> + Clone {
    list.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_have_suitable_units() {
        for (seconds, text) in [(0.000_012, "12 us"), (0.012_34, "12.3 ms"), (2.5, "2.50 s")] {
            assert_eq!(time(&json!(seconds)), text);
        }
        assert_eq!(time(&Value::Null), "-");
        for (count, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1536, "1.5 KiB"),
            (5_u64 << 30, "5.0 GiB"),
        ] {
            assert_eq!(bytes(&json!(count)), text);
        }
    }
}
