//! An echo over a stream (RFC 862): whatever comes goes back.

use onrush_engine::Error;

use crate::far_end::{FarEnd, Heard};

/// Serves a client until either side has had enough.
pub(crate) async fn serve(client: FarEnd) {
    // Who is gone need not be told why.
    let _ = converse(client).await;
}

/// No more is received before the client has taken what came before: it holds one buffer at most.
async fn converse(mut client: FarEnd) -> Result<(), Error> {
    loop {
        match client.receive().await? {
            Heard::Bytes(_) => {
                let received = client.input.take();
                client.stream.queue(received.expect("something has come"));
                client.limit_send();
                client.stream.flush().await?;
            }
            // All of it has come back when our side ends, too.
            Heard::End | Heard::Nothing => return client.end().await,
        }
    }
}
