//! Parses amounts: durations, counts, sizes, percentages and rates. All flags, configuration keys and conditions use
//! these functions, so that a string has one meaning everywhere. `docs/load.md` has the grammar as a table.
//!
//! An amount is a decimal number and its unit, with optional blanks around and between them: `1.5s`, `10k`, `4MiB`,
//! `0.1%`.

use std::fmt;
use std::time::Duration;

/// Error of the parsers: a message with the string and the accepted forms.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AmountError {
    text: String,
    why: String,
}

impl AmountError {
    fn new(text: &str, why: String) -> AmountError {
        let text = text.to_owned();
        AmountError { text, why }
    }
}

impl fmt::Display for AmountError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?} is {}", self.text, self.why)
    }
}

impl std::error::Error for AmountError {}

struct Kind {
    /// Unit names, and how many of the smallest unit each is.
    units: &'static [(&'static str, u64)],
    /// Accepted forms, the second part of the error message.
    expected: &'static str,
    /// Smallest difference between two amounts, for an amount with more decimal places; `None` if `expected` has it.
    finest: Option<&'static str>,
}

const DURATION: Kind = Kind {
    units: &[
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("μs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
        ("d", 86_400_000_000_000),
    ],
    expected: "a duration: expected a number and its unit, such as 250ms, 1.5s, 2m, 1h or 7d",
    finest: Some("a nanosecond"),
};

/// Units are case-insensitive, so `m` and `M` are the same here and in [`SIZE`].
const COUNT: Kind = Kind {
    units: &[
        ("", 1),
        ("k", 1_000),
        ("m", 1_000_000),
        ("g", 1_000_000_000),
        ("t", 1_000_000_000_000),
    ],
    expected: "a count: expected a whole number, or thousands or millions, such as 100, 10k or 1m",
    finest: None,
};

/// `kb` and `mb` are left out because they are ambiguous: powers of 1,000 or of 1,024.
const SIZE: Kind = Kind {
    units: &[
        ("", 1),
        ("k", 1 << 10),
        ("kib", 1 << 10),
        ("m", 1 << 20),
        ("mib", 1 << 20),
        ("g", 1 << 30),
        ("gib", 1 << 30),
    ],
    expected: "a size: expected bytes, or k, m or g of 1024, such as 512, 64k or 4MiB",
    finest: None,
};

const NUMBER: Kind = Kind {
    units: COUNT.units,
    expected: "a number: expected one such as 10, 1.5 or 2k",
    finest: None,
};

const SHARE: Kind = Kind {
    units: &[("%", 1)],
    expected: "a share: expected per cent, such as 50% or 0.1%",
    finest: None,
};

const RATE: Kind = Kind {
    units: COUNT.units,
    expected: "a rate: expected a number per second, minute or hour, such as 100/s, 6k/m or 90/h",
    finest: Some("a millionth"),
};

/// Parses a duration: `500us`, `250ms`, `1.5s`, `2m`, `1h`, `7d`. The unit is required and in lower case.
///
/// # Errors
/// If `text` is not a duration.
pub fn duration(text: &str) -> Result<Duration, AmountError> {
    let (number, nanoseconds) = DURATION.split(text, str::eq)?;
    let nanoseconds = DURATION.scaled(text, number, nanoseconds)?;
    let seconds = u64::try_from(nanoseconds / 1_000_000_000).map_err(|_| too_large(text))?;
    Ok(Duration::new(seconds, (nanoseconds % 1_000_000_000) as u32))
}

/// Parses a duration; a number without a unit is in `unit`.
///
/// # Errors
/// If `text` is not a duration.
pub fn duration_or(text: &str, unit: &str) -> Result<Duration, AmountError> {
    match text
        .trim_end()
        .ends_with(|last: char| last.is_ascii_digit() || last == '.')
    {
        // The message has the text without the added unit.
        true => duration(&format!("{text}{unit}"))
            .map_err(|AmountError { why, .. }| AmountError::new(text, why)),
        false => duration(text),
    }
}

/// Parses a count: `100`, `10k`, `1.5M`, `2g`, with powers of 1,000.
///
/// # Errors
/// If `text` is not a count.
pub fn count(text: &str) -> Result<u64, AmountError> {
    COUNT.whole(text, 1)
}

/// Parses a number of bytes: `512`, `64k`, `1.5m`, `4MiB`, with powers of 1,024.
///
/// # Errors
/// If `text` is not a number of bytes.
pub fn size(text: &str) -> Result<u64, AmountError> {
    SIZE.whole(text, 1)
}

/// Parses a number with an optional fraction and the units of a [`count`]: `99.5`, `10k`.
///
/// # Errors
/// If `text` is not a number.
pub fn number(text: &str) -> Result<f64, AmountError> {
    NUMBER.real(text)
}

/// Parses a percentage: `0.1%` is 0.1.
///
/// # Errors
/// If `text` is not a percentage.
pub fn percent(text: &str) -> Result<f64, AmountError> {
    SHARE.real(text)
}

/// Parses a percentage in units of 1/`parts` percent.
///
/// # Errors
/// If `text` is not a percentage, or not a whole number of these units.
pub fn percent_in(text: &str, parts: u64) -> Result<u64, AmountError> {
    SHARE.whole(text, parts)
}

/// Splits a rate into its number and its period in seconds: `6k/m` is `6k` in 60. The period is `None` if `text` has
/// none.
///
/// # Errors
/// If the period is not a second, a minute or an hour.
pub fn split_rate(text: &str) -> Result<(&str, Option<u64>), AmountError> {
    let Some((number, unit)) = text.split_once('/') else {
        return Ok((text, None));
    };
    match unit.trim() {
        "s" => Ok((number, Some(1))),
        "m" => Ok((number, Some(60))),
        "h" => Ok((number, Some(3_600))),
        _ => Err(RATE.refused(text)),
    }
}

/// A number of events in a number of seconds, both whole and without a common divisor: 1.5 per second is 3 in 2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate {
    /// Number of events.
    pub count: u64,
    /// Length of the period; 1 for a whole number per second.
    pub seconds: u64,
}

