//! What decoded field sections say as HTTP (RFC 9113 8): the heads that the rest of the program works with, trailers, and
//! the other way round.
//!
//! A head of HTTP/2 is one of HTTP/1 with its start line and Host in pseudo-fields. What is read here may be written as
//! HTTP/1, so everything that would mean something else there is refused.

pub mod write;

mod field_lines;
mod lines;
mod repeated_head;
mod request;
mod response;
mod trailers;
mod upgrade;

pub use field_lines::{fields_of_lines, lines_of_fields};
pub use lines::{Lines, split_head};
pub use repeated_head::RepeatedHead;
pub use request::{ExtendedConnect, Request, request};
pub use response::response;
pub use trailers::{request_trailers, response_trailers};
pub use upgrade::{Asks, as_upgrade};

use super::fields::FieldSection;
use super::stream::End;
use crate::Framing;
use crate::Limits;
use crate::Refusal;
use crate::framing;

/// Why a field section is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// It is no message: a stream error of type PROTOCOL_ERROR (RFC 9113 8.1.1). The text says why, for logs.
    Malformed(&'static str),
    /// It is one, and gets this response.
    Refused(Refusal),
}

impl Rejection {
    /// Why, for logs.
    pub fn reason(&self) -> &'static str {
        match self {
            Rejection::Malformed(reason) => reason,
            Rejection::Refused(refusal) => refusal.reason,
        }
    }
}

impl std::fmt::Display for Rejection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Rejection::Malformed(reason) => f.write_str(reason),
            Rejection::Refused(refusal) => refusal.fmt(f),
        }
    }
}

impl std::error::Error for Rejection {}

impl From<Refusal> for Rejection {
    fn from(refusal: Refusal) -> Rejection {
        Rejection::Refused(refusal)
    }
}

/// What its frame says that follows a field section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows {
    /// DATA or trailers, or an end in a frame of its own.
    More,
    /// Nothing: the frame has END_STREAM.
    Nothing,
}

impl From<End> for Follows {
    #[inline]
    fn from(end: End) -> Follows {
        match end {
            End::Open => Follows::More,
            End::Stream => Follows::Nothing,
        }
    }
}

const REPEATED_PSEUDO: Rejection = Rejection::Malformed("a repeated pseudo-field");
const UNKNOWN_PSEUDO: Rejection = Rejection::Malformed("an unknown pseudo-field");
const LATE_PSEUDO: Rejection = Rejection::Malformed("a pseudo-field behind a field");

/// What makes any section useless, wherever it stands; `too_large` says that it has more than we take.
#[inline]
fn check(section: &FieldSection, too_large: Refusal) -> Result<(), Rejection> {
    match section.flaw() {
        Some(flaw) => Err(Rejection::Malformed(flaw.reason())),
        None if section.is_too_large() => Err(Rejection::Refused(too_large)),
        None => Ok(()),
    }
}

/// Bytes of the lines that the fields would be in HTTP/1, whose bounds are the same: what passes may be forwarded by it.
#[cold]
fn line_bytes(section: &FieldSection) -> usize {
    let lines = section.iter();
    lines
        .map(|(name, value)| name.len() + value.len() + 4)
        .sum()
}

/// `count` fields are within the bound.
#[inline]
fn check_count(count: usize, limits: &Limits, too_many: Refusal) -> Result<(), Rejection> {
    match count <= limits.headers_max {
        true => Ok(()),
        false => Err(Rejection::Refused(too_many)),
    }
}

/// Records the Content-Length of a request, which the sum of DATA must equal (RFC 9113 8.1.1). A second one is refused, since no
/// client needs to repeat it.
fn note_length(length: &mut Option<u64>, value: &[u8]) -> Result<(), Rejection> {
    let Some(number) = framing::decimal(value) else {
        return Err(Rejection::Malformed("malformed Content-Length"));
    };
    match length.replace(number) {
        None => Ok(()),
        Some(_) => Err(Rejection::Malformed("repeated Content-Length")),
    }
}

/// How a body ends of which the head has said this: in DATA of this length, or at END_STREAM, which takes the place of the
/// last chunk.
#[inline]
fn announced(length: Option<u64>, follows: Follows) -> Result<Framing, Rejection> {
    match (length, follows) {
        (Some(1..), Follows::Nothing) => Err(Rejection::Malformed(
            "a Content-Length, and no body follows",
        )),
        (Some(length), Follows::More | Follows::Nothing) => Ok(Framing::Length(length)),
        (None, Follows::Nothing) => Ok(Framing::None),
        (None, Follows::More) => Ok(Framing::Chunked),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_follows_the_end_of_a_stream() {
        assert_eq!(Follows::from(End::Stream), Follows::Nothing);
        assert_eq!(Follows::from(End::Open), Follows::More);
    }
}
