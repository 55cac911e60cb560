//! Moments by the wall clock, which several machines share as far as their clocks are right, and how right this one's is.

use std::fmt;
use std::fs;
use std::time::Duration;

use onrush_engine::clock::{self, Discipline};
use serde::{Deserialize, Serialize};

/// A moment: time since 1970-01-01T00:00:00Z, leap seconds not counted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct WallTime(Duration);

impl WallTime {
    /// The present moment.
    pub fn now() -> WallTime {
        WallTime(clock::unix_time())
    }

    /// So many seconds since 1970; what is negative or no number is 1970.
    pub fn of_seconds(seconds: f64) -> WallTime {
        WallTime(Duration::try_from_secs_f64(seconds).unwrap_or_default())
    }

    pub(crate) const fn of_nanoseconds(nanoseconds: u64) -> WallTime {
        WallTime(Duration::from_nanos(nanoseconds))
    }

    /// Seconds since 1970.
    pub fn seconds(self) -> f64 {
        self.0.as_secs_f64()
    }

    /// Nanoseconds since 1970; at the end of the count, in the year 2554, no more.
    pub(crate) fn nanoseconds(self) -> u64 {
        u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX)
    }

    /// The time from `earlier` until then; zero when `earlier` is later.
    pub fn since(self, earlier: WallTime) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// Reads a date and a time of RFC 3339, such as `2026-11-22T12:00:00Z` or `2026-11-22T13:00:00.5+01:00`, or seconds
    /// since 1970, such as `1795348800.5`.
    ///
    /// # Errors
    /// A sentence with the text and what was expected.
    pub fn parse(text: &str) -> Result<WallTime, String> {
        let read = match text.contains(':') {
            true => date_time(text),
            false => {
                seconds(text).map(|(seconds, nanoseconds)| Duration::new(seconds, nanoseconds))
            }
        };
        read.map(WallTime).ok_or_else(|| {
            format!("{text:?} is no moment: expected one such as 2026-11-22T12:00:00Z, 2026-11-22T13:00:00.5+01:00, or seconds since 1970 such as 1795348800.5 (date +%s)")
        })
    }

    /// As `2026-05-04 13:05:09`, in UTC.
    pub fn date_and_time(self) -> String {
        let (date, time) = self.parts();
        format!("{date} {time}")
    }

    /// Date and time to the second, in UTC.
    fn parts(self) -> (String, String) {
        let (days, in_day) = (self.0.as_secs() / 86_400, self.0.as_secs() % 86_400);
        let (year, month, day) = civil(days);
        (
            format!("{year}-{month:02}-{day:02}"),
            format!(
                "{:02}:{:02}:{:02}",
                in_day / 3600,
                in_day / 60 % 60,
                in_day % 60
            ),
        )
    }
}

/// As RFC 3339 has it, with microseconds, in UTC.
impl fmt::Display for WallTime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (date, time) = self.parts();
        write!(out, "{date}T{time}.{:06}Z", self.0.subsec_micros())
    }
}

/// The date of a day counted from 1970-01-01, in the Gregorian calendar: years begin in March here, so that the day that
/// leap years add is the last.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

/// The way back from [`civil`]; `None` for days that the calendar has not, or that were before 1970.
fn day_of(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) {
        return None;
    }
    let year_from_march = if month > 2 { year } else { year - 1 };
    let (era, year_of_era) = (year_from_march / 400, year_from_march % 400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day.checked_sub(1)?;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468;
    // A day too many is the first of the next month.
    (civil(days) == (year, month, day)).then_some(days)
}

