//! Single values of experiment files: numbers and bits per second.

use onrush_measure::amount;
use toml::de::DeValue;

/// A finite decimal number, integer or fraction.
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

/// Bits per second; `k`, `m` and `g` are powers of ten, as usual for links.
pub(super) fn parse_bits(text: &str) -> Option<u64> {
    // At less than 1 kbit/s a packet takes seconds; no link is faster than 1 Tbit/s.
    let bits = amount::count(text).ok()?;
    (1_000..=1_000_000_000_000).contains(&bits).then_some(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_rates_are_bounded() {
        assert_eq!(parse_bits("2.5g"), Some(2_500_000_000));
        assert_eq!(parse_bits("100M"), Some(100_000_000));
        for text in ["", "g", "10", "-1g", "2t", "9999g", "nang"] {
            assert_eq!(parse_bits(text), None, "{text}");
        }
    }
}
