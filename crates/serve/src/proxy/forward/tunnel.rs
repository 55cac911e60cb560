//! Requests for a tunnel: how they are sent, and which response grants them.

use onrush_http::Method;
use onrush_http::response::ResponseHead;

use super::request::Forward;
use crate::exchange::websocket::Accept;
use crate::proxy::failure::Failure;
use crate::proxy::upgrade;

impl Forward {
    /// Whether it is sent as an extended CONNECT (RFC 8441), which any 2xx grants.
    pub(crate) fn becomes_connect(&self) -> bool {
        self.asks_for_tunnel && self.group.speaks_http2()
    }

    /// The method that the server receives.
    pub(crate) fn sent_method(&self) -> Method {
        match self.becomes_connect() {
            true => Method::Connect,
            false => self.method,
        }
    }

    /// The Sec-WebSocket-Accept for the client, if the server uses HTTP/2 and cannot send it.
    pub(crate) fn accept(&self) -> Option<&Accept> {
        let seldom = self.seldom.as_deref().filter(|_| self.becomes_connect());
        seldom.and_then(|it| it.accept.as_ref())
    }

    /// Checks that a 101 was asked for.
    ///
    /// # Errors
    /// If it was not.
    pub(crate) fn check_upgrade(&self, head: &ResponseHead<'_, '_>) -> Result<(), Failure> {
        match self.asks_for_tunnel {
            true => {
                let seldom = self.seldom.as_deref();
                upgrade::check_grant(head, seldom.and_then(|it| it.accept.as_ref()))
            }
            false => Err(Failure::BadResponse(
                "it switched protocols although the request did not ask for it".into(),
            )),
        }
    }

    /// Checks that a response with this status may be relayed. To an HTTP/2 client that sent an extended CONNECT, a 2xx
    /// would mean that the tunnel is established (RFC 9110 9.3.6, RFC 8441 5).
    ///
    /// # Errors
    /// If it may not.
    pub(crate) fn check_status(&self, status: u16) -> Result<(), Failure> {
        let is_connect = || self.seldom.as_deref().is_some_and(|it| it.accept.is_some());
        match (200..300).contains(&status) && self.asks_for_tunnel && is_connect() {
            true => Err(Failure::BadResponse(
                "it neither accepted nor refused the WebSocket".into(),
            )),
            false => Ok(()),
        }
    }
}
