//! Rounds numbers to the precision of a result.

use std::time::Duration;

pub(super) fn share_of(nanoseconds: u64, elapsed: Duration) -> f64 {
    if elapsed.is_zero() {
        return 0.0;
    }
    nanoseconds as f64 / elapsed.as_nanos() as f64
}

pub(super) fn per_second(count: u64, time: Duration) -> f64 {
    let seconds = time.as_secs_f64();
    if seconds > 0.0 {
        rounded(count as f64 / seconds)
    } else {
        0.0
    }
}

/// To millionths: a float of seconds since 1970 has no more digits.
pub(super) fn microseconds(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

/// To thousandths: more digits of a mean or a rate are not significant.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
