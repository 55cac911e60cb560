//! Times in a page.

use onrush_measure::units;

use crate::report::latency::Latency;

pub(super) fn time(us: f64) -> String {
    units::nanoseconds(us * 1000.0).replace("us", "µs")
}

/// A figure of some requests that is only known to be at least so much is marked, as in the text.
pub(super) fn bounded_time(latency: &Latency, name: &str, us: f64) -> String {
    match latency.is_at_least(name) {
        true => format!("> {}", time(us)),
        false => time(us),
    }
}
