//! Result of parsing: a message, a request for more bytes, or a refusal.

/// Result of parsing the start of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed<T> {
    /// The parsed value.
    Complete(T),
    /// Valid so far: call again with the same bytes and more appended.
    Partial,
    /// Invalid; more bytes cannot change that.
    Refused(Refusal),
}

/// Why a message is refused, and the status with which a server responds before it closes the connection. A response of
/// an upstream is always refused with 502.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Status of the response.
    pub status: u16,
    /// Cause, for logs and for the response's body.
    pub reason: &'static str,
    /// Position of the error, for logs.
    pub position: Position,
}

/// Position in a message, counted from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Position {
    /// No single position, or an unknown one.
    #[default]
    Unknown,
    /// Line of the head; 1 is the status line or request line.
    Line(u32),
    /// The chunk's line, or the CRLF after its data.
    Chunk(u32),
    /// Line of the trailers.
    Trailer(u32),
}

/// Suffix of a reason: ` (line 3 of the head)`, or nothing for an unknown position.
impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Position::Unknown => Ok(()),
            Position::Line(line) => write!(f, " (line {line} of the head)"),
            Position::Chunk(chunk) => write!(f, " (chunk {chunk} of the body)"),
            Position::Trailer(line) => write!(f, " (line {line} of the trailers)"),
        }
    }
}

impl Refusal {
    /// Creates a refusal without a position.
    pub const fn new(status: u16, reason: &'static str) -> Refusal {
        Refusal {
            status,
            reason,
            position: Position::Unknown,
        }
    }

    pub(crate) const fn at(self, place: Position) -> Refusal {
        Refusal {
            position: place,
            ..self
        }
    }

    /// 400 Bad Request (RFC 9110 15.5.1).
    pub(crate) const fn bad(reason: &'static str) -> Refusal {
        Refusal::new(400, reason)
    }

    /// The same refusal with 502 Bad Gateway, the status that a gateway returns (RFC 9110 15.6.3).
    pub(crate) const fn as_bad_gateway(self) -> Refusal {
        Refusal {
            status: 502,
            ..self
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.reason, self.position)
    }
}

impl std::error::Error for Refusal {}

impl<T> From<Result<T, Refusal>> for Parsed<T> {
    #[inline]
    fn from(result: Result<T, Refusal>) -> Parsed<T> {
        match result {
            Ok(value) => Parsed::Complete(value),
            Err(refusal) => Parsed::Refused(refusal),
        }
    }
}
