//! A request for a multiplexed connection: what is sent, and how long its client waits.

use std::time::Duration;

use onrush_engine::Instant;
use onrush_http::Method;
use onrush_http::http2::hpack::Sensitivity;

/// What is sent.
pub(crate) struct Request<'t> {
    /// The head, as text of HTTP/1.1.
    pub(crate) text: &'t [u8],
    /// CONNECT for a head that asks for an upgrade: it is sent as an extended CONNECT (RFC 8441), and its body is the tunnel's.
    pub(crate) method: Method,
    /// Whether its fields may be in the server's table.
    pub(crate) sensitivity: Sensitivity,
    pub(crate) body: Body,
    pub(crate) patience: Patience,
}

/// What stands behind the head.
pub(crate) enum Body {
    /// Nothing.
    None,
    /// All of it.
    Whole(Vec<u8>),
    /// It is written to the submission as it comes.
    Follows,
}

/// How long the client waits.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    /// For the settings of the server, where its request depends on them.
    pub(crate) settings: Duration,
    /// For a stream, where all are in use.
    pub(crate) stream: Duration,
    /// From then on for the head of the response.
    pub(crate) response: Duration,
    /// When the whole exchange has to be over.
    pub(crate) until: Instant,
}

impl Patience {
    pub(super) fn settings_by(&self, now: Instant) -> Instant {
        (now + self.settings).min(self.until)
    }

    pub(super) fn stream_by(&self, now: Instant) -> Instant {
        (now + self.stream).min(self.until)
    }

    pub(super) fn response_by(&self, now: Instant) -> Instant {
        (now + self.response).min(self.until)
    }
}
