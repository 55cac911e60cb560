//! The protocol version on a message's first line (RFC 9112 2.3).

use crate::refusal::{Parsed, Position, Refusal};

/// HTTP version. Minor versions of HTTP/1 above 1 are processed as 1.1 (RFC 9110 2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0: no chunked coding, and the connection closes unless keep-alive was requested.
    Http10,
    /// HTTP/1.1.
    Http11,
    /// HTTP/2 (RFC 9113), which has no minor versions and no version field.
    Http2,
}

impl Version {
    /// Converts httparse's minor version, which is 0 or 1.
    pub(crate) fn of_minor(minor: Option<u8>) -> Version {
        match minor {
            Some(0) => Version::Http10,
            _ => Version::Http11,
        }
    }
}

/// Length of `HTTP/1.1`.
pub(crate) const VERSION_BYTES: usize = 8;

/// Checks a version that httparse rejected. `Complete` means 1.2 to 1.9.
#[cold]
pub(crate) fn check_unknown(text: &[u8]) -> Parsed<()> {
    const MALFORMED: Parsed<()> =
        Parsed::Refused(Refusal::bad("malformed HTTP version").at(Position::Line(1)));
    const PATTERN: &[u8; VERSION_BYTES] = b"HTTP/0.0";
    for (&byte, &wanted) in text.iter().zip(PATTERN) {
        let fits = if wanted == b'0' {
            byte.is_ascii_digit()
        } else {
            byte == wanted
        };
        if !fits {
            return MALFORMED;
        }
    }
    if text.len() < VERSION_BYTES {
        return Parsed::Partial;
    }
    match text[5] {
        b'1' => Parsed::Complete(()),
        _ => {
            let refusal = Refusal::new(505, "HTTP version not supported");
            Parsed::Refused(refusal.at(Position::Line(1)))
        }
    }
}
