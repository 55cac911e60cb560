//! Format of the Date field (RFC 9110 5.6.7). The caller reads the clock.

use time::UtcDateTime;

/// Length of a formatted date.
pub const DATE_BYTES: usize = 29;

/// End of the year 9999; the format has four digits for the year.
const SECONDS_MAX: u64 = 253_402_300_799;

/// IMF-fixdate, such as `Sun, 06 Nov 1994 08:49:37 GMT`, of a Unix time in seconds. Later times than the year 9999 are
/// formatted as its last second.
pub fn format(unix_seconds: u64) -> [u8; DATE_BYTES] {
    const WEEKDAYS: &[u8; 21] = b"SunMonTueWedThuFriSat";
    const MONTHS: &[u8; 36] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    let seconds = unix_seconds.min(SECONDS_MAX);
    let moment = UtcDateTime::from_unix_timestamp(seconds as i64);
    let moment = moment.unwrap_or(UtcDateTime::UNIX_EPOCH);
    let (year, month, day) = moment.to_calendar_date();
    let (hour, minute, second) = moment.as_hms();
    let year = year as u32;
    let weekday = usize::from(moment.weekday().number_days_from_sunday()) * 3;
    let month = (usize::from(u8::from(month)) - 1) * 3;
    let mut text = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    text[..3].copy_from_slice(&WEEKDAYS[weekday..weekday + 3]);
    two_digits(&mut text, 5, day);
    text[8..11].copy_from_slice(&MONTHS[month..month + 3]);
    two_digits(&mut text, 12, (year / 100) as u8);
    two_digits(&mut text, 14, (year % 100) as u8);
    two_digits(&mut text, 17, hour);
    two_digits(&mut text, 20, minute);
    two_digits(&mut text, 23, second);
    text
}

fn two_digits(text: &mut [u8; DATE_BYTES], at: usize, number: u8) {
    text[at] = b'0' + number / 10;
    text[at + 1] = b'0' + number % 10;
}

#[cfg(test)]
mod tests {
    use super::format;

    #[test]
    fn dates_have_imf_fixdate_format() {
        for (seconds, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_709_164_799, "Wed, 28 Feb 2024 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
            (253_402_300_799, "Fri, 31 Dec 9999 23:59:59 GMT"),
            (u64::MAX, "Fri, 31 Dec 9999 23:59:59 GMT"),
        ] {
            assert_eq!(str::from_utf8(&format(seconds)), Ok(text));
        }
    }
}
