//! Payload of `tcp://`: bytes to send and the expected response.

use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::limits::ECHO_BYTES_DEFAULT;
use crate::protocol::Protocol;
use crate::protocol::echo::Bytes;

/// Payload over TCP.
#[derive(Clone, Copy, Debug)]
pub struct Asks {
    /// Bytes per send.
    pub request: NonZeroUsize,
    /// Expected response.
    pub response: Comes,
}

/// Expected response to sent bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comes {
    /// The same bytes, from an echo (RFC 862).
    Same,
    /// This many bytes of the pattern, from a responder.
    Pattern(NonZeroUsize),
    /// None: the server discards the bytes (RFC 863).
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
