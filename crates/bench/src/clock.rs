//! Formats times for reports and directory names.

use std::time::{SystemTime, UNIX_EPOCH};

use time::UtcDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

pub(crate) fn rfc3339(time: SystemTime) -> String {
    written(
        time,
        format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z"),
    )
}

/// `2026-03-01-090507`, for directory names.
pub(crate) fn file_stamp(time: SystemTime) -> String {
    written(
        time,
        format_description!("[year]-[month]-[day]-[hour][minute][second]"),
    )
}

/// Formats in UTC; clamps to 1970 and to the last second of the year 9999.
fn written(time: SystemTime, format: &[BorrowedFormatItem<'_>]) -> String {
    let since_1970 = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since_1970.as_secs()).unwrap_or(i64::MAX);
    let time = UtcDateTime::from_unix_timestamp(seconds).unwrap_or(UtcDateTime::MAX);
    time.format(format).expect("a date has all formatted parts")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn rfc3339_handles_leap_days_and_year_ends() {
        let at = |seconds| rfc3339(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(1_772_355_907), "2026-03-01T09:05:07Z");
        assert_eq!(at(1_798_761_599), "2026-12-31T23:59:59Z");
        assert_eq!(at(1 << 40), "9999-12-31T23:59:59Z");
    }
}
