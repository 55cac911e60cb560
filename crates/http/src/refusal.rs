//! The outcome of reading: a message, a wish for more bytes, or a refusal.

/// What reading the start of some input came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed<T> {
    /// Everything asked for is there.
    Complete(T),
    /// So far so good: call again with the same bytes and more behind them.
    Partial,
    /// This can never become a message we accept, whatever follows.
    Refused(Refusal),
}

/// Why a message is not accepted, and what a server responds with before it closes the connection. From an upstream any
/// refusal is a bad response: its status is 502.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status to respond with.
    pub status: u16,
    /// What was wrong, for logs and for the response's body.
    pub reason: &'static str,
    /// Where it was wrong, for logs.
    pub place: Place,
}

/// A place in a message; counting begins with 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// No single place, or none that is known.
    #[default]
    Unknown,
    /// This line of the head; the first is the status line or the request line.
    Line(u32),
    /// The line of this chunk, or what follows its data.
    Chunk(u32),
    /// This line of the trailers.
    Trailer(u32),
}

/// Nothing for an unknown place, and else what goes behind a reason: ` (line 3 of the head)`.
impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Unknown => Ok(()),
            Place::Line(line) => write!(f, " (line {line} of the head)"),
            Place::Chunk(chunk) => write!(f, " (chunk {chunk} of the body)"),
            Place::Trailer(line) => write!(f, " (line {line} of the trailers)"),
        }
    }
}

impl Refusal {
    /// One without a place.
    pub const fn new(status: u16, reason: &'static str) -> Refusal {
        Refusal {
            status,
            reason,
            place: Place::Unknown,
        }
    }

    /// The same refusal at a known place.
    pub(crate) const fn at(self, place: Place) -> Refusal {
        Refusal { place, ..self }
    }

    /// 400 Bad Request (RFC 9110 15.5.1).
    pub(crate) const fn bad(reason: &'static str) -> Refusal {
        Refusal::new(400, reason)
    }

    /// The same refusal seen by a gateway: 502 Bad Gateway (RFC 9110 15.6.3).
    pub(crate) const fn of_upstream(self) -> Refusal {
        Refusal {
            status: 502,
            ..self
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.reason, self.place)
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
