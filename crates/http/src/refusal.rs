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

/// Why a message is not accepted, and what a server answers before it closes the connection. From an upstream any
/// refusal is a bad answer: its status is 502.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status to answer with.
    pub status: u16,
    /// What was wrong, for logs and for the answer's body.
    pub reason: &'static str,
}

impl Refusal {
    pub(crate) const fn new(status: u16, reason: &'static str) -> Refusal {
        Refusal { status, reason }
    }

    /// 400 Bad Request (RFC 9110 15.5.1).
    pub(crate) const fn bad(reason: &'static str) -> Refusal {
        Refusal::new(400, reason)
    }

    /// The same refusal seen by a gateway: 502 Bad Gateway (RFC 9110 15.6.3).
    pub(crate) const fn of_upstream(self) -> Refusal {
        Refusal::new(502, self.reason)
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.reason, self.status)
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
