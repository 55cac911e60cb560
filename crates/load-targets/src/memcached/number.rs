//! Numbers of memcached's text protocol, parsed like strtol(3), as memcached does: white space and a sign may precede
//! the digits, and white space followed by anything may follow them.

/// Parses an unsigned 64-bit number.
pub(super) fn unsigned(text: &[u8]) -> Option<u64> {
    let (is_negative, magnitude) = magnitude(text)?;
    match is_negative && magnitude > 0 {
        true => None,
        false => Some(magnitude),
    }
}

pub(super) fn unsigned_32(text: &[u8]) -> Option<u32> {
    unsigned(text)?.try_into().ok()
}

/// Parses a signed 32-bit number.
pub(super) fn signed_32(text: &[u8]) -> Option<i32> {
    let (is_negative, magnitude) = magnitude(text)?;
    let magnitude = i64::try_from(magnitude).ok()?;
    let number = match is_negative {
        true => -magnitude,
        false => magnitude,
    };
    number.try_into().ok()
}

fn magnitude(text: &[u8]) -> Option<(bool, u64)> {
    let start = text.iter().position(|&byte| !is_space(byte))?;
    let text = &text[start..];
    let (is_negative, digits) = match text.first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let count = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let (digits, rest) = digits.split_at(count.count());
    if digits.is_empty() || rest.first().is_some_and(|&byte| !is_space(byte)) {
        return None;
    }
    let mut number: u64 = 0;
    for digit in digits {
        number = number
            .checked_mul(10)?
            .checked_add(u64::from(digit - b'0'))?;
    }
    Some((is_negative, number))
}

/// isspace(3).
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_syntax_matches_strtol() {
        for (text, number) in [
            ("0", Some(0)),
            ("+5", Some(5)),
            (" 12\r\n", Some(12)),
            ("12 34", Some(12)),
            ("-0", Some(0)),
            ("-1", None),
            ("", None),
            ("+", None),
            ("5x", None),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
        ] {
            assert_eq!(unsigned(text.as_bytes()), number, "{text:?}");
        }
        assert_eq!(unsigned_32(b"4294967295"), Some(u32::MAX));
        assert_eq!(unsigned_32(b"4294967296"), None);
        assert_eq!(signed_32(b"-2147483648"), Some(i32::MIN));
        assert_eq!(signed_32(b"2147483648"), None);
    }
}
