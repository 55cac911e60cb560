//! Sending a request and receiving the response to it, at the same time.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use onrush_tls::Transport;

use crate::protocol::failure::Lost;

/// Sends what is queued while `receiving` takes the response: a server may respond while a large body still arrives, and take no
/// more of it before its response is read. Where `keep_alive` says of what came that the connection can go on, all of it is sent
/// before it does, and it cannot where that fails.
pub(crate) async fn send_while_receiving<T>(
    stream: &Transport,
    receiving: impl Future<Output = Result<T, Lost>>,
    keep_alive: fn(&mut T) -> &mut bool,
) -> Result<T, Lost> {
    let mut sent = None;
    let received = {
        let mut sending = pin!(stream.flush());
        let mut receiving = pin!(receiving);
        poll_fn(|context| {
            if sent.is_none()
                && let Poll::Ready(outcome) = sending.as_mut().poll(context)
            {
                sent = Some(outcome);
            }
            receiving.as_mut().poll(context)
        })
        .await
    };
    let mut received = match (received, sent) {
        (Ok(received), _) => received,
        // Why there is no response is more likely that the request did not get through than the other way round.
        (Err(_), Some(Err(error))) => return Err(error.into()),
        (Err(lost), _) => return Err(lost),
    };
    if *keep_alive(&mut received) {
        let sent = match sent {
            Some(sent) => sent,
            None => stream.flush().await,
        };
        *keep_alive(&mut received) = sent.is_ok();
    }
    Ok(received)
}
