//! Measures the clock offset of a host by round trips.

use std::time::{SystemTime, UNIX_EPOCH};

use super::super::agent_protocol::{Request, Response};
use super::super::failure::{Try, failed};
use super::connection::Connection;
use crate::environment::ClockOffset;
use crate::limits::CLOCK_TRIPS;

/// Requests the time repeatedly and uses the shortest round trip.
pub(super) fn compare(connection: &Connection) -> Try<ClockOffset> {
    let mut trips = Vec::new();
    for _ in 0..CLOCK_TRIPS {
        let sent = now();
        let Response::Clock(there) = connection.request_one(Request::Clock)? else {
            return failed(connection.unexpected_response());
        };
        trips.push((sent, there, now()));
    }
    Ok(closest(&trips))
}

/// Offset from the times of sending, of the response (on the host), and of receiving.
fn closest(trips: &[(f64, f64, f64)]) -> ClockOffset {
    let offsets = trips.iter().map(|(sent, there, heard)| ClockOffset {
        ahead_s: there - (sent + heard) / 2.0,
        // Not negative, even if the clock was set back during the trip.
        error_s: ((heard - sent) / 2.0).max(0.0),
    });
    let shortest = offsets.min_by(|a, b| a.error_s.total_cmp(&b.error_s));
    shortest.unwrap_or(ClockOffset {
        ahead_s: 0.0,
        error_s: f64::MAX,
    })
}

pub(in crate::run) fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortest_round_trip_gives_clock_offset() {
        let offset = closest(&[
            (100.0, 160.9, 101.0),
            (200.0, 260.05, 200.1),
            (300.0, 361.0, 302.0),
        ]);
        assert!((offset.ahead_s - 60.0).abs() < 1e-9, "{offset:?}");
        assert!((offset.error_s - 0.05).abs() < 1e-9, "{offset:?}");
    }
}
