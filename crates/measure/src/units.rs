//! Formats rates, bytes and times the same way in every table.
//!
//! [`Brief`] and [`BriefTime`] have h1load's widths of four and six characters for live lines; the rest is for
//! sentences and tables. Multiples are decimal everywhere (k = 1000).

use std::fmt;
use std::time::Duration;

const SUFFIXES_LARGE: [char; 6] = ['k', 'M', 'G', 'T', 'P', 'E'];
const SUFFIXES_SMALL: [char; 4] = ['m', 'u', 'n', 'p'];

/// A number in four characters with the unit prefix in place of the decimal point: `0.00`, `9.98`, `17.9`, `100.`,
/// `9k98`, `17k9`, `100M`. Truncated, not rounded, so that 999.9 does not need a fifth character. Values below 0.01 use
/// small prefixes: `5m00`. Negative and undefined numbers print as `-`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Brief(pub f64);

impl fmt::Display for Brief {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(&brief(self.0))
    }
}

fn brief(value: f64) -> String {
    if !value.is_finite() || value < 0.0 {
        return "-".to_owned();
    }
    let (value, point) = scaled(value);
    // Truncated to hundredths first: 9.999 is 9k99, not 10k0. The summand keeps 0.29 * 100 from becoming 28.
    let hundredths = (value * 100.0 + 1e-6) as u64;
    let (whole, fraction) = (hundredths / 100, hundredths % 100);
    match whole {
        0..10 => format!("{whole}{point}{fraction:02}"),
        10..100 => format!("{whole}{point}{}", fraction / 10),
        _ => format!("{whole}{point}"),
    }
}

/// Scales the value to between 1 and 1000 as far as there are prefixes. Also returns the character for the decimal
/// point.
fn scaled(mut value: f64) -> (f64, char) {
    let mut point = '.';
    if value == 0.0 {
        return (value, point);
    }
    if value < 0.01 {
        for suffix in SUFFIXES_SMALL {
            value *= 1000.0;
            point = suffix;
            if value >= 1.0 {
                break;
            }
        }
    }
    for suffix in SUFFIXES_LARGE {
        if value < 1000.0 {
            break;
        }
        value /= 1000.0;
        point = suffix;
    }
    (value, point)
}

/// A time in microseconds, printed in six characters with its unit: `79.69u`, `1.203m`, `12.50s`, `830.0n`; `   -  `
/// for `None`. Wider from 1000 s on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BriefTime(pub Option<f64>);

impl fmt::Display for BriefTime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(us) if us > 0.0 && us.is_finite() => out.pad(&brief_time(us)),
            _ => out.write_str("   -  "),
        }
    }
}

fn brief_time(us: f64) -> String {
    // Values that would round up to 1000.0 use the next unit.
    const NEXT: f64 = 999.95;
    let (value, unit) = if us < NEXT / 1e3 {
        (us * 1e3, 'n')
    } else if us < NEXT {
        (us, 'u')
    } else if us < NEXT * 1e3 {
        (us / 1e3, 'm')
    } else {
        (us / 1e6, 's')
    };
    match value {
        ..9.9995 => format!("{value:.3}{unit}"),
        9.9995..99.995 => format!("{value:.2}{unit}"),
        _ => format!("{value:.1}{unit}"),
    }
}

/// A duration with three digits and a unit: `850 ns`, `79.7 us`, `1.20 ms`, `12.5 s`. Seconds are the largest unit.
pub fn duration(time: Duration) -> String {
    nanoseconds(time.as_nanos() as f64)
}

/// [`duration`] for a number of nanoseconds, such as a mean.
pub fn nanoseconds(ns: f64) -> String {
    match ns {
        ..999.5 => format!("{} ns", three_digits(ns)),
        999.5..999.5e3 => format!("{} us", three_digits(ns / 1e3)),
        999.5e3..999.5e6 => format!("{} ms", three_digits(ns / 1e6)),
        _ => format!("{} s", three_digits(ns / 1e9)),
    }
}

/// Nanoseconds as microseconds, the unit of every report.
pub fn microseconds(ns: u64) -> f64 {
    ns as f64 / 1000.0
}

/// A rate with three digits and a decimal prefix: `950/s`, `17.9 k/s`, `2.05 M/s`.
pub fn rate(per_s: f64) -> String {
    let (value, suffix) = multiple(per_s);
    if suffix.is_empty() {
        format!("{}/s", three_digits(value))
    } else {
        format!("{} {suffix}/s", three_digits(value))
    }
}

/// A number of bytes with three digits and a decimal prefix: `950 B`, `17.9 kB`, `2.05 MB`.
pub fn bytes(count: f64) -> String {
    let (value, suffix) = multiple(count);
    format!("{} {suffix}B", three_digits(value))
}

