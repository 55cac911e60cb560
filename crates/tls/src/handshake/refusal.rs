//! The end of a handshake that fails: what the peer is told.

use std::rc::Rc;

use onrush_engine::{Error, Input, Stream};
use rustls::{PeerIncompatible, ProtocolVersion};

use super::incoming::Incoming;
use super::outbox::Outbox;
use super::side::Side;
use crate::error::alert::Alert;
use crate::limits::{REFUSAL_LINGER, REFUSAL_LINGER_BYTES};

/// What a client is told that speaks HTTP where TLS is spoken.
const PLAIN_HTTP_RESPONSE: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\
    Content-Type: text/plain\r\n\
    Content-Length: 37\r\n\
    Connection: close\r\n\
    \r\n\
    this port speaks TLS: try https://...";

/// The first byte of an alert's record (RFC 8446 5.1).
const ALERT_RECORD: u8 = 21;

/// The version of a hello that offers TLS 1.2 or more (RFC 8446 4.1.2).
const TLS12_HELLO: [u8; 2] = [3, 3];

/// The alert for `error` where rustls has another than the RFC, and the error to write about. Such alerts are never
/// encrypted: none of these errors is found behind the keys of the handshake.
pub(super) fn of(
    error: rustls::Error,
    side: &Side,
    incoming: &Incoming,
) -> (Option<Alert>, rustls::Error) {
    let Side::Server(connection) = side else {
        return (None, error);
    };
    let is_old = incoming
        .hello_version
        .is_some_and(|version| version < TLS12_HELLO);
    match error {
        // rustls looks for what TLS 1.2 added before it looks at the version (RFC 5246 E.1).
        rustls::Error::PeerIncompatible(PeerIncompatible::SignatureAlgorithmsExtensionRequired)
            if is_old =>
        {
            let error = PeerIncompatible::Tls12NotOffered.into();
            (Some(Alert::PROTOCOL_VERSION), error)
        }
        // RFC 8446 9.2.
        rustls::Error::PeerIncompatible(PeerIncompatible::KeyShareExtensionRequired) => {
            (Some(Alert::MISSING_EXTENSION), error)
        }
        // RFC 5246 7.4.6; certificate_required is TLS 1.3's.
        rustls::Error::NoCertificatesPresented
            if connection.protocol_version() == Some(ProtocolVersion::TLSv1_2) =>
        {
            (Some(Alert::HANDSHAKE_FAILURE), error)
        }
        _ => (None, error),
    }
}

/// Sends `alert` without encryption.
pub(super) async fn say(stream: &Stream, alert: Alert, outbox: &mut Outbox<'_>) {
    outbox.queue();
    let [level, number] = alert.message();
    stream.queue(Rc::<[u8]>::from([ALERT_RECORD, 3, 3, 0, 2, level, number]));
    // Who does not want to hear it has closed already.
    let _ = end(stream, outbox).await;
}

/// Sends the alert that says what went wrong, if there is one, and waits until it may have arrived.
pub(super) async fn say_why(
    stream: &Stream,
    side: &mut Side,
    incoming: &mut Incoming,
    outbox: &mut Outbox<'_>,
) {
    // No further than that: what failed would fail again.
    while side.state().wants_write() {
        if side.step(incoming, outbox).is_err() {
            return;
        }
    }
    // Who does not want to hear it has closed already.
    let _ = end(stream, outbox).await;
}

async fn end(stream: &Stream, outbox: &mut Outbox<'_>) -> Result<(), Error> {
    outbox.flush().await?;
    linger(stream).await
}

pub(super) async fn refuse_plain_http(stream: &Stream) -> Result<(), Error> {
    stream.queue(PLAIN_HTTP_RESPONSE);
    stream.flush().await?;
    linger(stream).await
}

/// Ends our side and reads what the peer is still sending: closing with bytes unread would take back what we have said
/// (RFC 9112 9.6).
async fn linger(stream: &Stream) -> Result<(), Error> {
    stream.shutdown().await?;
    stream.set_deadline(Some(stream.core().now() + REFUSAL_LINGER));
    let mut input = Input::default();
    let mut discarded = 0;
    while discarded < REFUSAL_LINGER_BYTES {
        match stream.recv(&mut input).await? {
            0 => return Ok(()),
            count => discarded += count,
        }
        input.consume(input.bytes().len());
    }
    Ok(())
}
