//! Finds line and cause of an invalid head, for the log; httparse reports neither. Runs only after a refusal.

use crate::field::{self, Header};
use crate::refusal::{Position, Refusal};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineEnd {
    Strict,
    /// LF, with or without a preceding CR (RFC 9112 2.2).
    Lenient,
}

/// Refusal of the head at the start of `input` for which httparse returned `error`.
#[cold]
pub(crate) fn diagnose(input: &[u8], line_end: LineEnd, error: httparse::Error) -> Refusal {
    let refusal = field::refusal_of(error);
    if is_tls(input) {
        return or_tls(input, refusal);
    }
    match error {
        // Not the fault of a single line.
        httparse::Error::TooManyHeaders => refusal,
        httparse::Error::Token | httparse::Error::Status | httparse::Error::Version => {
            let line = input.split_inclusive(|&byte| byte == b'\n').next();
            let reason = line.and_then(|line| flaw_of_any(line, line_end));
            let reason = reason.unwrap_or(refusal.reason);
            Refusal { reason, ..refusal }.at(Position::Line(1))
        }
        httparse::Error::HeaderName | httparse::Error::HeaderValue | httparse::Error::NewLine => {
            of_lines(input, line_end, refusal)
        }
    }
}

/// Returns `refusal`, or a refusal that reports TLS if `input` looks like TLS.
#[cold]
pub(crate) fn or_tls(input: &[u8], refusal: Refusal) -> Refusal {
    if !is_tls(input) {
        return refusal;
    }
    Refusal {
        reason: "it looks like TLS, but this port is for plain HTTP",
        position: Position::Unknown,
        ..refusal
    }
}

/// Whether `input` begins with a TLS handshake record or alert (RFC 8446 5.1).
fn is_tls(input: &[u8]) -> bool {
    matches!(input, [21 | 22, 3, 0..=4, ..])
}

/// Returns `refusal` with the line and cause of the first invalid line, or unchanged if no line is found invalid.
#[cold]
pub(crate) fn of_lines(input: &[u8], line_end: LineEnd, refusal: Refusal) -> Refusal {
    for (at, line) in input.split_inclusive(|&byte| byte == b'\n').enumerate() {
        let mut flaw = flaw_of_any(line, line_end);
        if at > 0 {
            if matches!(line, b"\n" | b"\r\n") && flaw.is_none() {
                break;
            }
            flaw = flaw.or_else(|| flaw_of_field(line));
        }
        if let Some(reason) = flaw {
            return Refusal { reason, ..refusal }.at(Position::Line(at as u32 + 1));
        }
    }
    refusal
}

/// Line of `head` that contains `header`.
#[cold]
pub(crate) fn line_of(head: &[u8], header: &Header<'_>) -> Position {
    let before = &head[..field::offset(head, header.name.as_bytes())];
    Position::Line(memchr::memchr_iter(b'\n', before).count() as u32 + 1)
}

/// Error that any line can have, the first line or a field line.
fn flaw_of_any(line: &[u8], line_end: LineEnd) -> Option<&'static str> {
    let is_whole = line.ends_with(b"\n");
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    if text.contains(&0) {
        return Some("a NUL");
    }
    if text.contains(&b'\r') {
        return Some("a CR without an LF after it");
    }
    if !field::is_field_value(text) {
        return Some("a control character");
    }
    let is_bare = is_whole && !line.ends_with(b"\r\n");
    (is_bare && line_end == LineEnd::Strict).then_some("a line ends without CR")
}

fn flaw_of_field(line: &[u8]) -> Option<&'static str> {
    let (name, rest) = field::split_token(line);
    match (name.len(), rest.first()) {
        (0, Some(b' ' | b'\t')) => Some("a field folded over lines"),
        (0, Some(b':')) => Some("a field without a name"),
        (_, Some(b':') | None) => None,
        (_, Some(b' ' | b'\t')) => Some("white space within or after a field name"),
        (_, Some(b'\r' | b'\n')) => Some("a field without a colon"),
        (_, Some(_)) => Some("an invalid character in a field name"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_invalid_line_is_reported_with_reason() {
        let unknown = ("malformed", Position::Unknown);
        let line = Position::Line;
        for (fields, line_end, wanted) in [
            ("A: b\r\n", LineEnd::Strict, unknown),
            ("A: b\n", LineEnd::Lenient, unknown),
            (
                "A: b\n",
                LineEnd::Strict,
                ("a line ends without CR", line(2)),
            ),
            ("A: b\r\nC: \0\r\n", LineEnd::Strict, ("a NUL", line(3))),
            (
                "A: b\rc\r\n",
                LineEnd::Lenient,
                ("a CR without an LF after it", line(2)),
            ),
            (
                "A: \u{1}\r\n",
                LineEnd::Strict,
                ("a control character", line(2)),
            ),
            (
                "A: b\r\n c\r\n",
                LineEnd::Strict,
                ("a field folded over lines", line(3)),
            ),
            (
                ": b\r\n",
                LineEnd::Strict,
                ("a field without a name", line(2)),
            ),
            (
                "A : b\r\n",
                LineEnd::Strict,
                ("white space within or after a field name", line(2)),
            ),
            (
                "A\r\n",
                LineEnd::Strict,
                ("a field without a colon", line(2)),
            ),
            (
                "A(: b\r\n",
                LineEnd::Strict,
                ("an invalid character in a field name", line(2)),
            ),
            ("\r\nA : body", LineEnd::Strict, unknown),
        ] {
            let head = format!("HTTP/1.1 200 OK\r\n{fields}");
            let found = of_lines(head.as_bytes(), line_end, Refusal::bad("malformed"));
            assert_eq!((found.reason, found.position), wanted, "{fields:?}");
        }
    }
}
