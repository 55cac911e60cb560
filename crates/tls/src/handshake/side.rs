//! rustls's connection on either side of a handshake.

use onrush_engine::Error;
use rustls::client::UnbufferedClientConnection;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, UnbufferedStatus};
use rustls::{CommonState, ExtractedSecrets, ProtocolVersion};

use super::incoming::Incoming;
use super::outbox::Outbox;
use crate::error::HandshakeError;
use crate::handshake_facts::HandshakeFacts;
use crate::info::{self, Info};
use crate::record::{Opener, Sealer};
use crate::session::Session;
use crate::version::Version;

/// Content type of a handshake record (RFC 8446 5.1).
pub(super) const HANDSHAKE_RECORD: u8 = 22;

/// rustls's connection on either side.
#[allow(
    clippy::large_enum_variant,
    reason = "one per handshake, and never moved in numbers"
)]
pub(super) enum Side {
    Server(UnbufferedServerConnection),
    Client(UnbufferedClientConnection),
}

pub(super) enum Step {
    Again,
    /// Waits for the peer.
    Blocked,
    Done,
    Failed(rustls::Error),
}

impl Side {
    pub(super) fn step(
        &mut self,
        incoming: &mut Incoming,
        outbox: &mut Outbox<'_>,
    ) -> Result<Step, Error> {
        let (discard, step) = match self {
            Side::Server(connection) => {
                take(connection.process_tls_records(incoming.shown_mut()), outbox)
            }
            Side::Client(connection) => {
                take(connection.process_tls_records(incoming.shown_mut()), outbox)
            }
        };
        incoming.consume(discard);
        let state = self.state();
        match step? {
            // Later records belong to the session: rustls would decrypt them with keys that it is about to export.
            Step::Again if !state.wants_write() && !state.is_handshaking() => Ok(Step::Done),
            step => Ok(step),
        }
    }

    pub(super) fn state(&self) -> &CommonState {
        match self {
            Side::Server(connection) => connection,
            Side::Client(connection) => connection,
        }
    }

    /// Whether the peer waits for our last flight. The last messages of a TLS 1.3 server are tickets; they are sent
    /// with its first response if the request has already arrived, otherwise as soon as it waits for a request.
    pub(super) fn must_flush_last_flight(&self) -> bool {
        match self {
            Side::Server(connection) => {
                connection.protocol_version() != Some(ProtocolVersion::TLSv1_3)
            }
            Side::Client(_) => true,
        }
    }

    pub(super) fn is_plain_http(&self, bytes: &[u8]) -> bool {
        match self {
            Side::Server(_) => bytes
                .first()
                .is_some_and(|&byte| byte != HANDSHAKE_RECORD && byte.is_ascii_uppercase()),
            Side::Client(_) => false,
        }
    }

    /// Exports the keys. `heard` contains the requested name and the secrets.
    pub(super) fn into_session(self, heard: HandshakeFacts) -> Result<Session, HandshakeError> {
        let HandshakeFacts {
            name,
            served,
            secrets,
            ..
        } = heard;
        let (end, info, keys, secrets, tickets) = match self {
            Side::Server(connection) => {
                let end = info::Side::Server;
                let info = Info::new(&connection, (name, served), end);
                let (keys, _) = connection
                    .dangerous_into_kernel_connection()
                    .map_err(HandshakeError::Tls)?;
                (end, info, keys, secrets.of_server(), None)
            }
            Side::Client(connection) => {
                let end = info::Side::Client;
                let info = Info::new(&connection, (None, None), end);
                let (keys, tickets) = connection
                    .dangerous_into_kernel_connection()
                    .map_err(HandshakeError::Tls)?;
                (end, info, keys, secrets.of_client(), Some(tickets))
            }
        };
        let ExtractedSecrets { tx, rx } = keys;
        let (version, tickets) = match info.version {
            Version::Tls12 => (ProtocolVersion::TLSv1_2, None),
            Version::Tls13 => (ProtocolVersion::TLSv1_3, tickets.map(Box::new)),
        };
        assert!(
            secrets.is_some() == (info.version == Version::Tls13),
            "rustls tells its listener the secrets of TLS 1.3, and no others"
        );
        let sealer = Sealer::new(version, tx.0, &tx.1);
        let opener = Opener::new(version, rx.0, &rx.1);
        Ok(Session::new(sealer, opener, secrets, tickets, info, end))
    }
}

/// Performs what rustls requests, without waiting. Returns the number of bytes consumed, too.
fn take<Data>(
    status: UnbufferedStatus<'_, '_, Data>,
    outbox: &mut Outbox<'_>,
) -> (usize, Result<Step, Error>) {
    let UnbufferedStatus { discard, state } = status;
    let step = match state {
        Ok(ConnectionState::EncodeTlsData(message)) => outbox.put(message).map(|()| Step::Again),
        Ok(ConnectionState::TransmitTlsData(message)) => {
            // It is sent before the next wait.
            message.done();
            Ok(Step::Again)
        }
        Ok(ConnectionState::BlockedHandshake) => Ok(Step::Blocked),
        Ok(ConnectionState::WriteTraffic(_)) => Ok(Step::Done),
        // Data before the end of the handshake is never accepted, and a close_notify is a failure.
        Ok(_) => Ok(Step::Failed(rustls::Error::HandshakeNotComplete)),
        Err(error) => Ok(Step::Failed(error)),
    };
    (discard, step)
}
