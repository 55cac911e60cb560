//! Ends work for clients that hang up.
//!
//! Every wait for a client's request (in a queue, for a connection, for bytes from a server) runs inside
//! `unless_hung_up`. A reset of the client's connection ends the wait and drops its future, which releases
//! reservations, tickets and connections. A FIN does not end it: a client may legally send one after its last request.
//! The connection to the server is reset, because a FIN would ask the server to finish its response.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use onrush_engine::Error;

/// Runs `work` until it completes or `poll_hung_up` reports a hangup. A half-closed client still gets its response.
///
/// # Errors
/// How the client's connection or stream ended. The work is dropped.
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
