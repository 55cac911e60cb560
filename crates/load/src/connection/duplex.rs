//! Sends a request and receives its response concurrently.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use onrush_tls::Transport;

use crate::protocol::failure::NoResponse;

/// Sends the queued request while `receiving` takes the response: a server may respond before it has read a large body,
/// and stop reading until its response is read. If `keep_alive` of the result is true, the rest of the request is sent
/// before the connection is reused, and it is set to false if that fails.
pub(crate) async fn send_while_receiving<T>(
    stream: &Transport,
    receiving: impl Future<Output = Result<T, NoResponse>>,
    keep_alive: fn(&mut T) -> &mut bool,
) -> Result<T, NoResponse> {
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
        // The failure to send is the more likely cause of the missing response.
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
