//! Requests that ask for a tunnel, another protocol on their connection (RFC 9110 7.8): which of them pass, and what a server
//! is asked and has to respond.
//!
//! WebSocket is the only protocol that passes. A server that speaks another behind a change could take requests there
//! that no route has seen: `h2c` is one such, and `TLS/1.0` hides what it carries.

use onrush_http::request::RequestHead;
use onrush_http::response::ResponseHead;
use onrush_http::write::HeadWriter;
use onrush_http::{Framing, Header, Refusal, Version, header_is, upgrade};

use super::failure::Failure;
use crate::exchange::websocket::{self, Accept};

/// The protocol that passes (RFC 6455 4.1).
pub(crate) const PROTOCOL: &str = "websocket";

/// What a server is asked, as [`ask`] writes it.
const ASKED: [Header<'_>; 2] = [
    Header {
        name: "Connection",
        value: b"upgrade",
    },
    Header {
        name: "Upgrade",
        value: PROTOCOL.as_bytes(),
    },
];

/// Whether the client asks for a tunnel that it may have. With a body it may not: an upload and a tunnel would be two
/// streams on one connection, and no client of WebSocket has one.
#[inline]
pub(crate) fn is_asked(head: &RequestHead<'_, '_>) -> bool {
    let is_ours = |protocol: &[u8]| protocol.eq_ignore_ascii_case(PROTOCOL.as_bytes());
    head.framing == Framing::None
        && upgrade::asked(head).is_some_and(|mut protocols| protocols.any(is_ours))
}

/// Whether it was an extended CONNECT (RFC 8441): a success would say that there is a tunnel.
pub(crate) fn is_connect(head: &RequestHead<'_, '_>) -> bool {
    head.version == Version::Http2 && is_asked(head)
}

/// What one gets where nothing is forwarded.
pub(crate) const NO_WEBSOCKET: Refusal = Refusal::new(501, "no WebSocket is served here");

/// Writes what asks for a tunnel, or grants one; `options` stand beside it in Connection.
pub(crate) fn ask(options: &[&str], writer: &mut HeadWriter<'_>) {
    upgrade::write([PROTOCOL.as_bytes()], options, writer);
}

/// Why a request that asks for a tunnel may not go to a server of HTTP/2: nobody but us looks at its key there (RFC 6455 4.2.1).
pub(crate) fn objection(head: &RequestHead<'_, '_>) -> Option<Refusal> {
    let has_key = key(head).is_some_and(websocket::is_key);
    let reason = "a WebSocket without one Sec-WebSocket-Key of 16 bytes";
    (!has_key).then_some(Refusal::new(400, reason))
}

/// What is to be said to the key of a request that asks for a tunnel: by the server where its client does not look, and to the client
/// where its server does not say it. HTTP/2 has no such field (RFC 8441 5).
pub(crate) fn accept(head: &RequestHead<'_, '_>) -> Accept {
    websocket::accept(key(head).unwrap_or_default())
}

fn key<'b>(head: &RequestHead<'_, 'b>) -> Option<&'b [u8]> {
    let mut keys = head.headers.iter();
    let mut next = || keys.find(|it| header_is(it.name, "sec-websocket-key"));
    let key = next()?;
    next().is_none().then_some(key.value)
}

/// Whether a 101 grants what was asked for, and says `accept` where we are to look.
///
/// # Errors
/// When it does not: then it is unknown what follows.
pub(crate) fn granted(head: &ResponseHead<'_, '_>, accept: Option<&Accept>) -> Result<(), Failure> {
    upgrade::judge(head, &ASKED).map_err(|refusal| Failure::BadResponse(refusal.into()))?;
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
