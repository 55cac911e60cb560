//! Wall-clock times, which several machines share as far as their clocks are synchronized, and the accuracy of this
//! machine's clock.

use std::fmt;
use std::fs;
use std::time::Duration;

use onrush_engine::clock::{self, ClockAccuracy};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;

/// Time since 1970-01-01T00:00:00Z, without leap seconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct WallTime(Duration);

impl WallTime {
    /// Returns the current time.
    pub fn now() -> WallTime {
        WallTime(clock::unix_time())
    }

    /// From seconds since 1970; negative numbers and NaN are 1970.
    pub fn of_seconds(seconds: f64) -> WallTime {
        WallTime(Duration::try_from_secs_f64(seconds).unwrap_or_default())
    }

    pub(crate) const fn of_nanoseconds(nanoseconds: u64) -> WallTime {
        WallTime(Duration::from_nanos(nanoseconds))
    }

    /// Returns the seconds since 1970.
    pub fn seconds(self) -> f64 {
        self.0.as_secs_f64()
    }

    /// Returns the nanoseconds since 1970, at most `u64::MAX` (the year 2554).
    pub(crate) fn nanoseconds(self) -> u64 {
        u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Returns the time since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: WallTime) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// Parses an RFC 3339 date and time, such as `2026-11-22T12:00:00Z` or `2026-11-22T13:00:00.5+01:00`, or seconds
    /// since 1970, such as `1795348800.5`.
    ///
    /// # Errors
    /// A sentence with the text and the expected form.
    pub fn parse(text: &str) -> Result<WallTime, String> {
        let read = match text.contains(':') {
            true => date_time(text),
            false => {
                seconds(text).map(|(seconds, nanoseconds)| Duration::new(seconds, nanoseconds))
            }
        };
        read.map(WallTime).ok_or_else(|| {
            format!("{text:?} is not a time: expected one such as 2026-11-22T12:00:00Z, 2026-11-22T13:00:00.5+01:00, \
                or seconds since 1970 such as 1795348800.5 (date +%s)")
        })
    }

    /// Formats it as `2026-05-04 13:05:09`, in UTC.
    pub fn date_and_time(self) -> String {
        self.written(SECONDS)
    }

    /// In UTC; times after the year 9999 become 1970-01-01.
    fn written(self, format: &[BorrowedFormatItem<'_>]) -> String {
        let nanoseconds = i128::try_from(self.0.as_nanos()).unwrap_or_default();
        let moment = OffsetDateTime::from_unix_timestamp_nanos(nanoseconds);
        let moment = moment.unwrap_or(OffsetDateTime::UNIX_EPOCH);
        moment
            .format(format)
            .expect("a date has all formatted parts")
    }
}

const SECONDS: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day] [hour]:[minute]:[second]");

const MICROSECONDS: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");

/// Writes it as RFC 3339 with microseconds, in UTC.
impl fmt::Display for WallTime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.written(MICROSECONDS))
    }
}

/// RFC 3339 section 5.6, which also permits a space before the time. A leap second becomes the end of the previous
/// second.
fn date_time(text: &str) -> Option<Duration> {
    let moment = OffsetDateTime::parse(&text.replacen(' ', "T", 1), &Rfc3339).ok()?;
    Duration::try_from(moment - OffsetDateTime::UNIX_EPOCH).ok()
}

/// Digits only, since `parse` would accept a sign.
fn number(digits: &str) -> Option<u64> {
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_plain)
}

fn seconds(text: &str) -> Option<(u64, u32)> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
    Some((number(seconds)?, nanoseconds(fraction)?))
}

/// Parses the digits of a fraction; those after the ninth are ignored.
fn nanoseconds(digits: &str) -> Option<u32> {
    number(digits.get(..digits.len().min(18))?)?;
    let nine: String = digits.chars().chain("000000000".chars()).take(9).collect();
    nine.parse().ok()
}

/// Start of a run on the wall clock, and the state of that clock.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ClockRow {
    /// Start of the run in RFC 3339 form; `None` if the run ended before it.
    pub started_at: Option<String>,
    /// Scheduled start, if any.
    pub start_asked: Option<String>,
    /// Whether the clock is synchronized, according to the kernel; `None` if adjtimex(2) is not permitted.
    pub synchronized: Option<bool>,
    /// Offset measured by the time daemon that the kernel has not yet corrected.
    pub offset_us: Option<f64>,
    /// Error of the clock, as estimated by the time daemon.
    pub error_estimated_us: Option<f64>,
    /// Maximum error of the clock.
    pub error_max_us: Option<f64>,
    /// Boot id of the kernel: generators with the same id share a clock.
    pub id: Option<String>,
    /// For several generators: time between the first and the last start, each on its own clock.
    pub spread_us: Option<f64>,
}

