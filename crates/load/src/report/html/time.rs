//! Format of times in a page.

use onrush_measure::units;

pub(super) fn time(us: f64) -> String {
    units::nanoseconds(us * 1000.0).replace("us", "µs")
}
