//! Long bodies on their way between two plain connections: through a pipe of the kernel, past our memory.
//!
//! What a body needs looked at (chunks, an encoding, TLS on either side) goes through buffers instead, and so does what is
//! left where the engine has no pipe for it.

use onrush_engine::{Splice, Stream};

use super::download::{Download, body_received};
use super::failure::Failure;
use super::relay::Relay;
use super::upload::{Stopped, Upload};
use crate::limits::SPLICED_MIN;

/// The two connections between which a body may pass.
pub(super) struct Ends<'a> {
    from: &'a Stream,
    to: &'a Stream,
}

impl<'a> Ends<'a> {
    /// `None` where so few bytes are `left` that it would not pay, or what passes is not what is on the wire.
    #[inline]
    pub(super) fn new(
        left: Option<u64>,
        from: impl FnOnce() -> Option<&'a Stream>,
        to: impl FnOnce() -> Option<&'a Stream>,
    ) -> Option<Self> {
        match left? {
            ..SPLICED_MIN => None,
            _ => Some(Self {
                from: from()?,
                to: to()?,
            }),
        }
    }
}

impl Download<'_> {
    /// Passes what is left of the answer's body to the client, or returns where more of it has to be received.
    pub(super) async fn splice(
        &mut self,
        ends: Ends<'_>,
        relay: &mut Relay,
    ) -> Result<(), Failure> {
        let mut splice = Splice::default();
        while let Some(left @ 1..) = relay.verbatim_left() {
            self.set_body_deadline();
            let taken = self.reply.unless_hung_up(splice.take(ends.from, left));
            let taken = match taken.await.map_err(Failure::Client)? {
                Ok(0) => break,
                Ok(taken) => taken,
                Err(error) => return body_received(Err(error), relay),
            };
            ends.to.set_send_patience(self.client_patience());
            splice.give(ends.to).await.map_err(Failure::Client)?;
            relay.pass_unseen(taken);
        }
        Ok(())
    }
}

impl Upload<'_> {
    /// Passes what is left of the request's body to the server, or returns where more of it has to be received.
    pub(super) async fn splice(&mut self, ends: Ends<'_>) -> Result<(), Stopped> {
        let mut splice = Splice::default();
        while let Some(left @ 1..) = self.body.left() {
            ends.from.set_deadline(Some(self.deadlines_of_wait()));
            let taken = match splice.take(ends.from, left).await {
                Ok(0) => break,
                Ok(taken) => taken,
                Err(error) => return Err(Stopped::ByClient(Failure::Client(error))),
            };
            self.attempt.progress.body_comes();
            self.body.pass_unseen(taken);
            self.set_server_deadline();
            splice.give(ends.to).await.map_err(|_| Stopped::ByServer)?;
            self.attempt.progress.body_left(self.body.left());
        }
        Ok(())
    }
}