impl ClockRow {
    /// Reads the state of this machine's clock, for a run that started at `began` and was scheduled for `asked`.
    pub(crate) fn new(began: Option<WallTime>, asked: Option<WallTime>) -> ClockRow {
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id");
        ClockRow {
            started_at: began.map(|began| began.to_string()),
            start_asked: asked.map(|asked| asked.to_string()),
            id: id.ok().map(|id| id.trim().to_owned()),
            ..clock::clock_accuracy().map_or(ClockRow::default(), ClockRow::of)
        }
    }

    fn of(discipline: ClockAccuracy) -> ClockRow {
        let us = |time: Duration| Some(time.as_secs_f64() * 1e6);
        ClockRow {
            synchronized: Some(discipline.is_synchronized),
            offset_us: Some(discipline.offset_ns as f64 / 1e3),
            error_estimated_us: us(discipline.error_estimated),
            error_max_us: us(discipline.error_max),
            ..ClockRow::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the time in UTC, or the error.
    fn read(text: &str) -> String {
        match WallTime::parse(text) {
            Ok(time) => time.to_string(),
            Err(sentence) => sentence,
        }
    }

    #[test]
    fn rfc_3339_and_unix_times_are_parsed() {
        for (text, utc) in [
            ("2026-11-22T12:00:00Z", "2026-11-22T12:00:00.000000Z"),
            ("2026-11-22t12:00:00.25z", "2026-11-22T12:00:00.250000Z"),
            ("2026-11-22 12:00:00Z", "2026-11-22T12:00:00.000000Z"),
            ("2026-03-01T00:30:00+01:00", "2026-02-28T23:30:00.000000Z"),
            ("2027-12-31T23:00:00-02:30", "2028-01-01T01:30:00.000000Z"),
            ("1795348800", "2026-11-22T12:00:00.000000Z"),
            ("1795348800.1234567891", "2026-11-22T12:00:00.123456Z"),
        ] {
            assert_eq!(read(text), utc, "of {text}");
        }
    }

    #[test]
    fn invalid_times_are_refused() {
        for text in [
            "",
            "now",
            "+5s",
            "-1",
            "1e9",
            "12:00:00Z",
            "2026-11-22",
            "2026-11-22T12:00:00",
            "2026-11-22T24:00:00Z",
            "2026-11-22T12:60:00Z",
            "2026-02-29T12:00:00Z",
            "2026-13-01T12:00:00Z",
            "2026-00-01T12:00:00Z",
            "2026-01-00T12:00:00Z",
            "26-01-01T12:00:00Z",
            "2026-1-1T12:00:00Z",
            "2026-11-22T12:00:00.Z",
            "2026-11-22T12:00:00+1:00",
            "2026-11-22T12:00:00+24:00",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:00:00+01:00",
            "1.x",
            "99999999999999999999",
        ] {
            let sentence = read(text);
            assert!(
                sentence.contains("expected one such as 2026-"),
                "{text}: {sentence}"
            );
        }
    }

    #[test]
    fn unix_time_converts_to_calendar_date() {
        for (unix_s, date) in [
            (0.0, "1970-01-01 00:00:00"),
            (951_782_399.0, "2000-02-28 23:59:59"),
            (951_782_400.0, "2000-02-29 00:00:00"),
            (4_107_542_400.0, "2100-03-01 00:00:00"),
            (1_798_761_599.9, "2026-12-31 23:59:59"),
        ] {
            assert_eq!(WallTime::of_seconds(unix_s).date_and_time(), date);
        }
    }

    proptest! {
        #[test]
        fn wall_time_round_trips(microseconds in 0..253_402_300_800_000_000_u64) {
            let time = WallTime(Duration::from_micros(microseconds));
            prop_assert_eq!(WallTime::parse(&time.to_string()), Ok(time));
            let seconds = format!("{}.{:06}", microseconds / 1_000_000, microseconds % 1_000_000);
            prop_assert_eq!(WallTime::parse(&seconds), Ok(time));
        }

        #[test]
        fn arbitrary_times_do_not_panic(text in "[0-9TZz:.+ -]{0,30}|\\PC{0,20}") {
            let _ = WallTime::parse(&text);
        }
    }
}
