//! Parsing of times and sizes in both languages, and their form in Onrush.

use std::time::Duration;

use onrush_config::limits::{TIMEOUT_MAX, TIMEOUT_MIN};

/// A time with the largest unit that keeps it exact.
pub(crate) fn written(time: Duration) -> String {
    let milliseconds = time.as_millis();
    for (unit, length) in [("h", 3_600_000), ("m", 60_000), ("s", 1000)] {
        if milliseconds >= length && milliseconds.is_multiple_of(length) {
            return format!("{}{unit}", milliseconds / length);
        }
    }
    format!("{milliseconds}ms")
}

/// The nearest timeout that Onrush accepts.
pub(crate) fn bounded(time: Duration) -> Duration {
    time.clamp(TIMEOUT_MIN, TIMEOUT_MAX)
}

/// A number of bytes with the largest unit that keeps it exact.
pub(crate) fn written_size(bytes: u64) -> String {
    for (unit, length) in [("g", 1 << 30), ("m", 1 << 20), ("k", 1 << 10)] {
        if bytes >= length && bytes.is_multiple_of(length) {
            return format!("{}{unit}", bytes / length);
        }
    }
    bytes.to_string()
}

/// Parses one number with a unit from the list. The unit `""` stands for a missing unit.
fn time_of(text: &str, units: &[(&str, u64)]) -> Option<Duration> {
    let end = text.find(|letter: char| !letter.is_ascii_digit());
    let (digits, unit) = text.split_at(end.unwrap_or(text.len()));
    let (_, length) = units.iter().find(|(known, _)| *known == unit)?;
    let microseconds = digits.parse::<u64>().ok()?.checked_mul(*length)?;
    Some(Duration::from_micros(microseconds))
}

/// Parses a time of nginx: seconds, or several numbers with units such as `1h30m`.
pub(crate) fn nginx_time(text: &str) -> Option<Duration> {
    const UNITS: [(&str, u64); 9] = [
        ("", 1_000_000),
        ("ms", 1000),
        ("s", 1_000_000),
        ("m", 60_000_000),
        ("h", 3_600_000_000),
        ("d", 86_400_000_000),
        ("w", 604_800_000_000),
        ("M", 2_592_000_000_000),
        ("y", 31_536_000_000_000),
    ];
    let mut sum = Duration::ZERO;
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let is_digit = |letter: char| letter.is_ascii_digit();
        let unit = rest.find(|letter| !is_digit(letter)).unwrap_or(rest.len());
        let end = rest[unit..].find(|letter| is_digit(letter) || letter == ' ');
        let end = end.map_or(rest.len(), |end| unit + end);
        sum = sum.checked_add(time_of(&rest[..end], &UNITS)?)?;
        rest = rest[end..].trim_start();
    }
    Some(sum)
}

/// Parses a time of HAProxy: milliseconds, or one number with a unit.
pub(crate) fn haproxy_time(text: &str) -> Option<Duration> {
    const UNITS: [(&str, u64); 7] = [
        ("", 1000),
        ("us", 1),
        ("ms", 1000),
        ("s", 1_000_000),
        ("m", 60_000_000),
        ("h", 3_600_000_000),
        ("d", 86_400_000_000),
    ];
    time_of(text, &UNITS)
}

/// Parses a size of nginx: bytes, or a number with the unit `k`, `m` or `g`.
pub(crate) fn nginx_size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.char_indices().last()? {
        (at, 'k' | 'K') => (&text[..at], 10),
        (at, 'm' | 'M') => (&text[..at], 20),
        (at, 'g' | 'G') => (&text[..at], 30),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed_as_in_nginx_and_haproxy() {
        let nginx = |text| nginx_time(text).map(written);
        for (text, expected) in [
            ("75", Some("75s")),
            ("1h30m", Some("90m")),
            ("1m 30s", Some("90s")),
            ("250ms", Some("250ms")),
            ("2d", Some("48h")),
            ("", None),
            ("x", None),
            ("10x", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(nginx(text).as_deref(), expected, "{text:?}");
        }
        let haproxy = |text| haproxy_time(text).map(written);
        for (text, expected) in [
            ("5000", Some("5s")),
            ("10s", Some("10s")),
            ("500us", Some("0ms")),
            ("1h30m", None),
        ] {
            assert_eq!(haproxy(text).as_deref(), expected, "{text:?}");
        }
        assert_eq!(written(bounded(Duration::ZERO)), "1ms");
        assert_eq!(written(bounded(Duration::MAX)), "24h");
    }

    #[test]
    fn sizes_have_single_unit() {
        for (text, expected) in [
            ("1m", Some("1m")),
            ("1500", Some("1500")),
            ("8K", Some("8k")),
            ("", None),
            ("m", None),
            ("99999999999999999999g", None),
        ] {
            assert_eq!(nginx_size(text).map(written_size).as_deref(), expected);
        }
    }
}
