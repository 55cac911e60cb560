//! Calls of gRPC: unary ones, each a request of HTTP/2 with one message (gRPC over HTTP2, Protocol). They are requests of a mix as
//! others are; what is their own is how a message becomes a body, and what of a response says what came of a call.

pub mod descriptors;
pub mod limits;

pub(crate) mod code;
pub(crate) mod message;

use std::time::Duration;

/// The value of `grpc-timeout` for so much time: eight digits at most, and a unit (Timeout).
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
    fn a_time_has_eight_digits_at_most() {
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
