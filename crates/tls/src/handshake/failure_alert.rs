//! End of a failed handshake: the alert, or the response to plain HTTP.

use std::rc::Rc;

use onrush_engine::{Error, Input, Stream};
use rustls::{PeerIncompatible, ProtocolVersion};

use super::incoming::Incoming;
use super::outbox::Outbox;
use super::side::Side;
use crate::error::alert::Alert;
use crate::limits::{REFUSAL_LINGER, REFUSAL_LINGER_BYTES};

/// Response to plain HTTP on a TLS port.
const PLAIN_HTTP_RESPONSE: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\
    Content-Type: text/plain\r\n\
    Content-Length: 37\r\n\
    Connection: close\r\n\
    \r\n\
    this port speaks TLS: try https://...";

/// Content type of an alert record (RFC 8446 5.1).
const ALERT_RECORD: u8 = 21;

/// Version in a hello that offers TLS 1.2 or later (RFC 8446 4.1.2).
const TLS12_HELLO: [u8; 2] = [3, 3];

/// Returns the alert for `error` if rustls sends another than the RFC requires, and the error to report. Such alerts
/// are never encrypted, because these errors occur before there are handshake keys.
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
        // rustls checks extensions that TLS 1.2 added before it checks the version (RFC 5246 E.1).
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
        // TLS 1.2 has no certificate_required alert (RFC 5246 7.4.6).
        rustls::Error::NoCertificatesPresented
            if connection.protocol_version() == Some(ProtocolVersion::TLSv1_2) =>
        {
            (Some(Alert::HANDSHAKE_FAILURE), error)
        }
        _ => (None, error),
    }
}

/// Sends `alert` unencrypted.
pub(super) async fn send_alert(stream: &Stream, alert: Alert, outbox: &mut Outbox<'_>) {
    outbox.queue();
    let [level, number] = alert.message();
    stream.queue(Rc::<[u8]>::from([ALERT_RECORD, 3, 3, 0, 2, level, number]));
    // The peer may have closed the connection; ignore the error.
    let _ = end(stream, outbox).await;
}

/// Sends the alert that rustls has prepared, if any, and waits until it may have arrived.
pub(super) async fn send_prepared_alert(
    stream: &Stream,
    side: &mut Side,
    incoming: &mut Incoming,
    outbox: &mut Outbox<'_>,
) {
    // Stop when everything is written: the step that failed would fail again.
    while side.state().wants_write() {
        if side.step(incoming, outbox).is_err() {
            return;
        }
    }
    // The peer may have closed the connection; ignore the error.
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

/// Closes our side and reads the rest of the peer's data: closing with unread bytes would reset the connection, and the
/// peer could lose our last message (RFC 9112 9.6).
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
