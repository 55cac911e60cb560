//! Moments as people and file names write them. Pure.

use std::time::{SystemTime, UNIX_EPOCH};

/// `2026-03-01T09:05:07Z`.
pub fn rfc3339(time: SystemTime) -> String {
    let (date, seconds) = split(time);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{date}T{hour:02}:{minute:02}:{second:02}Z")
}

/// `2026-03-01-090507`, for names of directories.
pub fn file_stamp(time: SystemTime) -> String {
    let (date, seconds) = split(time);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{date}-{hour:02}{minute:02}{second:02}")
}

fn split(time: SystemTime) -> (String, u64) {
    let seconds = time
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    (date(seconds / 86_400), seconds % 86_400)
}

/// The Gregorian date of a day since 1970: years are counted from March, so that the leap day comes last.
fn date(day: u64) -> String {
    let day = day + 719_468;
    let era = day / 146_097;
    let of_era = day % 146_097;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day_of_month = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day_of_month:02}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn leap_days_and_ends_of_years_are_right() {
        let at = |seconds| rfc3339(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(1_772_355_907), "2026-03-01T09:05:07Z");
        assert_eq!(at(1_798_761_599), "2026-12-31T23:59:59Z");
    }
}
