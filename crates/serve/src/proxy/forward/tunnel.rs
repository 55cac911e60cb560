//! Requests that ask for a tunnel: how their server is asked, and what of its response is the agreement.

use onrush_http::Method;
use onrush_http::response::ResponseHead;

use super::request::Forward;
use crate::exchange::websocket::Accept;
use crate::proxy::failure::Failure;
use crate::proxy::upgrade;

impl Forward {
    /// Whether it is sent as an extended CONNECT (RFC 8441), of which any 2xx is the agreement.
    pub(crate) fn becomes_connect(&self) -> bool {
        self.asks_for_tunnel && self.group.speaks_http2()
    }

    /// The method that its server sees.
    pub(crate) fn sent_method(&self) -> Method {
        match self.becomes_connect() {
            true => Method::Connect,
            false => self.method,
        }
    }

    /// What a client is told behind the key of its WebSocket, where its server does not say it.
    pub(crate) fn accept(&self) -> Option<&Accept> {
        let seldom = self.seldom.as_deref().filter(|_| self.becomes_connect());
        seldom.and_then(|it| it.accept.as_ref())
    }

    /// Whether a 101 of its server is one that was asked for.
    ///
    /// # Errors
    /// When it is not.
    pub(crate) fn grants(&self, head: &ResponseHead<'_, '_>) -> Result<(), Failure> {
        match self.asks_for_tunnel {
            true => {
                let seldom = self.seldom.as_deref();
                upgrade::granted(head, seldom.and_then(|it| it.accept.as_ref()))
            }
            false => Err(Failure::BadResponse(
                "it changed the protocol without being asked to".into(),
            )),
        }
    }

    /// Whether a response with this status can be its client's. To an extended CONNECT any 2xx says that the tunnel is there
    /// (RFC 9110 9.3.6, RFC 8441 5).
    ///
    /// # Errors
    /// When it cannot.
    pub(crate) fn may_pass(&self, status: u16) -> Result<(), Failure> {
        let is_connect = || self.seldom.as_deref().is_some_and(|it| it.accept.is_some());
        match (200..300).contains(&status) && self.asks_for_tunnel && is_connect() {
            true => Err(Failure::BadResponse(
                "it does not agree to the WebSocket, and has not refused it".into(),
            )),
            false => Ok(()),
        }
    }
}
