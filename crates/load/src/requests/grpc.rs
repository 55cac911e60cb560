//! Unary gRPC calls, each an HTTP/2 request with one message (gRPC over HTTP2, Protocol). They are requests of a mix;
//! this module adds the encoding of messages and the outcome of responses.

pub mod descriptors;
pub mod limits;

pub(crate) mod code;
pub(crate) mod message;

use std::time::Duration;

/// Formats `time` as the value of `grpc-timeout`: at most eight digits and a unit (Timeout).
pub fn timeout(time: Duration) -> String {
    const NUMBER_MAX: u128 = 99_999_999;
    match (time.as_micros(), time.as_millis()) {
        (microseconds, _) if microseconds <= NUMBER_MAX => format!("{microseconds}u"),
        (_, milliseconds) if milliseconds <= NUMBER_MAX => format!("{milliseconds}m"),
        _ => format!("{}S", time.as_secs().min(NUMBER_MAX as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grpc_timeout_has_at_most_eight_digits() {
        for (time, expected) in [
            (Duration::from_millis(500), "500000u"),
            (Duration::from_secs(99), "99000000u"),
            (Duration::from_secs(100), "100000m"),
            (Duration::from_secs(100_000), "100000S"),
        ] {
            assert_eq!(timeout(time), expected);
        }
    }
}