/// Bytes per second as bits per second, as for network links: `8.00 Mbit/s` for a million bytes.
pub fn bits_per_s(bytes_per_s: f64) -> String {
    let (value, suffix) = multiple(bytes_per_s * 8.0);
    format!("{} {suffix}bit/s", three_digits(value))
}

/// A number with thousands separators: `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A number and its noun in singular or plural: `1 request`, `1,234 requests`, `2 addresses`.
pub fn plural(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ if noun.ends_with('s') => format!("{} {noun}es", count(number)),
        _ => format!("{} {noun}s", count(number)),
    }
}

/// A percentile as in tables and JSON keys: `50`, `99.9`, `99.9999`.
pub fn percentile(percentile: f64) -> String {
    format!("{percentile}")
}

/// Scales the value below 1000 and returns its decimal prefix, at most `E`.
fn multiple(value: f64) -> (f64, &'static str) {
    const SUFFIXES: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
    let mut scaled = value;
    for suffix in SUFFIXES {
        // 999.5 would print as 1000 with three digits.
        if scaled.abs() < 999.5 {
            return (scaled, suffix);
        }
        scaled /= 1000.0;
    }
    (value / 1e18, "E")
}

/// Three significant digits of a number below 1000; whole numbers get no decimals.
fn three_digits(value: f64) -> String {
    match value.abs() {
        size if size == size.trunc() && size < 1000.0 => format!("{value}"),
        ..9.995 => format!("{value:.2}"),
        9.995..99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brief_numbers_have_four_characters() {
        for (number, text) in [
            (0.0, "0.00"),
            (0.5, "0.50"),
            (0.29, "0.29"),
            (1.0, "1.00"),
            (9.98, "9.98"),
            (9.999, "9.99"),
            (17.9, "17.9"),
            (99.99, "99.9"),
            (100.0, "100."),
            (999.99, "999."),
            (1_000.0, "1k00"),
            (9_980.0, "9k98"),
            (17_950.0, "17k9"),
            (100e6, "100M"),
            (2.04e6, "2M04"),
            (92e9, "92G0"),
            (0.005, "5m00"),
            (1e18, "1E00"),
            (f64::NAN, "-"),
            (f64::INFINITY, "-"),
            (-1.0, "-"),
        ] {
            assert_eq!(Brief(number).to_string(), text, "of {number}");
        }
        let mut number = 0.001;
        while number < 9e20 {
            assert_eq!(Brief(number).to_string().len(), 4, "of {number}");
            number *= 1.0137;
        }
    }

    #[test]
    fn brief_times_have_six_characters() {
        for (us, text) in [
            (79.69, "79.69u"),
            (0.83, "830.0n"),
            (1.0, "1.000u"),
            (9.9999, "10.00u"),
            (99.999, "100.0u"),
            (999.99, "1.000m"),
            (1_203.0, "1.203m"),
            (12_500_000.0, "12.50s"),
        ] {
            assert_eq!(BriefTime(Some(us)).to_string(), text, "of {us}");
        }
        assert_eq!(BriefTime(None).to_string(), "   -  ");
        assert_eq!(BriefTime(Some(0.0)).to_string(), "   -  ");
        let mut us = 0.001;
        while us < 999e6 {
            assert_eq!(BriefTime(Some(us)).to_string().len(), 6, "of {us}");
            us *= 1.0137;
        }
    }

    #[test]
    fn quantities_have_three_digits_and_unit() {
        assert_eq!(nanoseconds(850.0), "850 ns");
        assert_eq!(nanoseconds(999.7), "1.00 us");
        assert_eq!(duration(Duration::from_nanos(79_690)), "79.7 us");
        assert_eq!(duration(Duration::from_micros(1_203)), "1.20 ms");
        assert_eq!(duration(Duration::from_secs(12)), "12 s");
        assert_eq!(duration(Duration::from_secs(7200)), "7200 s");
        assert_eq!(rate(950.0), "950/s");
        assert_eq!(rate(17_949.0), "17.9 k/s");
        assert_eq!(rate(999_700.0), "1.00 M/s");
        assert_eq!(bytes(0.0), "0 B");
        assert_eq!(bytes(2_050_000.0), "2.05 MB");
        assert_eq!(bits_per_s(1e6), "8 Mbit/s");
    }

    #[test]
    fn counts_have_thousands_separators() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(count(number), text);
        }
    }

    #[test]
    fn percentile_names_have_no_trailing_zeros() {
        assert_eq!(
            [50.0, 99.9, 99.9999].map(percentile),
            ["50", "99.9", "99.9999"]
        );
    }
}
