//! Lines of responses and their words (memcached, doc/protocol.txt). Pure.

use memchr::memchr;

use crate::limits::LINE_BYTES_MAX;

/// Result of searching for a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LineSearch<'i> {
    /// The line without its end, and its length including the end.
    Line(&'i [u8], usize),
    Partial,
    /// Not a line, for this reason.
    Refused(&'static str),
}

/// Finds the line at the start of `input`. As in memcached, a line may end without a carriage return.
pub(super) fn find(input: &[u8]) -> LineSearch<'_> {
    let window = &input[..input.len().min(LINE_BYTES_MAX)];
    let Some(end) = memchr(b'\n', window) else {
        return match refused(window) {
            Some(reason) => LineSearch::Refused(reason),
            None if window.len() == LINE_BYTES_MAX => {
                LineSearch::Refused("a line longer than 2 KiB")
            }
            None => LineSearch::Partial,
        };
    };
    let line = &input[..end];
    match line {
        [rest @ .., b'\r'] => LineSearch::Line(rest, end + 1),
        _ => LineSearch::Line(line, end + 1),
    }
}

/// Returns why `input` does not come from a memcached server, if its first bytes show it.
fn refused(input: &[u8]) -> Option<&'static str> {
    match input {
        // A TLS record: an alert or a handshake of version 3.x (RFC 8446 section 5.1).
        [0x15 | 0x16, 3, ..] => Some("TLS: use memcacheds:// for this server"),
        // A possible start of one.
        [0x15 | 0x16] | [] | [b' '..=b'~' | b'\r' | b'\n', ..] => None,
        // Magic byte of responses in the binary protocol.
        [0x81, ..] => Some("a response of the binary protocol, which is not supported"),
        [..] => Some("bytes that are not text"),
    }
}

/// Returns why a line is not a valid response.
pub(super) fn unknown(line: &[u8]) -> &'static str {
    if line.starts_with(b"HTTP/") {
        return "an HTTP response: the server is not memcached";
    }
    if line.starts_with(b"-") || line.starts_with(b"+") {
        return "a Redis response: the server is not memcached";
    }
    refused(line).unwrap_or("a line that is not a response to the command")
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Words<'l>(&'l [u8]);

impl<'l> Words<'l> {
    pub(super) fn of(line: &'l [u8]) -> Words<'l> {
        Words(line)
    }
}

impl<'l> Iterator for Words<'l> {
    type Item = &'l [u8];

    #[inline]
    fn next(&mut self) -> Option<&'l [u8]> {
        let start = self.0.iter().position(|byte| *byte != b' ')?;
        let rest = &self.0[start..];
        let end = memchr(b' ', rest).unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.0 = rest;
        Some(word)
    }
}

/// Parses a decimal number of at most 19 digits, which fits in 64 bits.
#[inline]
pub(super) fn number(word: &[u8]) -> Option<u64> {
    if !(1..=19).contains(&word.len()) {
        return None;
    }
    word.iter().try_fold(0, |sum, byte| match byte {
        b'0'..=b'9' => Some(sum * 10 + u64::from(byte - b'0')),
        _ => None,
    })
}

/// Parses a number of at most 18 digits at the start of `input`; returns it and the rest.
#[inline]
pub(super) fn digits(input: &[u8]) -> Option<(u64, &[u8])> {
    let (mut number, mut count) = (0, 0);
    while let Some(digit @ b'0'..=b'9') = input.get(count) {
        number = number * 10 + u64::from(digit - b'0');
        count += 1;
        if count > 18 {
            return None;
        }
    }
    (count > 0).then(|| (number, &input[count..]))
}

/// Returns at most `most` bytes of a line for display, without control characters.
pub(crate) fn printable(line: &[u8], most: usize) -> String {
    let (line, more) = match line.get(..most) {
        Some(beginning) if line.len() > most => (beginning, "…"),
        _ => (line, ""),
    };
    let letters = line.iter().map(|byte| match byte {
        b' '..=b'~' => char::from(*byte),
        _ => '?',
    });
    letters.chain(more.chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_at_line_feed() {
        for (input, expected) in [
            (&b"END\r\nmore"[..], LineSearch::Line(b"END", 5)),
            (b"END\nmore", LineSearch::Line(b"END", 4)),
            (b"\r\n", LineSearch::Line(b"", 2)),
            (b"EN", LineSearch::Partial),
            (b"", LineSearch::Partial),
        ] {
            assert_eq!(find(input), expected);
        }
        assert_eq!(find(&[b'a'; LINE_BYTES_MAX - 1]), LineSearch::Partial);
        let endless = [b'a'; 2 * LINE_BYTES_MAX];
        assert!(matches!(find(&endless), LineSearch::Refused(_)));
    }

    #[test]
    fn other_protocols_are_recognized() {
        let alert = [0x15, 3, 3, 0, 2, 2, 40];
        assert_eq!(
            find(&alert),
            LineSearch::Refused("TLS: use memcacheds:// for this server")
        );
        assert!(matches!(find(&[0x81, 0, 0]), LineSearch::Refused(_)));
        assert!(unknown(b"HTTP/1.1 400 Bad Request").contains("HTTP"));
        assert!(unknown(b"-ERR unknown command").contains("Redis"));
    }

    #[test]
    fn words_are_separated_by_spaces() {
        let words: Vec<&[u8]> = Words::of(b"VALUE k 0  12 ").collect();
        assert_eq!(words, [&b"VALUE"[..], b"k", b"0", b"12"]);
        assert_eq!(Words::of(b"").next(), None);
    }

    #[test]
    fn number_must_be_unsigned_and_in_range() {
        for (word, expected) in [
            (&b"0"[..], Some(0)),
            (b"4294967296", Some(1 << 32)),
            (b"9999999999999999999", Some(9_999_999_999_999_999_999)),
            (b"10000000000000000000", None),
            (b"", None),
            (b"-1", None),
            (b"+1", None),
            (b"1a", None),
        ] {
            assert_eq!(number(word), expected, "{}", printable(word, 40));
        }
    }

    #[test]
    fn leading_digits_are_parsed() {
        assert_eq!(digits(b"100\r\n"), Some((100, &b"\r\n"[..])));
        assert_eq!(digits(b"0"), Some((0, &b""[..])));
        for other in [&b""[..], b"x1", b" 1", b"1000000000000000000 "] {
            assert_eq!(digits(other), None, "{}", printable(other, 40));
        }
    }

    #[test]
    fn printable_truncates_and_escapes() {
        assert_eq!(printable(b"ERROR \x1b[2J", 100), "ERROR ?[2J");
        assert_eq!(printable(b"abcdef", 3), "abc…");
        assert_eq!(printable(b"abc", 3), "abc");
    }
}
