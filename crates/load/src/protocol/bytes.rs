//! Payload of `tcp://`: bytes to send and the expected response.

use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::limits::ECHO_BYTES_DEFAULT;
use crate::protocol::Protocol;
use crate::protocol::echo::EchoPayload;

/// Payload over TCP.
#[derive(Clone, Copy, Debug)]
pub struct PayloadOptions {
    /// Bytes per send.
    pub request: NonZeroUsize,
    /// Expected response.
    pub response: ExpectedResponse,
}

/// Expected response to sent bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExpectedResponse {
    /// The same bytes, from an echo (RFC 862).
    Same,
    /// This many bytes of the pattern, from a responder.
    Pattern(NonZeroUsize),
    /// None: the server discards the bytes (RFC 863).
    Nothing,
}

impl Default for PayloadOptions {
    fn default() -> PayloadOptions {
        PayloadOptions {
            request: ECHO_BYTES_DEFAULT,
            response: ExpectedResponse::Same,
        }
    }
}

impl PayloadOptions {
    pub(crate) fn protocol(&self) -> Protocol {
        let request = self.request.get();
        let echo = |bytes| Protocol::Echo(Arc::new(bytes));
        match self.response {
            ExpectedResponse::Same => echo(EchoPayload::new("echo", request)),
            ExpectedResponse::Pattern(response) => {
                echo(EchoPayload::with_response(request, response.get()))
            }
            ExpectedResponse::Nothing => {
                Protocol::Stream(Arc::new(EchoPayload::new("send", request)))
            }
        }
    }
}
