//! The line before a chunk: its size in hexadecimal digits, and extensions (RFC 9112 7.1).

use std::ops::Range;

use crate::field;
use crate::framing::Sender;
use crate::limits::{CHUNK_DIGITS_MAX, LENGTH_MAX, Limits};
use crate::refusal::Refusal;

/// `size [;extensions] CRLF` (RFC 9112 7.1).
pub(super) struct ChunkLine {
    pub(super) size: u64,
    /// Length of the line with its CRLF.
    pub(super) bytes: usize,
    /// Bytes between the size and CRLF.
    pub(super) surplus: Range<usize>,
}

impl ChunkLine {
    /// Incomplete line: nothing consumed.
    pub(super) const NOT_YET: ChunkLine = ChunkLine {
        size: 0,
        bytes: 0,
        surplus: 0..0,
    };

    /// Parses the line at the start of `input`; `None` if it is incomplete. Extensions must be well-formed; their
    /// meaning is ignored (RFC 9112 7.1.1).
    pub(super) fn parse(
        input: &[u8],
        sender: Sender,
        limits: &Limits,
    ) -> Result<Option<ChunkLine>, Refusal> {
        let window = &input[..input.len().min(limits.chunk_line_bytes_max)];
        let full = window.len() == limits.chunk_line_bytes_max;
        let mut size = 0u64;
        let mut digits = 0;
        while let Some(digit) = window.get(digits).and_then(|&byte| hex(byte)) {
            if digits == CHUNK_DIGITS_MAX {
                return Err(Refusal::bad("chunk size too long"));
            }
            size = size << 4 | u64::from(digit);
            digits += 1;
        }
        if size > LENGTH_MAX {
            return Err(Refusal::bad("chunk size too large"));
        }
        let mut end = digits;
        if digits > 0 && matches!(window.get(end), Some(b';' | b' ' | b'\t')) {
            let rest = window[end..].iter();
            end += rest.take_while(|&&byte| field::is_text(byte)).count();
        }
        match window[end..] {
            [] | [b'\r'] if full => Err(Refusal::bad("chunk line too long")),
            [] | [b'\r'] => Ok(None),
            [b'\r', b'\n', ..] if digits > 0 => {
                check_extensions(&window[digits..end], sender)?;
                Ok(Some(ChunkLine {
                    size,
                    bytes: end + 2,
                    surplus: digits..end,
                }))
            }
            [b'\n', ..] if digits > 0 => Err(Refusal::bad("a chunk line ends without CR")),
            _ if digits == 0 => Err(Refusal::bad("a chunk line without a size")),
            _ => Err(Refusal::bad("malformed chunk line")),
        }
    }
}

/// `*( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] )` (RFC 9112 7.1.1), of bytes that a field value may
/// contain. Servers may append white space.
fn check_extensions(mut text: &[u8], sender: Sender) -> Result<(), Refusal> {
    while !text.is_empty() {
        text = match without_blanks(text) {
            [b';', rest @ ..] => check_extension(without_blanks(rest))?,
            [] if sender == Sender::Server => return Ok(()),
            [] => return Err(Refusal::bad("white space at the end of a chunk line")),
            _ => return Err(Refusal::bad("malformed chunk extension")),
        };
    }
    Ok(())
}

fn check_extension(text: &[u8]) -> Result<&[u8], Refusal> {
    let (name, rest) = field::split_token(text);
    if name.is_empty() {
        return Err(Refusal::bad("a chunk extension without a name"));
    }
    let [b'=', value @ ..] = without_blanks(rest) else {
        return Ok(rest);
    };
    match without_blanks(value) {
        [b'"', inside @ ..] => field::after_quoted(inside)
            .ok_or(Refusal::bad("a quoted chunk extension without its end")),
        value => match field::split_token(value) {
            ([], _) => Err(Refusal::bad("a chunk extension without a value")),
            (_, rest) => Ok(rest),
        },
    }
}

/// Skips "bad" white space: space and tab (RFC 9110 5.6.3).
fn without_blanks(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t'));
    &text[blanks.count()..]
}

#[inline]
pub(crate) fn hex(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}
