//! A sink for a stream (RFC 863): whatever comes is dropped.

use onrush_engine::Error;

use crate::far_end::{FarEnd, Heard};

/// Serves a client until either side has had enough.
pub(crate) async fn serve(client: FarEnd) {
    // Who is gone need not be told why.
    let _ = converse(client).await;
}

async fn converse(mut client: FarEnd) -> Result<(), Error> {
    loop {
        match client.receive().await? {
            Heard::Bytes(_) => client.input.consume(client.input.bytes().len()),
            Heard::End | Heard::Nothing => return client.end().await,
        }
    }
}
