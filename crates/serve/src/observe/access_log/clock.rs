//! Timestamps of log lines.

use std::net::IpAddr;
use std::time::Duration;

use onrush_engine::clock::unix_time;
use onrush_engine::{Core, Instant};
use time::{Month, OffsetDateTime};

/// Caches the last second and the last client as text, because the next line often has the same.
#[derive(Debug, Default)]
pub(super) struct Clock {
    second: Option<u64>,
    /// `2026-11-23T15:04:05`
    rfc3339: String,
    /// `23/Nov/2026:15:04:05 +0000`
    combined: String,
    client: Option<(IpAddr, String)>,
    /// A time on the core's clock and the wall-clock time then.
    wall: Option<(Instant, Duration)>,
}

/// How long a wall-clock reading is used: changes of the wall clock take effect after it.
const WALL_KEPT: Duration = Duration::from_secs(1);

impl Clock {
    /// Returns the wall-clock time since 1970 at the start of this iteration of the event loop. Reads the wall clock
    /// once per second instead of once per line.
    pub(super) fn wall(&mut self, core: &Core) -> Duration {
        let now = core.now();
        if let Some((then, wall)) = self.wall
            && now.since(then) < WALL_KEPT
        {
            return wall + now.since(then);
        }
        let wall = unix_time();
        self.wall = Some((core.now_exact(), wall));
        wall
    }

    pub(super) fn at(&mut self, moment: Duration, client: Option<IpAddr>) -> &Clock {
        if let Some(client) = client
            && self
                .client
                .as_ref()
                .is_none_or(|(known, _)| *known != client)
        {
            self.client = Some((client, client.to_string()));
        }
        let second = moment.as_secs();
        if self.second != Some(second) {
            self.second = Some(second);
            let seconds = i64::try_from(second).unwrap_or(i64::MAX);
            let date = OffsetDateTime::from_unix_timestamp(seconds);
            let date = date.unwrap_or(OffsetDateTime::UNIX_EPOCH);
            let (year, month, day) = date.to_calendar_date();
            let (hour, minute, second) = date.to_hms();
            self.rfc3339 = format!(
                "{year:04}-{:02}-{day:02}T{hour:02}:{minute:02}:{second:02}",
                u8::from(month)
            );
            let month = short(month);
            self.combined =
                format!("{day:02}/{month}/{year:04}:{hour:02}:{minute:02}:{second:02} +0000");
        }
        self
    }
    /// The time in the combined format.
    pub(super) fn combined(&self) -> &str {
        &self.combined
    }

    /// The last client's address.
    pub(super) fn client(&self) -> Option<&str> {
        self.client.as_ref().map(|(_, text)| text.as_str())
    }
}

fn short(month: Month) -> &'static str {
    const NAMES: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    NAMES[usize::from(u8::from(month)) - 1]
}

/// Writes a time in RFC 3339 format, in UTC, with microseconds.
pub(super) fn rfc3339(moment: Duration, out: &mut Vec<u8>) {
    let mut clock = Clock::default();
    write_moment(clock.at(moment, None), moment, out);
}

/// Writes a time in RFC 3339 format, using the cached seconds of `clock`.
pub(super) fn write_moment(clock: &Clock, moment: Duration, out: &mut Vec<u8>) {
    out.extend_from_slice(clock.rfc3339.as_bytes());
    write_fraction(moment, out);
    out.push(b'Z');
}

/// Writes the fraction of a second, in microseconds.
pub(super) fn write_fraction(duration: Duration, out: &mut Vec<u8>) {
    let mut digits = *b".000000";
    let mut left = duration.subsec_micros();
    for digit in digits[1..].iter_mut().rev() {
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
    }
    out.extend_from_slice(&digits);
}
