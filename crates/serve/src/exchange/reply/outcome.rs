//! What is asked of a response, and what came of it, whatever the protocol.

use crate::exchange::output::BodyFraming;

/// What becomes of the client's connection behind the response. Only protocols that have one request at a time on a
/// connection care.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Persistence {
    /// What the client asks for.
    AsAsked,
    /// It stays open.
    Keep,
    /// It ends: where the next request would begin cannot be known, or the response says so.
    Close,
    /// It speaks this protocol from then on (RFC 9110 7.8).
    Upgrade(&'static str),
}

impl Persistence {
    /// The persistence of the connection after `body`: a body that ends with the connection always closes it.
    pub(super) fn before(self, body: BodyFraming) -> Self {
        match body {
            BodyFraming::UntilClose => Persistence::Close,
            BodyFraming::Plain | BodyFraming::Chunked => self,
        }
    }
}

/// The head of a server's response leaves no room for what is added to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooLarge;

/// Whether an interim response was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Interim {
    Written,
    /// The client understands none (RFC 9110 15.2).
    LeftOut,
}

/// How the bytes of a body that a server has framed reach the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Passage {
    /// As they came: the client reads the same framing.
    AsFramed,
    /// What they carry, in the client's own framing.
    Payload,
}
