//! Makes a session of a connection: rustls does the handshake, and this module moves its bytes.

mod failure_alert;
mod incoming;
mod outbox;
mod side;

use std::sync::Arc;

use onrush_engine::{Input, Stream};
use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::server::UnbufferedServerConnection;
use rustls::{ClientConfig, ServerConfig};

use self::incoming::Incoming;
use self::outbox::Outbox;
use self::side::{Side, Step};
use crate::error::HandshakeError;
use crate::handshake_facts::HandshakeFacts;
use crate::session::Session;

/// Does the handshake with a client by the stream's deadline; `received` are bytes that have already arrived.
///
/// # Errors
/// See [`HandshakeError`]. The client gets an alert, or a response if it sent plain HTTP.
pub(crate) async fn accept(
    stream: &Stream,
    received: Input,
    config: Arc<ServerConfig>,
) -> Result<Session, HandshakeError> {
    let connection = UnbufferedServerConnection::new(config).map_err(HandshakeError::Tls)?;
    run_handshake(stream, received, Side::Server(connection)).await
}

/// Does the handshake with the server `name` by the stream's deadline.
pub(crate) async fn connect(
    stream: &Stream,
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
) -> Result<Session, HandshakeError> {
    let connection = UnbufferedClientConnection::new(config, name).map_err(HandshakeError::Tls)?;
    run_handshake(stream, Input::default(), Side::Client(connection)).await
}

async fn run_handshake(
    stream: &Stream,
    received: Input,
    mut side: Side,
) -> Result<Session, HandshakeError> {
    let mut incoming = Incoming {
        input: received,
        ..Incoming::default()
    };
    let mut outbox = Outbox::new(stream);
    if side.is_plain_http(incoming.bytes()) {
        failure_alert::refuse_plain_http(stream).await?;
        return Err(HandshakeError::PlainHttp);
    }
    let mut heard = HandshakeFacts::default();
    loop {
        let step = heard.during(|| side.step(&mut incoming, &mut outbox))?;
        if std::mem::take(&mut heard.is_unopened) {
            incoming.skip_early_data()?;
        }
        match step {
            Step::Done => break,
            Step::Again => {}
            Step::Blocked if incoming.show_next_record() => {}
            Step::Blocked => {
                outbox.flush().await?;
                let is_first = incoming.bytes().is_empty();
                if incoming.receive(stream).await? == 0 {
                    return Err(HandshakeError::Ended);
                }
                if is_first && side.is_plain_http(incoming.bytes()) {
                    failure_alert::refuse_plain_http(stream).await?;
                    return Err(HandshakeError::PlainHttp);
                }
            }
            Step::Failed(error) => {
                let (own, error) = failure_alert::of(error, &side, &incoming);
                match own {
                    Some(alert) => failure_alert::send_alert(stream, alert, &mut outbox).await,
                    None => {
                        failure_alert::send_prepared_alert(
                            stream,
                            &mut side,
                            &mut incoming,
                            &mut outbox,
                        )
                        .await
                    }
                }
                return Err(match heard.refused {
                    Some(why) => HandshakeError::Certificate(why),
                    None => HandshakeError::Tls(error),
                });
            }
        }
    }
    if side.must_flush_last_flight() {
        outbox.flush().await?;
    } else {
        outbox.queue();
    }
    let mut session = side.into_session(heard)?;
    session.incoming = incoming.into_input(stream.core())?;
    Ok(session)
}
