//! Durations, counts and sizes as people write them: a decimal number and its unit, `1.5s`, `10k`, `4MiB`. Every option and every
//! file is read by these functions, so that a unit means the same everywhere.

use std::time::Duration;

/// Why a text is not an amount.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotAmount {
    /// Not a number with a unit of its kind, or not a whole number of the smallest unit.
    Form,
    /// Larger than can be represented.
    TooLarge,
}

/// Units of time, in nanoseconds.
const TIMES: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Multiples of counts.
const COUNTS: [(&str, u64); 4] = [
    ("", 1),
    ("k", 1_000),
    ("m", 1_000_000),
    ("g", 1_000_000_000),
];

/// Multiples of bytes. `kb` and `mb` are missing: to some they are powers of 1,000.
const SIZES: [(&str, u64); 7] = [
    ("", 1),
    ("k", 1 << 10),
    ("kib", 1 << 10),
    ("m", 1 << 20),
    ("mib", 1 << 20),
    ("g", 1 << 30),
    ("gib", 1 << 30),
];

/// A duration: `500us`, `250ms`, `1.5s`, `2m`, `1h`. Its unit is in lower case; a bare number has none and is refused.
///
/// # Errors
/// When `text` is not a duration.
pub fn duration(text: &str) -> Result<Duration, NotAmount> {
    let (number, unit) = split(text);
    let known = TIMES.iter().find(|(name, _)| *name == unit);
    let nanoseconds = scaled(number, known.ok_or(NotAmount::Form)?.1)?;
    let seconds = nanoseconds / 1_000_000_000;
    let seconds = u64::try_from(seconds).map_err(|_| NotAmount::TooLarge)?;
    Ok(Duration::new(seconds, (nanoseconds % 1_000_000_000) as u32))
}

/// A count: `100`, `10k`, `1.5m`, `2g`, with powers of 1,000.
///
/// # Errors
/// When `text` is not a count.
pub fn count(text: &str) -> Result<u64, NotAmount> {
    multiple(text, &COUNTS)
}

/// A number of bytes: `512`, `64k`, `1.5m`, `4MiB`, with powers of 1,024.
///
/// # Errors
/// When `text` is not a number of bytes.
pub fn size(text: &str) -> Result<u64, NotAmount> {
    multiple(text, &SIZES)
}

fn multiple(text: &str, units: &[(&str, u64)]) -> Result<u64, NotAmount> {
    let (number, unit) = split(text);
    let known = units
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(unit));
    let found = scaled(number, known.ok_or(NotAmount::Form)?.1)?;
    u64::try_from(found).map_err(|_| NotAmount::TooLarge)
}

/// A number, with or without a decimal point, and what follows it.
fn split(text: &str) -> (&str, &str) {
    let is_number = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    let digits = text.bytes().take_while(is_number).count();
    text.split_at(digits)
}

/// `number` times `factor`, exactly.
fn scaled(number: &str, factor: u64) -> Result<u128, NotAmount> {
    let (whole, fraction) = match number.split_once('.') {
        Some((_, "")) => return Err(NotAmount::Form),
        Some((whole, fraction)) => (whole, fraction.trim_end_matches('0')),
        None => (number, ""),
    };
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
        return Err(NotAmount::Form);
    }
    let whole: u128 = whole.parse().map_err(|_| NotAmount::TooLarge)?;
    let whole = whole
        .checked_mul(u128::from(factor))
        .ok_or(NotAmount::TooLarge)?;
    // No unit has more than 15 decimal places in its smallest one.
    if fraction.len() > 15 {
        return Err(NotAmount::Form);
    }
    let places = 10_u128.pow(fraction.len() as u32);
    let part = match fraction {
        "" => 0,
        _ => fraction.parse::<u128>().map_err(|_| NotAmount::Form)? * u128::from(factor),
    };
    match part % places {
        0 => whole.checked_add(part / places).ok_or(NotAmount::TooLarge),
        _ => Err(NotAmount::Form),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_numbers_with_a_unit_of_time() {
        for (text, nanoseconds) in [
            ("1ns", 1),
            ("500us", 500_000),
            ("2.5µs", 2_500),
            ("250ms", 250_000_000),
            ("1.5s", 1_500_000_000),
            ("0.050s", 50_000_000),
            ("1m", 60_000_000_000),
            ("1.5h", 5_400_000_000_000),
            ("0s", 0),
        ] {
            assert_eq!(
                duration(text),
                Ok(Duration::from_nanos(nanoseconds)),
                "{text}"
            );
        }
        for text in [
            "", "s", "1", ".5s", "1.s", "1..5s", "1.5.5s", "-1s", "+1s", "1 s", "1S", "1min", "1d",
            "1.5ns", "1e3s", "1_000s",
        ] {
            assert_eq!(duration(text), Err(NotAmount::Form), "{text}");
        }
        let digits = "9".repeat(50) + "h";
        assert_eq!(duration(&digits), Err(NotAmount::TooLarge));
        assert_eq!(duration("99999999999999999999h"), Err(NotAmount::TooLarge));
    }

    #[test]
    fn counts_are_in_thousands_and_sizes_in_powers_of_1024() {
        for (text, expected, bytes) in [
            ("0", 0, 0),
            ("100", 100, 100),
            ("10k", 10_000, 10_240),
            ("10K", 10_000, 10_240),
            ("1.5m", 1_500_000, 1_572_864),
            ("2g", 2_000_000_000, 2_147_483_648),
        ] {
            assert_eq!(count(text), Ok(expected), "{text}");
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for (text, bytes) in [("4MiB", 4 << 20), ("64KiB", 64 << 10), ("1gib", 1 << 30)] {
            assert_eq!(size(text), Ok(bytes), "{text}");
            assert_eq!(count(text), Err(NotAmount::Form), "{text}");
        }
        for text in ["", "k", "1.5", "0.0001k", "1kb", "1MB", "1t", "-1", "1 k"] {
            assert_eq!(count(text), Err(NotAmount::Form), "{text}");
            assert_eq!(size(text), Err(NotAmount::Form), "{text}");
        }
        assert_eq!(size("99999999999999999999g"), Err(NotAmount::TooLarge));
    }
}
