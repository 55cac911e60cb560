//! Requests for a tunnel by a change of protocol (RFC 9110 7.8): which are forwarded, and how.
//!
//! Only WebSocket is forwarded. Other protocols, such as `h2c` or `TLS/1.0`, could carry requests past the routes.

use onrush_http::request::RequestHead;
use onrush_http::response::ResponseHead;
use onrush_http::write::HeadWriter;
use onrush_http::{Framing, Header, Refusal, Version, header_is, upgrade};

use super::failure::Failure;
use crate::exchange::websocket::{self, Accept};

/// The only protocol that is forwarded (RFC 6455 4.1).
pub(crate) const PROTOCOL: &str = "websocket";

/// The fields that [`write_upgrade`] sends to a server.
const UPGRADE_FIELDS: [Header<'_>; 2] = [
    Header {
        name: "Connection",
        value: b"upgrade",
    },
    Header {
        name: "Upgrade",
        value: PROTOCOL.as_bytes(),
    },
];

/// Whether the client asks for a tunnel that it may have. A request with a body may not: upload and tunnel would be two
/// streams on one connection, and no WebSocket client sends one.
#[inline]
pub(crate) fn is_tunnel_request(head: &RequestHead<'_, '_>) -> bool {
    let is_ours = |protocol: &[u8]| protocol.eq_ignore_ascii_case(PROTOCOL.as_bytes());
    head.framing == Framing::None
        && upgrade::requested_protocols(head).is_some_and(|mut protocols| protocols.any(is_ours))
}

/// Whether the request is an extended CONNECT (RFC 8441), to which any 2xx means that the tunnel is established.
pub(crate) fn is_connect(head: &RequestHead<'_, '_>) -> bool {
    head.version == Version::Http2 && is_tunnel_request(head)
}

/// The response where nothing is forwarded.
pub(crate) const NO_WEBSOCKET: Refusal = Refusal::new(501, "WebSocket is not supported here");

/// Writes the fields that ask for a tunnel or grant one; `options` are further options of Connection.
pub(crate) fn write_upgrade(options: &[&str], writer: &mut HeadWriter<'_>) {
    upgrade::write([PROTOCOL.as_bytes()], options, writer);
}

/// Why a request for a tunnel may not go to an HTTP/2 server: its key is only checked here (RFC 6455 4.2.1).
pub(crate) fn objection(head: &RequestHead<'_, '_>) -> Option<Refusal> {
    let has_key = key(head).is_some_and(websocket::is_key);
    let reason = "a WebSocket without one Sec-WebSocket-Key of 16 bytes";
    (!has_key).then_some(Refusal::new(400, reason))
}

/// The expected Sec-WebSocket-Accept for the request's key. HTTP/2 has no such field (RFC 8441 5): with an HTTP/2
/// client, it is checked in the response of an HTTP/1 server; with an HTTP/2 server, it is sent to an HTTP/1 client.
pub(crate) fn accept(head: &RequestHead<'_, '_>) -> Accept {
    websocket::accept(key(head).unwrap_or_default())
}

fn key<'b>(head: &RequestHead<'_, 'b>) -> Option<&'b [u8]> {
    let mut keys = head.headers.iter();
    let mut next = || keys.find(|it| header_is(it.name, "sec-websocket-key"));
    let key = next()?;
    next().is_none().then_some(key.value)
}

/// Checks that a 101 grants what was asked for, and that its Sec-WebSocket-Accept is `accept`, if given.
///
/// # Errors
/// If it does not: the protocol of the following bytes is unknown.
pub(crate) fn check_grant(
    head: &ResponseHead<'_, '_>,
    accept: Option<&Accept>,
) -> Result<(), Failure> {
    upgrade::judge(head, &UPGRADE_FIELDS)
        .map_err(|refusal| Failure::BadResponse(refusal.into()))?;
    let said = |accept: &Accept| {
        let mut headers = head.headers.iter();
        headers.any(|it| header_is(it.name, "sec-websocket-accept") && it.value == accept)
    };
    match accept.is_none_or(said) {
        true => Ok(()),
        false => Err(Failure::BadResponse(
            "it agreed to WebSocket without the right Sec-WebSocket-Accept".into(),
        )),
    }
}
