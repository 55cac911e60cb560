//! TLS connections to servers.

use onrush_engine::{Error, Instant, Kind, Op, Stream};
use onrush_tls::{Connector, HandshakeError, Transport};

use crate::worker::Worker;

/// Makes the handshake with the server named `host`, by `deadline`.
///
/// # Errors
/// Errors of the connection; other failures are logged and returned as [`Kind::NoTls`].
pub(crate) async fn connect(
    stream: Stream,
    connector: &Connector,
    host: &str,
    deadline: Instant,
    worker: &Worker,
) -> Result<Transport, Error> {
    Transport::connect(stream, connector, host, deadline)
        .await
        .map_err(|error| match error {
            HandshakeError::Connection(error) => Error::new(Op::Connect, error.kind),
            HandshakeError::Ended => Error::new(Op::Connect, Kind::Truncated),
            error => {
                worker.log.failure(
                    &worker.core,
                    format_args!("no TLS with the server {host}: {error}"),
                );
                Error::new(Op::Connect, Kind::NoTls)
            }
        })
}