/// Parses a rate without rounding: `100`, `1.5/s`, `6k/m`, `90/h`.
///
/// # Errors
/// If `text` is not a rate, or has more than six decimal places.
pub fn rate(text: &str) -> Result<Rate, AmountError> {
    /// Lets a period of hours with these places fit into nanoseconds in `u64`.
    const PLACES_MAX: usize = 6;
    let (written, seconds) = split_rate(text)?;
    let split = RATE.split(written, str::eq_ignore_ascii_case);
    let (number, factor) = split.map_err(|_| RATE.refused(text))?;
    let fraction = number.split_once('.').map_or("", |(_, fraction)| fraction);
    let places = fraction.trim_end_matches('0').len();
    if places > PLACES_MAX {
        return Err(RATE.too_fine(text));
    }
    let tens = 10_u64.pow(places as u32);
    let count = RATE.scaled(text, number, factor * tens)?;
    let count = u64::try_from(count).map_err(|_| too_large(text))?;
    let seconds = seconds.unwrap_or(1) * tens;
    let divisor = common_divisor(count, seconds);
    Ok(Rate {
        count: count / divisor,
        seconds: seconds / divisor,
    })
}

fn common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// Parses a rate per second: `100`, `100/s`, `6k/m`, `90/h`.
///
/// # Errors
/// If `text` is not a rate.
pub fn per_second(text: &str) -> Result<f64, AmountError> {
    let (number, seconds) = split_rate(text)?;
    let number = NUMBER.real(number).map_err(|_| RATE.refused(text))?;
    Ok(number / seconds.unwrap_or(1) as f64)
}

impl Kind {
    fn refused(&self, text: &str) -> AmountError {
        AmountError::new(text, format!("not {}", self.expected))
    }

    /// The message for an amount with too many decimal places.
    fn too_fine(&self, text: &str) -> AmountError {
        match self.finest {
            Some(finest) => AmountError::new(
                text,
                format!("too precise: expected a multiple of {finest}"),
            ),
            None => self.refused(text),
        }
    }

