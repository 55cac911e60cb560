//! Answers that are encoded on their way from the server to the client.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use onrush_http::Framing;
use onrush_http::response::ResponseHead;

use super::download::{Done, Download};
use super::failure::Failure;
use super::relay::Relay;
use crate::compress::{Change, Encoding};
use crate::limits::ENCODED_BYTES_PER_TURN;

impl Download<'_> {
    /// How the body behind `head` is relayed, and what that changes in the head.
    pub(super) fn relay(&self, head: &ResponseHead<'_, '_>) -> (Relay, Change) {
        let plain = || Relay::new(head.framing, self.forward.version());
        let Some(offer) = self.exchange.offer() else {
            return (plain(), Change::Nothing);
        };
        let change = self.forward.wish.change(offer, head, self.forward.method());
        let Change::Encode(coding) = change else {
            return (plain(), change);
        };
        // The answer to a HEAD has the head of what GET would get.
        if head.framing == Framing::None {
            return (plain(), change);
        }
        match Encoding::begin(&self.worker.encoders, coding) {
            Some(encoding) => (Relay::encoding(head.framing, encoding), change),
            None => (plain(), Change::Vary),
        }
    }

    /// Relays a body through its encoder. What that keeps back leaves whenever the server pauses: somebody may be
    /// waiting for just these bytes.
    pub(super) async fn run_encoding(
        &mut self,
        mut relay: Relay,
        done: Done,
    ) -> Result<Done, Failure> {
        let mut in_a_turn = 0;
        let keeps = self.trailer_filter(&mut relay);
        loop {
            in_a_turn += self.server_input.bytes().len();
            relay.advance(
                self.server_input,
                self.output,
                self.client,
                &self.worker.limits,
                &keeps,
            )?;
            if relay.is_complete() {
                return Ok(done);
            }
            if in_a_turn >= ENCODED_BYTES_PER_TURN {
                in_a_turn = 0;
                // The client gets what there is, or is found to be gone, before more is spent on it.
                self.flush().await.map_err(Failure::Client)?;
                self.worker.core.pause().await;
            }
            self.set_body_deadline();
            let arrived = {
                let mut receive = pin!(self.server().recv(self.server_input));
                poll_fn(|context| Poll::Ready(receive.as_mut().poll(context))).await
            };
            let received = match arrived {
                Poll::Ready(received) => received,
                Poll::Pending => {
                    relay.catch_up(self.output, self.client)?;
                    self.flush().await.map_err(Failure::Client)?;
                    self.set_body_deadline();
                    self.receive().await?
                }
            };
            self.body_received(received, &mut relay)?;
        }
    }
}
