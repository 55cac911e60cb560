//! The Date field's format (RFC 9110 5.6.7), from a number of seconds the caller took from its clock.

/// Length of a formatted date.
pub const DATE_BYTES: usize = 29;

/// The last second of the year 9999; the format has four digits for the year.
const SECONDS_MAX: u64 = 253_402_300_799;

/// IMF-fixdate, such as `Sun, 06 Nov 1994 08:49:37 GMT`, of so many seconds since 1970. Times after the year 9999
/// read as its last second.
pub fn format(unix_seconds: u64) -> [u8; DATE_BYTES] {
    const WEEKDAYS: &[u8; 21] = b"ThuFriSatSunMonTueWed"; // 1 January 1970 was a Thursday
    const MONTHS: &[u8; 36] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    let seconds = unix_seconds.min(SECONDS_MAX);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let weekday = (days % 7) as usize * 3;
    let month = (month as usize - 1) * 3;
    let mut text = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    text[..3].copy_from_slice(&WEEKDAYS[weekday..weekday + 3]);
    two_digits(&mut text, 5, day);
    text[8..11].copy_from_slice(&MONTHS[month..month + 3]);
    two_digits(&mut text, 12, year / 100);
    two_digits(&mut text, 14, year % 100);
    two_digits(&mut text, 17, second / 3600);
    two_digits(&mut text, 20, second / 60 % 60);
    two_digits(&mut text, 23, second % 60);
    text
}

fn two_digits(text: &mut [u8; DATE_BYTES], at: usize, number: u64) {
    text[at] = b'0' + (number / 10) as u8;
    text[at + 1] = b'0' + (number % 10) as u8;
}

/// Year, month and day of a day counted from 1 January 1970: Howard Hinnant's `civil_from_days`, which counts from
/// 1 March of the year 0 so that the leap day is a year's last.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::format;

    #[test]
    fn dates_read_as_the_rfc_writes_them() {
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
