//! Formats numbers of results.

use onrush_measure::units;

pub(crate) fn number(value: f64, unit: &str) -> String {
    match unit {
        "/s" => units::rate(value),
        "B" if value < 10_000.0 => format!("{} B", units::count(value.round() as u64)),
        "B" => units::bytes(value),
        // Latencies reach milliseconds; costs of a request rarely do.
        "µs" if value >= 1_000.0 => units::nanoseconds(value * 1e3),
        // Rates of rare events, such as one in a hundred requests.
        "" if value != 0.0 && value < 0.1 => format!("{value:.4}"),
        "" => digits(value),
        _ => format!("{} {unit}", digits(value)),
    }
}

fn digits(value: f64) -> String {
    if value < 10.0 {
        format!("{value:.2}")
    } else if value < 100.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}
