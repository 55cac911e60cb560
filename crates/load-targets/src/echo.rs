//! Echo over a stream (RFC 862).

use onrush_engine::Error;

use crate::client::{Client, Received};

/// Serves a client until either side closes. Holds at most one buffer: nothing more is received until the client has
/// read it.
pub(crate) async fn serve(mut client: impl Client) -> Result<(), Error> {
    loop {
        match client.receive().await? {
            Received::Bytes => {
                let (stream, input) = client.parts();
                stream.queue(
                    input
                        .take()
                        .expect("no input, although bytes were reported as received"),
                );
                client.limit_send();
                client.stream().flush().await?;
            }
            Received::End | Received::Nothing => return client.end().await,
        }
    }
}
