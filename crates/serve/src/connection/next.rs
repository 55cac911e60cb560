//! The next step of a connection.

use std::rc::Rc;

use crate::dispatch::route_action::PendingBody;
use crate::exchange::access::password_verifier::Pending;
use crate::proxy::forward::request::Forward;
use crate::site::Site;

/// The next step before another request can be processed.
pub(super) enum NextStep {
    /// Receive more bytes from the client.
    Receive,
    /// Send responses, because the output is full.
    Flush,
    /// Send the rest of a generated response.
    Rest(PendingBody),
    /// Forward to a server.
    Forward(Forward),
    /// Verify the password, then respond with the site with which the request started.
    Verify(Pending, Rc<Site>),
    /// Close, because the last response is written.
    Close,
    /// Switch to HTTP/2: the client sent its preface without negotiation (RFC 9113 3.3).
    Http2,
}

/// Continuation of a connection after HTTP/1.
pub(super) enum NextProtocol {
    Nothing,
    Http2,
}
