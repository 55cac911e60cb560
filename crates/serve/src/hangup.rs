//! Clients that hang up while somebody works for them.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use onrush_engine::Error;
use onrush_tls::Transport;

/// What comes of `work`, unless the `client` hangs up before. Who has only ended its side waits for its response.
///
/// # Errors
/// How the client's connection ended. The work is dropped then.
#[inline]
pub(crate) fn unless_hung_up<F: Future + Unpin>(
    client: &Transport,
    mut work: F,
) -> impl Future<Output = Result<F::Output, Error>> {
    poll_fn(move |context| match client.poll_hung_up() {
        Poll::Ready(error) => Poll::Ready(Err(error)),
        Poll::Pending => Pin::new(&mut work).poll(context).map(Ok),
    })
}
