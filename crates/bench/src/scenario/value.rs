//! Single values of experiment files: numbers, counts, sizes and durations.

use std::time::Duration;

use onrush_measure::amount;
use toml::de::DeValue;

/// A finite number, whole or not, in decimal digits.
pub(super) fn number(value: &DeValue<'_>) -> Option<f64> {
    let text = match value {
        DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str(),
        DeValue::Float(float) => float.as_str(),
        _ => return None,
    };
    text.replace('_', "")
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite())
}

/// Counts may carry `k` (thousand) and `m` (million).
pub(super) fn parse_count(text: &str) -> Option<u64> {
    amount::count(text).ok()
}

/// Sizes may carry `k` (1,024) and `m` (1,048,576).
pub(super) fn parse_size(text: &str) -> Option<u64> {
    amount::size(text).ok()
}

/// Bits per second; `k`, `m` and `g` are factors of ten, as links are named.
pub(super) fn parse_bits(text: &str) -> Option<u64> {
    // Slower than 1 kbit/s a packet takes seconds; faster than 1 Tbit/s nothing is.
    let bits = amount::count(text).ok()?;
    (1_000..=1_000_000_000_000).contains(&bits).then_some(bits)
}

/// `250ms`, `1.5s`, `2m`.
pub(super) fn parse_duration(text: &str) -> Option<Duration> {
    amount::duration(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_counts_are_read_as_the_configuration_reads_them() {
        assert_eq!(parse_duration("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(parse_duration("10s"), Some(Duration::from_secs(10)));
        assert_eq!(parse_duration("2m"), Some(Duration::from_secs(120)));
        for text in ["", "10", "s", "-1s", "1d", "1.s"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
        assert_eq!(parse_count("10k"), Some(10_000));
        assert_eq!(parse_size("64k"), Some(65_536));
        assert_eq!(parse_count("k"), None);
        assert_eq!(parse_bits("2.5g"), Some(2_500_000_000));
        assert_eq!(parse_bits("100M"), Some(100_000_000));
        for text in ["", "g", "10", "-1g", "2t", "9999g", "nang"] {
            assert_eq!(parse_bits(text), None, "{text}");
        }
    }
}
