//! What whoever makes a response waits for at its client: room for more of it, and its end.

use std::task::{Context, Poll};

use onrush_engine::Error;

use super::{Reply, To};
use crate::exchange::hangup::unless_hung_up;

impl Reply<'_> {
    /// Waits until the client takes some of a body, where it says how much.
    ///
    /// # Errors
    /// When the client is gone.
    pub(crate) async fn room(&self) -> Result<(), Error> {
        match &self.to {
            To::Http2(to) => to.room().await,
            To::Http1(_) => Ok(()),
        }
    }

    /// What comes of `work`, unless the client hangs up before.
    ///
    /// # Errors
    /// How the client has ended. The work is dropped then.
    #[inline]
    pub(crate) fn unless_hung_up<F: Future + Unpin>(
        &self,
        work: F,
    ) -> impl Future<Output = Result<F::Output, Error>> {
        unless_hung_up(|context| self.poll_hung_up(context), work)
    }

    fn poll_hung_up(&self, context: &Context<'_>) -> Poll<Error> {
        match &self.to {
            To::Http1(to) => to.stream().poll_hung_up(),
            To::Http2(to) => to.poll_reset(context),
        }
    }
}
