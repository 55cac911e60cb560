//! What is sent over `tcp://`: bytes at a time, and what comes back for them.

use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::limits::ECHO_BYTES_DEFAULT;
use crate::protocol::Protocol;
use crate::protocol::echo::Bytes;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asks {
    /// How many bytes are sent at a time.
    pub request: NonZeroUsize,
    /// What comes back for them.
    pub response: Comes,
}

/// What comes back for bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comes {
    /// The same, from an echo (RFC 862).
    Same,
    /// So many of the pattern, from a responder.
    Pattern(NonZeroUsize),
    /// Nothing: whoever is there discards them (RFC 863).
    Nothing,
}

impl Default for Asks {
    fn default() -> Asks {
        Asks {
            request: ECHO_BYTES_DEFAULT,
            response: Comes::Same,
        }
    }
}

impl Asks {
    pub(crate) fn protocol(&self) -> Protocol {
        let request = self.request.get();
        let echo = |bytes| Protocol::Echo(Arc::new(bytes));
        match self.response {
            Comes::Same => echo(Bytes::new("echo", request)),
            Comes::Pattern(response) => echo(Bytes::with_response(request, response.get())),
            Comes::Nothing => Protocol::Stream(Arc::new(Bytes::new("send", request))),
        }
    }
}
