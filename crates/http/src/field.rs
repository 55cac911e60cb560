//! Header fields (RFC 9110 5): storage for parsed fields, and comparison and validation of names and list values.

use std::mem::MaybeUninit;

use crate::limits::{HEADER_SLOTS, Limits};
use crate::refusal::{Parsed, Refusal};

/// One field of a head: `name` is a token as received, `value` is trimmed of white space.
pub use httparse::Header;

/// Uninitialized storage on the caller's stack for the fields of one head; creating it costs nothing.
pub struct HeaderSlots<'b> {
    pub(crate) slots: [MaybeUninit<Header<'b>>; HEADER_SLOTS],
    /// Used, and allocated, only for fields that do not fit the slots, and for HTTP/1.2 to 1.9: httparse accepts only
    /// 1.0 and 1.1, and its parser for fields alone requires initialized storage.
    pub(crate) spare: Vec<Header<'b>>,
}

impl<'b> HeaderSlots<'b> {
    /// Empty storage for [`HEADER_SLOTS`] fields.
    #[inline]
    pub const fn new() -> Self {
        HeaderSlots {
            slots: [const { MaybeUninit::uninit() }; HEADER_SLOTS],
            spare: Vec::new(),
        }
    }

    /// Stores fields that do not come from lines of text, such as HTTP/2 fields. Allocates only for more than
    /// [`HEADER_SLOTS`] fields, or when the `size_hint` of `fields` has no upper bound.
    #[inline]
    pub fn store(&mut self, fields: impl IntoIterator<Item = Header<'b>>) -> &[Header<'b>] {
        let fields = fields.into_iter();
        // `store_fixed` initializes all N entries, so it gets the smallest N that suffices.
        match fields.size_hint().1 {
            Some(..=8) => self.store_fixed::<8>(fields),
            Some(9..=16) => self.store_fixed::<16>(fields),
            Some(17..=32) => self.store_fixed::<32>(fields),
            Some(33..=HEADER_SLOTS) => self.store_fixed::<HEADER_SLOTS>(fields),
            Some(_) | None => {
                self.spare.clear();
                self.spare.extend(fields);
                &self.spare
            }
        }
    }

    #[inline]
    fn store_fixed<const N: usize>(
        &mut self,
        fields: impl Iterator<Item = Header<'b>>,
    ) -> &[Header<'b>] {
        let mut held = [httparse::EMPTY_HEADER; N];
        let mut count = 0;
        for (room, header) in held.iter_mut().zip(fields) {
            *room = header;
            count += 1;
        }
        self.slots[..count].write_copy_of_slice(&held[..count])
    }
}

impl Default for HeaderSlots<'_> {
    fn default() -> Self {
        HeaderSlots::new()
    }
}

/// Whether a field name equals `wanted_lowercase`, ignoring case (RFC 9110 5.1). The caller passes lower case.
#[inline]
pub fn header_is(name: &str, wanted_lowercase: &str) -> bool {
    name.len() == wanted_lowercase.len() && name.eq_ignore_ascii_case(wanted_lowercase)
}

/// Members of a comma-separated list, trimmed; empty members are skipped (RFC 9110 5.6.1.2).
pub fn token_list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value
        .split(|&byte| byte == b',')
        .map(trim)
        .filter(|member| !member.is_empty())
}

/// Splits at separators outside quoted strings (RFC 9110 5.6.4); the parts are not trimmed.
pub(crate) fn split_unquoted(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let (part, behind) = match unquoted_end(text, separator) {
            Ok(at) => (&text[..at], Some(&text[at + 1..])),
            Err(_) => (text, None),
        };
        rest = behind;
        Some(part)
    })
}

/// Bytes after a quoted string, whose opening quote precedes `text`; `None` without a closing quote (RFC 9110 5.6.4).
pub(crate) fn after_quoted(text: &[u8]) -> Option<&[u8]> {
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'"' => return Some(&text[at + 1..]),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Splits off the token at the start of `text`, which may be empty.
pub(crate) fn split_token(text: &[u8]) -> (&[u8], &[u8]) {
    let letters = text.iter().take_while(|&&byte| TOKEN[byte as usize]);
    text.split_at(letters.count())
}

pub(crate) fn has_paired_quotes(text: &[u8]) -> bool {
    // A field value never contains NUL, so this separator is never found.
    unquoted_end(text, 0) == Err(Quotes::Closed)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quotes {
    Open,
    Closed,
}

/// Position of the first separator outside a quoted string.
fn unquoted_end(text: &[u8], separator: u8) -> Result<usize, Quotes> {
    let mut quotes = Quotes::Closed;
    let mut bytes = text.iter().enumerate();
    while let Some((at, &byte)) = bytes.next() {
        match (quotes, byte) {
            (Quotes::Closed, b'"') => quotes = Quotes::Open,
            (Quotes::Closed, byte) if byte == separator => return Ok(at),
            (Quotes::Open, b'"') => quotes = Quotes::Closed,
            (Quotes::Open, b'\\') => drop(bytes.next()),
            (Quotes::Open | Quotes::Closed, _) => {}
        }
    }
    Err(quotes)
}

/// Trims optional white space, space and tab (RFC 9110 5.6.3), at both ends.
pub(crate) fn trim(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = text {
        text = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

/// Whether `text` is a token, such as a field name or a method (RFC 9110 5.6.2).
pub fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|&byte| TOKEN[byte as usize])
}

/// Whether `text` may be sent as a field value: no control characters except tab (RFC 9110 5.5).
pub fn is_field_value(text: &[u8]) -> bool {
    text.iter().all(|&byte| is_text(byte))
}

/// Tab, space, a visible character, or a byte of obs-text (RFC 9110 5.5).
#[inline]
pub(crate) fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

/// tchar (RFC 9110 5.6.2).
static TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        let c = byte as u8;
        table[byte] = c.is_ascii_alphanumeric()
            || matches!(
                c,
                b'!' | b'#'
                    | b'$'
                    | b'%'
                    | b'&'
                    | b'\''
                    | b'*'
                    | b'+'
                    | b'-'
                    | b'.'
                    | b'^'
                    | b'_'
                    | b'`'
                    | b'|'
                    | b'~'
            );
        byte += 1;
    }
    table
};

