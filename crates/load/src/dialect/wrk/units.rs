//! Numbers in wrk's units.

/// Factor between units, and their names.
pub(super) struct Units {
    scale: f64,
    base: &'static str,
    larger: &'static [&'static str],
}

pub(super) const MICROSECONDS: Units = Units {
    scale: 1000.0,
    base: "us",
    larger: &["ms"],
};

pub(super) const SECONDS: Units = Units {
    scale: 60.0,
    base: "s",
    larger: &["m"],
};

pub(super) const BINARY: Units = Units {
    scale: 1024.0,
    base: "",
    larger: &["K", "M", "G", "T"],
};

pub(super) const METRIC: Units = Units {
    scale: 1000.0,
    base: "",
    larger: &["k", "M", "G", "T"],
};

/// Formats a number with its unit. The next unit is used from 85 % of it.
pub(super) fn scaled(mut value: f64, units: &Units, decimals: usize) -> String {
    let mut unit = units.base;
    for larger in units.larger {
        if value < units.scale * 0.85 {
            break;
        }
        value /= units.scale;
        unit = larger;
    }
    format!("{value:.decimals$}{unit}")
}

pub(super) fn time(us: f64) -> String {
    if us >= 1e6 {
        return scaled(us / 1e6, &SECONDS, 2);
    }
    scaled(us, &MICROSECONDS, 2)
}

/// Right-aligns `text` in `width` characters and reserves two for the unit, so that digits align.
pub(super) fn cell(text: &str, width: usize) -> String {
    let last_two = text.chars().rev().take(2);
    let letters = last_two.filter(char::is_ascii_alphabetic).count();
    let pad = 2 - letters;
    let width = width - pad;
    format!("{text:>width$.width$}{:pad$}", "")
}
