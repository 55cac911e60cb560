//! Clients that hang up while somebody works for them.
//!
//! All waits for a client's request (in a queue, for a connection, for bytes of a server) are inside
//! `unless_hung_up`. A reset of the client's connection ends the wait and drops it, and with it reservations, tickets
//! and connections. A FIN does not end it: a client may legally send one when no request follows. The connection to
//! the server is reset, because a FIN would ask the server to finish its response.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use onrush_engine::Error;

/// What comes of `work`, unless the client hangs up before, which `poll_hung_up` says. Who has only ended its side waits for its
/// response.
///
/// # Errors
/// How the client's connection, or stream, ended. The work is dropped then.
#[inline]
pub(crate) fn unless_hung_up<F: Future + Unpin>(
    poll_hung_up: impl Fn(&Context<'_>) -> Poll<Error>,
    mut work: F,
) -> impl Future<Output = Result<F::Output, Error>> {
    poll_fn(move |context| match poll_hung_up(context) {
        Poll::Ready(error) => Poll::Ready(Err(error)),
        Poll::Pending => Pin::new(&mut work).poll(context).map(Ok),
    })
}