    /// Splits `text` into its number and the factor of its unit.
    fn split<'t>(
        &self,
        text: &'t str,
        is_same: fn(&str, &str) -> bool,
    ) -> Result<(&'t str, u64), AmountError> {
        let text_inner = text.trim();
        let is_number = |letter: char| letter.is_ascii_digit() || letter == '.';
        let unit = text_inner.trim_start_matches(is_number);
        let number = &text_inner[..text_inner.len() - unit.len()];
        let has_digit = number.bytes().any(|byte| byte.is_ascii_digit());
        let unit = unit.trim_start();
        let found = self.units.iter().find(|(name, _)| is_same(name, unit));
        match found {
            Some((_, factor)) if has_digit => Ok((number, *factor)),
            _ => Err(self.refused(text)),
        }
    }

    /// The amount in smallest units, times `parts`.
    fn whole(&self, text: &str, parts: u64) -> Result<u64, AmountError> {
        let (number, factor) = self.split(text, str::eq_ignore_ascii_case)?;
        let whole = self.scaled(text, number, factor * parts)?;
        // Callers use `u64::MAX` as "no limit".
        let whole = u64::try_from(whole).ok().filter(|whole| *whole < u64::MAX);
        whole.ok_or_else(|| too_large(text))
    }

    fn real(&self, text: &str) -> Result<f64, AmountError> {
        let (number, factor) = self.split(text, str::eq_ignore_ascii_case)?;
        let number: f64 = number.parse().map_err(|_| self.refused(text))?;
        let number = number * factor as f64;
        // A number with enough digits parses as infinity.
        match number.is_finite() {
            true => Ok(number),
            false => Err(too_large(text)),
        }
    }

    /// `number` times `factor`, without rounding.
    fn scaled(&self, text: &str, number: &str, factor: u64) -> Result<u128, AmountError> {
        // More decimal places are refused, so that a power of ten times a factor fits into u128.
        const PLACES_MAX: usize = 15;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let fraction = fraction.trim_end_matches('0');
        if fraction.contains('.') {
            return Err(self.refused(text));
        }
        if fraction.len() > PLACES_MAX {
            return Err(self.too_fine(text));
        }
        // An empty part is 0: `.5` and `5.` are valid.
        let digits = |digits: &str| format!("0{digits}").parse::<u128>();
        let whole = digits(whole).map_err(|_| too_large(text))?;
        let whole = whole.checked_mul(u128::from(factor));
        let places = 10_u128.pow(fraction.len() as u32);
        let part = digits(fraction).map_err(|_| self.refused(text))? * u128::from(factor);
        match part % places {
            0 => whole
                .and_then(|whole| whole.checked_add(part / places))
                .ok_or_else(|| too_large(text)),
            _ => Err(self.too_fine(text)),
        }
    }
}

