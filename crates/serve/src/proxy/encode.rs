//! Responses compressed between the server and the client.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use onrush_http::Framing;
use onrush_http::response::ResponseHead;

use super::attempt::Attempt;
use super::download::{Download, body_received};
use super::failure::Failure;
use super::relay::Relay;
use crate::exchange::encoding::Encoding;
use crate::limits::ENCODED_BYTES_PER_TURN;
use crate::rules::compress::CompressionChange;

impl Attempt<'_> {
    /// How to encode the body that follows `head`, and the resulting change of the head.
    pub(super) fn encoding(
        &self,
        head: &ResponseHead<'_, '_>,
    ) -> (Option<Encoding>, CompressionChange) {
        let Some(offer) = self.exchange.offer() else {
            return (None, CompressionChange::Nothing);
        };
        let change = self.forward.wish.change(offer, head, self.forward.method());
        let CompressionChange::Encode(coding) = change else {
            return (None, change);
        };
        // The response to HEAD has the header fields of the response to GET (RFC 9110 9.3.2).
        if head.framing == Framing::None {
            return (None, change);
        }
        match Encoding::begin(&self.worker.encoders, coding) {
            Some(encoding) => (Some(encoding), change),
            None => (None, CompressionChange::Vary),
        }
    }
}

impl Download<'_> {
    /// Relays a body through its encoder, which is flushed when the server pauses: the client may be waiting for this.
    pub(super) async fn run_encoding(&mut self, mut relay: Relay) -> Result<(), Failure> {
        let mut in_a_turn = 0;
        let keeps = self.trailer_filter(&mut relay);
        loop {
            in_a_turn += self.server_input.bytes().len();
            relay.advance(
                self.server_input,
                &mut self.reply,
                &self.attempt.worker.limits,
                &keeps,
            )?;
            if relay.is_complete() {
                return relay.finish(&mut self.reply);
            }
            if in_a_turn >= ENCODED_BYTES_PER_TURN {
                in_a_turn = 0;
                // Before spending more time on the body, send what there is; this also shows whether the client is
                // gone.
                self.flush().await.map_err(Failure::Client)?;
                self.attempt.worker.core.yield_now().await;
            }
            self.set_body_deadline();
            let arrived = {
                let mut receive = pin!(self.server.recv(self.server_input));
                poll_fn(|context| Poll::Ready(receive.as_mut().poll(context))).await
            };
            let received = match arrived {
                Poll::Ready(received) => received,
                Poll::Pending => {
                    relay.flush_encoder(&mut self.reply)?;
                    self.flush().await.map_err(Failure::Client)?;
                    self.set_body_deadline();
                    self.receive().await?
                }
            };
            body_received(received, &mut relay)?;
        }
    }
}
