//! Converts decoded field sections (RFC 9113 8) to the heads and trailers that the rest of the program uses, and back.
//!
//! The pseudo-fields become the start line and Host of HTTP/1. A message parsed here may be forwarded as HTTP/1, so
//! anything that would have another meaning there is refused.

pub mod write;

mod field_lines;
mod head_cache;
mod request;
mod request_lines;
mod response;
mod trailers;
mod upgrade;

pub use field_lines::{fields_of_lines, lines_of_fields};
pub use head_cache::HeadCache;
pub use request::{ExtendedConnect, Request, request};
pub use request_lines::{Lines, split_head};
pub use response::response;
pub use trailers::{request_trailers, response_trailers};
pub use upgrade::{RequestKind, as_upgrade};

use super::fields::FieldSection;
use super::stream::End;
use crate::Framing;
use crate::Limits;
use crate::Refusal;
use crate::framing;

/// Why a field section is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// Malformed message: a stream error of type PROTOCOL_ERROR (RFC 9113 8.1.1). The string is the cause, for logs.
    Malformed(&'static str),
    /// Valid message that gets this response.
    Refused(Refusal),
}

impl Rejection {
    /// Cause, for logs.
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

/// Whether more frames follow a field section, according to END_STREAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoreFrames {
    /// DATA or trailers, or an empty frame with END_STREAM.
    More,
    /// Nothing: the frame has END_STREAM.
    Nothing,
}

impl From<End> for MoreFrames {
    #[inline]
    fn from(end: End) -> MoreFrames {
        match end {
            End::Open => MoreFrames::More,
            End::Stream => MoreFrames::Nothing,
        }
    }
}

const REPEATED_PSEUDO: Rejection = Rejection::Malformed("a repeated pseudo-field");
const UNKNOWN_PSEUDO: Rejection = Rejection::Malformed("an unknown pseudo-field");
const LATE_PSEUDO: Rejection = Rejection::Malformed("a pseudo-field after a field");

/// Checks common to all sections; `too_large` is the refusal of a section above the limit.
#[inline]
fn check(section: &FieldSection, too_large: Refusal) -> Result<(), Rejection> {
    match section.flaw() {
        Some(flaw) => Err(Rejection::Malformed(flaw.reason())),
        None if section.is_too_large() => Err(Rejection::Refused(too_large)),
        None => Ok(()),
    }
}

/// Size of the fields as HTTP/1 lines. The same limits apply, so that the message can be forwarded as HTTP/1.
#[cold]
fn line_bytes(section: &FieldSection) -> usize {
    let lines = section.iter();
    lines
        .map(|(name, value)| name.len() + value.len() + 4)
        .sum()
}

#[inline]
fn check_count(count: usize, limits: &Limits, too_many: Refusal) -> Result<(), Rejection> {
    match count <= limits.headers_max {
        true => Ok(()),
        false => Err(Rejection::Refused(too_many)),
    }
}

/// Records the Content-Length of a request, which the sum of DATA must equal (RFC 9113 8.1.1). Repeats are refused.
fn note_length(length: &mut Option<u64>, value: &[u8]) -> Result<(), Rejection> {
    let Some(number) = framing::decimal(value) else {
        return Err(Rejection::Malformed("malformed Content-Length"));
    };
    match length.replace(number) {
        None => Ok(()),
        Some(_) => Err(Rejection::Malformed("repeated Content-Length")),
    }
}

/// Framing of a body: Content-Length, or chunked, where END_STREAM takes the place of the last chunk.
#[inline]
fn announced(length: Option<u64>, follows: MoreFrames) -> Result<Framing, Rejection> {
    match (length, follows) {
        (Some(1..), MoreFrames::Nothing) => {
            Err(Rejection::Malformed("a Content-Length without a body"))
        }
        (Some(length), MoreFrames::More | MoreFrames::Nothing) => Ok(Framing::Length(length)),
        (None, MoreFrames::Nothing) => Ok(Framing::None),
        (None, MoreFrames::More) => Ok(Framing::Chunked),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_stream_means_no_more_frames() {
        assert_eq!(MoreFrames::from(End::Stream), MoreFrames::Nothing);
        assert_eq!(MoreFrames::from(End::Open), MoreFrames::More);
    }
}