/// Offset of `part` in `whole`; `part` must be a slice of it.
#[inline]
pub(crate) fn offset(whole: &[u8], part: &[u8]) -> usize {
    part.as_ptr().addr() - whole.as_ptr().addr()
}

/// Rejects lines that end with a bare LF. httparse accepts them, as RFC 9112 2.2 allows, but then two recipients can
/// see different heads. httparse accepts a CR only before an LF, and an LF only at the end of a line, so it suffices to
/// look for a CR before the LF of each line: here for the line before each field, in the caller for the end of the
/// head.
#[inline]
pub(crate) fn follows_crlf(head: &[u8], header: &Header<'_>) -> bool {
    let start = offset(head, header.name.as_bytes());
    start >= 2 && head[start - 2] == b'\r'
}

/// Parses the fields of a head whose first line httparse could not parse; `text` starts after that line.
#[cold]
pub(crate) fn parse_into_spare<'h, 'b>(
    text: &'b [u8],
    spare: &'h mut Vec<Header<'b>>,
    limits: &Limits,
) -> Parsed<(usize, &'h mut [Header<'b>])> {
    spare.resize(limits.headers_max, httparse::EMPTY_HEADER);
    let (bytes, count) = match httparse::parse_headers(text, spare) {
        Ok(httparse::Status::Complete((bytes, found))) => (bytes, found.len()),
        Ok(httparse::Status::Partial) => return Parsed::Partial,
        Err(error) => return Parsed::Refused(refusal_of(error)),
    };
    Parsed::Complete((bytes, &mut spare[..count]))
}

#[cold]
pub(crate) fn refusal_of(error: httparse::Error) -> Refusal {
    match error {
        httparse::Error::TooManyHeaders => Refusal::new(431, "too many header fields"),
        httparse::Error::HeaderName => Refusal::bad("malformed header name"),
        httparse::Error::HeaderValue => Refusal::bad("malformed header value"),
        httparse::Error::NewLine => Refusal::bad("malformed end of line"),
        httparse::Error::Status => Refusal::bad("malformed status line"),
        httparse::Error::Token => Refusal::bad("malformed request line"),
        httparse::Error::Version => Refusal::bad("malformed HTTP version"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_members_skip_empty_and_white_space() {
        let members: Vec<_> = token_list(b" close ,\t, keep-alive,,x y ").collect();
        assert_eq!(members, [b"close".as_slice(), b"keep-alive", b"x y"]);
        assert_eq!(token_list(b"").count(), 0);
    }

    #[test]
    fn quoted_separators_are_ignored() {
        let parts = |text: &'static [u8]| split_unquoted(text, b',').collect::<Vec<_>>();
        assert_eq!(
            parts(b"a, b=\"c, \\\", d\",e"),
            [b"a".as_slice(), b" b=\"c, \\\", d\"", b"e"]
        );
        assert_eq!(parts(b""), [b""]);
        assert_eq!(parts(b"a,"), [b"a".as_slice(), b""]);
        assert_eq!(parts(b"a\\,\"b,"), [b"a\\".as_slice(), b"\"b,"]);
    }

    #[test]
    fn unterminated_quoted_strings_are_detected() {
        for (text, wanted) in [
            ("", true),
            ("a=\"b\"", true),
            ("\"a\\\"\"", true),
            ("\\\"a\"", true),
            ("\"", false),
            ("\"a\\\"", false),
            ("\"a\" \"", false),
        ] {
            assert_eq!(has_paired_quotes(text.as_bytes()), wanted, "{text}");
        }
    }

    #[test]
    fn field_names_are_case_insensitive() {
        assert!(header_is("Content-Length", "content-length"));
        assert!(!header_is("Content-Lengtt", "content-length"));
        assert!(!header_is("Content-Length2", "content-length"));
    }

    #[test]
    fn values_with_control_bytes_are_invalid() {
        assert!(is_field_value(b"a\tb \xc3\xa9"));
        for bad in [b"a\r\nb".as_slice(), b"\0", b"\x7f", b"\x0b"] {
            assert!(!is_field_value(bad));
        }
    }
}
