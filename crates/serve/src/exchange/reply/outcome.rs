//! Options and results of writing a response, independent of the protocol.

use crate::exchange::output::BodyFraming;

/// Whether the client's connection is kept after the response. Only HTTP/1 uses it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Persistence {
    /// The client's choice applies.
    AsRequested,
    /// The connection stays open.
    Keep,
    /// The connection is closed: the start of the next request is unknown, or the response has `Connection: close`.
    Close,
    /// The connection switches to this protocol (RFC 9110 7.8).
    Upgrade(&'static str),
}

impl Persistence {
    /// Returns the persistence of a connection with this framing of the body: a body that ends with the connection
    /// always closes it.
    pub(super) fn with_framing(self, body: BodyFraming) -> Self {
        match body {
            BodyFraming::UntilClose => Persistence::Close,
            BodyFraming::Plain | BodyFraming::Chunked => self,
        }
    }
}

/// The head of a server's response leaves too little room for added fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooLarge;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Interim {
    Written,
    /// The client's version has no interim responses (RFC 9110 15.2).
    Skipped,
}

/// How the body of a server's response reaches the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BodyPassthrough {
    /// With the server's framing unchanged.
    AsFramed,
    /// The body's payload is sent, with new framing for the client.
    Payload,
}
