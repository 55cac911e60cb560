//! Parses Basic credentials (RFC 7617) in an Authorization field; does not verify them.

use crate::field::{Header, header_is};
use crate::limits::BASIC_CREDENTIALS_BYTES_MAX;

/// Buffer for decoded credentials, on the caller's stack.
pub type CredentialsBuffer = [u8; BASIC_CREDENTIALS_BYTES_MAX];

/// Credentials of a client, not verified.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Credentials<'r> {
    /// User-id, up to the first colon. Not necessarily UTF-8 (RFC 7617 2.1).
    pub user: &'r [u8],
    /// Password, after the first colon.
    pub password: &'r [u8],
}

/// Omits the password, because many people read logs.
impl std::fmt::Debug for Credentials<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Credentials {{ user: \"{}\" }}",
            self.user.escape_ascii()
        )
    }
}

/// Decodes the credentials of a request into `room`. `None` if there are none, or if they cannot be valid: another
/// scheme, malformed, in more than one field, longer than [`BASIC_CREDENTIALS_BYTES_MAX`], or with a control character
/// (RFC 7617 2).
pub fn credentials<'r>(
    headers: &[Header<'_>],
    room: &'r mut CredentialsBuffer,
) -> Option<Credentials<'r>> {
    let mut fields = headers
        .iter()
        .filter(|header| header_is(header.name, "authorization"));
    let (field, None) = (fields.next()?, fields.next()) else {
        return None;
    };
    let bytes = decode(encoded(field.value)?, room)?;
    let text = &room[..bytes];
    let colon = memchr::memchr(b':', text)?;
    if text.iter().any(u8::is_ascii_control) {
        return None;
    }
    Some(Credentials {
        user: &text[..colon],
        password: &text[colon + 1..],
    })
}

/// Returns the value after the scheme and spaces (RFC 9110 11.4).
fn encoded(value: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = value.split_at_checked(b"Basic".len())?;
    let spaces = rest.iter().take_while(|&&byte| byte == b' ').count();
    let is_basic = scheme.eq_ignore_ascii_case(b"Basic") && spaces > 0;
    is_basic.then(|| &rest[spaces..])
}

/// Decodes Base64 (RFC 4648 4). Padding is mandatory and unused bits must be zero, so that credentials have one
/// spelling. Returns the number of bytes; `None` if `text` is malformed or `out` too small.
fn decode(text: &[u8], out: &mut [u8]) -> Option<usize> {
    let padding = text.iter().rev().take_while(|&&byte| byte == b'=').count();
    if !text.len().is_multiple_of(4) || padding > 2 {
        return None;
    }
    let mut at = 0;
    for group in text[..text.len() - padding].chunks(4) {
        let mut bits = 0u32;
        for &letter in group {
            bits = bits << 6 | u32::from(sextet(letter)?);
        }
        // 4 letters are 3 bytes, 3 are 2, 2 are 1; a single letter is impossible, since the length is a multiple of 4.
        let bytes = group.len() * 6 / 8;
        bits <<= 32 - 6 * group.len();
        let decoded = bits.to_be_bytes();
        out.get_mut(at..at + bytes)?
            .copy_from_slice(&decoded[..bytes]);
        if decoded[bytes..].iter().any(|&byte| byte != 0) {
            return None;
        }
        at += bytes;
    }
    Some(at)
}

fn sextet(letter: u8) -> Option<u8> {
    match letter {
        b'A'..=b'Z' => Some(letter - b'A'),
        b'a'..=b'z' => Some(letter - b'a' + 26),
        b'0'..=b'9' => Some(letter - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&str]) -> Option<(String, String)> {
        let header = |value: &&'static str| Header {
            name: "authorization",
            value: value.as_bytes(),
        };
        let values: Vec<&'static str> = values
            .iter()
            .map(|value| &*value.to_string().leak())
            .collect();
        let headers: Vec<_> = values.iter().map(header).collect();
        let mut room = [0; BASIC_CREDENTIALS_BYTES_MAX];
        let found = credentials(&headers, &mut room)?;
        let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
        Some((text(found.user), text(found.password)))
    }

    #[test]
    fn rfc_credentials_are_parsed() {
        let rows = [
            (
                "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
                "Aladdin",
                "open sesame",
            ),
            ("Basic dGVzdDoxMjPCow==", "test", "123\\xc2\\xa3"),
            ("bASIC   YTpi", "a", "b"),
            ("Basic Og==", "", ""),
            ("Basic YTpiOmM=", "a", "b:c"),
        ];
        for (value, user, password) in rows {
            assert_eq!(
                read(&[value]),
                Some((user.into(), password.into())),
                "{value}"
            );
        }
    }

    #[test]
    fn invalid_credentials_are_refused() {
        for value in [
            "",
            "Basic",
            "Basic ",
            "BasicYTpi",
            "Bearer YTpi",
            "Basic YTpi YTpi",
            "Basic YTpi=",
            "Basic YTo",
            "Basic YTo=YTo=",
            "Basic YTp=",
            "Basic Og=",
            "Basic Og",
            "Basic O===",
            "Basic YTpiA===",
            "Basic =",
            "Basic YQ==",
            "Basic YTpi\t",
            "Basic YT-_",
            "Basic YTp\u{e9}",
            "Basic Oh==",
            "Basic YTo/Cg==",
            "Basic YToA",
            "Basic YTp/Og==",
        ] {
            assert_eq!(read(&[value]), None, "{value}");
        }
        assert_eq!(read(&[]), None);
        assert_eq!(read(&["Basic YTpi", "Basic YTpi"]), None);
    }

    #[test]
    fn overlong_credentials_are_refused() {
        // "a:" and a password of repeated 'a'.
        let encoded =
            |groups: usize, last: &str| format!("Basic YTph{}{last}", "YWFh".repeat(groups));
        let bytes = BASIC_CREDENTIALS_BYTES_MAX;
        assert_eq!(bytes % 3, 2);
        let longest = read(&[&encoded(bytes / 3 - 1, "YWE=")]).expect("it fits");
        assert_eq!(longest.0.len() + 1 + longest.1.len(), bytes);
        assert_eq!(read(&[&encoded(bytes / 3, "")]), None);
    }

    #[test]
    fn debug_output_omits_password() {
        let found = Credentials {
            user: b"a",
            password: b"secret",
        };
        assert_eq!(format!("{found:?}"), "Credentials { user: \"a\" }");
    }
}
