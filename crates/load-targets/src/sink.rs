//! Discard over a stream (RFC 863).

use onrush_engine::Error;

use crate::client::{Client, Received};

/// Serves a client until either side closes.
pub(crate) async fn serve(mut client: impl Client) -> Result<(), Error> {
    loop {
        match client.receive().await? {
            Received::Bytes => {
                let (_, input) = client.parts();
                input.consume(input.bytes().len());
            }
            Received::End | Received::Nothing => return client.end().await,
        }
    }
}
