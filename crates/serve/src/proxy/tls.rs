//! TLS towards servers.

use onrush_engine::{Error, Instant, Kind, Op, Stream};
use onrush_tls::{Connector, HandshakeError, Transport};

use crate::worker::Worker;

/// Shakes hands with the server that is called `host`, by `deadline`.
///
/// # Errors
/// Those of the connection; whatever else is wrong is written about and becomes one, too.
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