/// RFC 3339 5.6. A leap second is refused: no clock here has one.
fn date_time(text: &str) -> Option<Duration> {
    let (date, rest) = text.split_once(['T', 't', ' '])?;
    let [year, month, day] = numbers(date, '-')?;
    let at = rest.find(['Z', 'z', '+', '-'])?;
    let (time, zone) = rest.split_at(at);
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = numbers(time, ':')?;
    if date.len() != 10 || time.len() != 8 || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let local = day_of(year, month, day)? * 86_400 + hour * 3600 + minute * 60 + second;
    let utc = match zone.split_at(1) {
        ("Z" | "z", "") => local,
        (sign, offset) if offset.len() == 5 => {
            let [hours, minutes] = numbers(offset, ':').filter(|[h, m]| *h < 24 && *m < 60)?;
            let offset = hours * 3600 + minutes * 60;
            match sign {
                "+" => local.checked_sub(offset)?,
                _ => local + offset,
            }
        }
        _ => return None,
    };
    Some(Duration::new(utc, nanoseconds(fraction)?))
}

/// Exactly so many numbers with `between` between them.
fn numbers<const COUNT: usize>(text: &str, between: char) -> Option<[u64; COUNT]> {
    let numbers: Option<Vec<u64>> = text.split(between).map(number).collect();
    numbers?.try_into().ok()
}

/// Digits only: the parser of numbers would take a sign.
fn number(digits: &str) -> Option<u64> {
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_plain)
}

fn seconds(text: &str) -> Option<(u64, u32)> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
    Some((number(seconds)?, nanoseconds(fraction)?))
}

/// Of a fraction's digits; further ones than nine are less than anybody could mean.
fn nanoseconds(digits: &str) -> Option<u32> {
    number(digits.get(..digits.len().min(18))?)?;
    let nine: String = digits.chars().chain("000000000".chars()).take(9).collect();
    nine.parse().ok()
}

/// When a run began by the wall clock, and what is known of that clock.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ClockRow {
    /// When the run began, as RFC 3339 has it; none when it was ended before.
    pub started_at: Option<String>,
    /// When it was to begin; none when that was not said.
    pub start_asked: Option<String>,
    /// Whether a program keeps the clock right, as the kernel knows; none where it may not be asked.
    pub synchronized: Option<bool>,
    /// What that program has measured and the kernel has not corrected yet.
    pub offset_us: Option<f64>,
    /// How wrong the clock is, as that program estimates.
    pub error_estimated_us: Option<f64>,
    /// How wrong it is at most.
    pub error_max_us: Option<f64>,
    /// Names the kernel that keeps the clock, since it was booted: generators with the same one have the same clock.
    pub id: Option<String>,
    /// Of several generators, the time from the first one's start to the last one's, each by its own clock.
    pub spread_us: Option<f64>,
}

impl ClockRow {
    /// What is known of this machine's clock, for a run that began and was to begin so.
    pub(crate) fn new(began: Option<WallTime>, asked: Option<WallTime>) -> ClockRow {
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id");
        ClockRow {
            started_at: began.map(|began| began.to_string()),
            start_asked: asked.map(|asked| asked.to_string()),
            id: id.ok().map(|id| id.trim().to_owned()),
            ..clock::discipline().map_or(ClockRow::default(), ClockRow::of)
        }
    }

    fn of(discipline: Discipline) -> ClockRow {
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

    /// The moment in UTC, or what is wrong.
    fn read(text: &str) -> String {
        match WallTime::parse(text) {
            Ok(time) => time.to_string(),
            Err(sentence) => sentence,
        }
    }

    #[test]
    fn moments_are_read_as_rfc_3339_and_as_seconds() {
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
    fn what_is_no_moment_is_refused_with_examples() {
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
            "2026-06-30T23:59:60Z",
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
    fn dates_are_those_of_the_calendar() {
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
        fn what_is_written_is_read_as_the_same(microseconds in 0..253_402_300_800_000_000_u64) {
            let time = WallTime(Duration::from_micros(microseconds));
            prop_assert_eq!(WallTime::parse(&time.to_string()), Ok(time));
            let seconds = format!("{}.{:06}", microseconds / 1_000_000, microseconds % 1_000_000);
            prop_assert_eq!(WallTime::parse(&seconds), Ok(time));
        }

        #[test]
        fn any_text_is_a_moment_or_refused(text in "[0-9TZz:.+ -]{0,30}|\\PC{0,20}") {
            let _ = WallTime::parse(&text);
        }
    }
}
