//! Requests and responses of fixed sizes over a stream.

use onrush_config::plan::Responder;
use onrush_engine::{Error, Part};

use crate::client::{Client, Received};

/// Bytes of a response. The period is prime: a lost piece shifts the pattern, unless its size is a multiple of 251. The
/// load generator checks responses against the pattern.
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

/// Serves a client until either side closes. Nothing more is received until the client has read the responses to
/// earlier requests.
pub(crate) async fn serve(mut client: impl Client, sizes: Responder) -> Result<(), Error> {
    let mut missing = sizes.request_bytes as usize;
    loop {
        match client.receive().await? {
            Received::Bytes => {}
            Received::End | Received::Nothing => return client.end().await,
        }
        let (_, input) = client.parts();
        let mut received = input.bytes().len();
        input.consume(received);
        while received >= missing {
            received -= missing;
            missing = sizes.request_bytes as usize;
            respond(&client, sizes.response_bytes as usize).await?;
        }
        missing -= received;
        client.limit_send();
        client.stream().flush().await?;
    }
}

/// Queues one response, in pieces of shared memory, and flushes between pieces.
async fn respond(client: &impl Client, bytes: usize) -> Result<(), Error> {
    let mut left = bytes;
    while left > 0 {
        let piece = left.min(PATTERN.len());
        client.stream().queue(Part::Static(&PATTERN[..piece]));
        left -= piece;
        if left > 0 {
            client.limit_send();
            client.stream().flush().await?;
        }
    }
    Ok(())
}