fn too_large(text: &str) -> AmountError {
    AmountError::new(text, "too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_require_time_unit() {
        for (text, nanoseconds) in [
            ("1ns", 1),
            ("500us", 500_000),
            ("2.5µs", 2_500),
            ("250ms", 250_000_000),
            ("1.5s", 1_500_000_000),
            ("0.050s", 50_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            (" 1 s ", 1_000_000_000),
            ("1m", 60_000_000_000),
            ("1.5h", 5_400_000_000_000),
            ("2d", 172_800_000_000_000),
            ("0s", 0),
        ] {
            assert_eq!(
                duration(text),
                Ok(Duration::from_nanos(nanoseconds)),
                "{text}"
            );
        }
        for text in [
            "", "s", "1", ".s", "1..5s", "1.5.5s", "-1s", "+1s", "1S", "1M", "1min", "1e3s",
            "1_000s", "1h 30m",
        ] {
            let expected = format!("{text:?} is not {}", DURATION.expected);
            assert_eq!(duration(text).unwrap_err().to_string(), expected);
        }
        for text in ["1.5ns", "0.4ns", "1.0000000000000000000000000000000001s"] {
            let expected = format!("{text:?} is too precise: expected a multiple of a nanosecond");
            assert_eq!(duration(text).unwrap_err().to_string(), expected);
        }
        let digits = "9".repeat(50) + "h";
        for text in [&digits, "99999999999999999999h"] {
            assert_eq!(duration(text), Err(too_large(text)));
        }
    }

    #[test]
    fn bare_durations_use_default_unit() {
        for (text, same) in [("5", "5s"), ("5.", "5s"), ("1.5 ", "1.5s"), ("2ms", "2ms")] {
            assert_eq!(duration_or(text, "s"), duration(same), "{text}");
        }
        for text in ["-1", "", "."] {
            let expected = format!("{text:?} is not {}", DURATION.expected);
            assert_eq!(duration_or(text, "s").unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn counts_use_1000_and_sizes_1024() {
        for (text, expected, bytes) in [
            ("0", 0, 0),
            ("100", 100, 100),
            ("10k", 10_000, 10_240),
            ("10 K", 10_000, 10_240),
            ("1.5m", 1_500_000, 1_572_864),
            ("1.5M", 1_500_000, 1_572_864),
            ("2g", 2_000_000_000, 2_147_483_648),
        ] {
            assert_eq!(count(text), Ok(expected), "{text}");
            assert_eq!(number(text), Ok(expected as f64), "{text}");
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for (text, bytes) in [("4MiB", 4 << 20), ("64KiB", 64 << 10), ("1gib", 1 << 30)] {
            assert_eq!(size(text), Ok(bytes), "{text}");
            assert!(count(text).is_err(), "{text}");
        }
        for text in ["", "k", "1.5", "0.0001k", "1kb", "1MB", "-1", "1_000"] {
            assert!(
                count(text)
                    .unwrap_err()
                    .to_string()
                    .contains(COUNT.expected)
            );
            assert!(size(text).unwrap_err().to_string().contains(SIZE.expected));
        }
        for text in ["99999999999999999999g", "18446744073709551615"] {
            assert_eq!(size(text), Err(too_large(text)));
        }
    }

    #[test]
    fn percentages_are_exact() {
        assert_eq!(percent("0.1%"), Ok(0.1));
        assert_eq!(percent_in("0.29 %", 100), Ok(29));
        assert_eq!(percent_in("300%", 1), Ok(300));
        for text in ["", "%", "5", "0.5", "-1%", "x%", "nan%", "0.001%"] {
            assert!(percent_in(text, 100).is_err(), "{text}");
        }
        let digits = "9".repeat(400);
        for text in [digits.clone() + "%", digits] {
            assert!(percent(&text).is_err(), "{text}");
            assert!(number(&text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_are_per_second_minute_or_hour() {
        for (text, expected) in [
            ("100", 100.0),
            ("99.5/s", 99.5),
            ("6k/m", 100.0),
            ("900 / h", 0.25),
        ] {
            assert_eq!(per_second(text), Ok(expected), "{text}");
        }
        for text in ["", "/s", "5/", "5/d", "5s", "5//s", "1e3", "-1", "1.5.5"] {
            let expected = format!("{text:?} is not {}", RATE.expected);
            assert_eq!(per_second(text).unwrap_err().to_string(), expected);
            assert_eq!(rate(text).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn rates_are_exact() {
        for (text, count, seconds) in [
            ("100", 100, 1),
            ("100.0 / s", 100, 1),
            ("1.5", 3, 2),
            ("0.5/s", 1, 2),
            ("6k/m", 100, 1),
            ("1.5/m", 1, 40),
            ("0.000001/h", 1, 3_600_000_000),
            ("0", 0, 1),
        ] {
            assert_eq!(rate(text), Ok(Rate { count, seconds }), "{text}");
        }
        let error = rate("0.0000001").unwrap_err().to_string();
        assert!(
            error.ends_with("expected a multiple of a millionth"),
            "{error}"
        );
        assert_eq!(rate("99999999t"), Err(too_large("99999999t")));
    }
}
