//! Short numbers with units.

/// Seconds with a suitable unit; `-` if unknown.
pub fn time(seconds: Option<f64>) -> String {
    match seconds {
        None => "-".to_owned(),
        Some(seconds) if seconds < 999.5e-6 => format!("{:.0} us", seconds * 1e6),
        Some(seconds) if seconds < 9.995e-3 => format!("{:.2} ms", seconds * 1e3),
        Some(seconds) if seconds < 0.9995 => format!("{:.0} ms", seconds * 1e3),
        Some(seconds) => format!("{seconds:.2} s"),
    }
}

/// Three significant digits with a decimal prefix.
pub fn amount(number: f64) -> String {
    let mut number = number;
    for unit in ["", " k", " M", " G"] {
        if number < 999.5 {
            return match number {
                _ if unit.is_empty() && number.fract() == 0.0 => format!("{number:.0}"),
                small if small < 9.995 => format!("{number:.2}{unit}"),
                small if small < 99.95 => format!("{number:.1}{unit}"),
                _ => format!("{number:.0}{unit}"),
            };
        }
        number /= 1000.0;
    }
    format!("{number:.0} T")
}

/// Formats a fraction from 0 to 1 as a percentage: 0.25 is `25 %`.
pub fn share(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shortened_with_unit() {
        for (seconds, text) in [
            (12e-6, "12 us"),
            (1.234e-3, "1.23 ms"),
            (45.6e-3, "46 ms"),
            (2.5, "2.50 s"),
        ] {
            assert_eq!(time(Some(seconds)), text);
        }
        assert_eq!(time(None), "-");
        for (number, text) in [
            (0.0, "0"),
            (7.0, "7"),
            (0.5, "0.50"),
            (12.34, "12.3"),
            (999.4, "999"),
            (1234.0, "1.23 k"),
            (123_456.0, "123 k"),
            (5e12, "5 T"),
        ] {
            assert_eq!(amount(number), text);
        }
        assert_eq!(share(0.256), "26 %");
    }
}
