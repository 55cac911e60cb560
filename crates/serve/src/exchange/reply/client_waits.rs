//! Waits for the client: for room in its window, or for its hangup.

use std::task::{Context, Poll};

use onrush_engine::Error;

use super::{Reply, ReplyWriter};
use crate::exchange::client_abort::unless_hung_up;

impl Reply<'_> {
    /// Waits until the client's window has room. Returns at once on HTTP/1. Fails if the client disconnected.
    pub(crate) async fn room(&self) -> Result<(), Error> {
        match &self.to {
            ReplyWriter::Http2(to) => to.room().await,
            ReplyWriter::Http1(_) => Ok(()),
        }
    }

    /// Runs `work` until it completes or the client hangs up.
    ///
    /// # Errors
    /// How the client's connection ended. The work is dropped.
    #[inline]
    pub(crate) fn unless_hung_up<F: Future + Unpin>(
        &self,
        work: F,
    ) -> impl Future<Output = Result<F::Output, Error>> {
        unless_hung_up(|context| self.poll_hung_up(context), work)
    }

    fn poll_hung_up(&self, context: &Context<'_>) -> Poll<Error> {
        match &self.to {
            ReplyWriter::Http1(to) => to.stream().poll_hung_up(),
            ReplyWriter::Http2(to) => to.poll_reset(context),
        }
    }
}
