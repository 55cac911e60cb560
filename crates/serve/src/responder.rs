//! Requests and responses of fixed sizes over a stream: for each so many bytes that come, so many go.

use onrush_config::plan::Responder;
use onrush_engine::{Error, Part};

use crate::far_end::{FarEnd, Heard};

/// No short piece of it is the same as the one behind it, and as many of it as are wanted can stand behind each other: what the
/// load generator compares with.
static PATTERN: [u8; PERIOD * 256] = pattern();

const PERIOD: usize = 251;

const fn pattern() -> [u8; PERIOD * 256] {
    let mut pattern = [0; PERIOD * 256];
    let mut at = 0;
    while at < pattern.len() {
        pattern[at] = (at % PERIOD) as u8;
        at += 1;
    }
    pattern
}

/// Serves a client until either side has had enough.
pub(crate) async fn serve(client: FarEnd, sizes: Responder) {
    // Who is gone need not be told why.
    let _ = converse(client, sizes).await;
}

/// No more is received before the client has taken the responses to what came before.
async fn converse(mut client: FarEnd, sizes: Responder) -> Result<(), Error> {
    let mut missing = sizes.request_bytes as usize;
    loop {
        match client.receive().await? {
            Heard::Bytes(_) => {}
            Heard::End | Heard::Nothing => return client.end().await,
        }
        let mut come = client.input.bytes().len();
        client.input.consume(come);
        while come >= missing {
            come -= missing;
            missing = sizes.request_bytes as usize;
            respond(&client, sizes.response_bytes as usize).await?;
        }
        missing -= come;
        client.limit_send();
        client.stream.flush().await?;
    }
}

/// Queues one response. It is of memory that all share; what waits for a client is bounded in pieces, and here by the number of
/// responses that fit into one of them.
async fn respond(client: &FarEnd, bytes: usize) -> Result<(), Error> {
    let mut left = bytes;
    while left > 0 {
        let piece = left.min(PATTERN.len());
        client.stream.queue(Part::Static(&PATTERN[..piece]));
        left -= piece;
        if left > 0 {
            client.limit_send();
            client.stream.flush().await?;
        }
    }
    Ok(())
}
