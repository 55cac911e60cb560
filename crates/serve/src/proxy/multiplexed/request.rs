//! A request for a multiplexed connection, and its timeouts.

use std::time::Duration;

use onrush_engine::Instant;
use onrush_http::Method;
use onrush_http::http2::hpack::Sensitivity;

pub(crate) struct Request<'t> {
    /// The head as HTTP/1.1 text.
    pub(crate) text: &'t [u8],
    /// CONNECT for a request for an upgrade: it is sent as an extended CONNECT (RFC 8441), with the tunnel as its body.
    pub(crate) method: Method,
    /// Whether its fields may enter the server's dynamic table.
    pub(crate) sensitivity: Sensitivity,
    pub(crate) body: Body,
    pub(crate) patience: RequestTimeouts,
}

pub(crate) enum Body {
    None,
    Whole(Vec<u8>),
    /// The body is written to the submission as it arrives.
    Follows,
}

/// Timeouts of a request.
#[derive(Clone, Copy)]
pub(crate) struct RequestTimeouts {
    /// Timeout for the server's settings, for requests that depend on them.
    pub(crate) settings: Duration,
    /// Timeout for a free stream.
    pub(crate) stream: Duration,
    /// Timeout from the opening of the stream to the head of the response.
    pub(crate) response: Duration,
    /// Deadline of the whole exchange.
    pub(crate) until: Instant,
}

impl RequestTimeouts {
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
