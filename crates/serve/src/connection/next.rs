//! What a connection has to do next.

use std::rc::Rc;

use crate::dispatch::chosen::Rest;
use crate::exchange::access::verify::Pending;
use crate::proxy::forward::request::Forward;
use crate::site::Site;

/// What has to happen before the response to the next request.
pub(super) enum Next {
    /// More bytes of the client.
    Receive,
    /// Room for more responses.
    Flush,
    /// What is left of a response of our own.
    Rest(Rest),
    /// The response of a server.
    Forward(Forward),
    /// Whether its password is right, for a response on the site that it began with.
    Verify(Pending, Rc<Site>),
    /// Nothing will: the last response is written.
    Close,
    /// The client has begun in HTTP/2 without a word about it before (RFC 9113 3.3).
    Http2,
}

/// What comes behind a connection's part in HTTP/1.
pub(super) enum After {
    /// Nothing.
    Nothing,
    /// HTTP/2.
    Http2,
}
