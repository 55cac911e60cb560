//! Relays a response from an HTTP/1 server to the client.

use std::time::Duration;

use onrush_engine::{Error, Input, Kind, Splice};
use onrush_http::{HeaderSlots, Parsed, response};
use onrush_tls::Transport;

use super::attempt::Attempt;
use super::failure::Failure;
use super::progress::ResponseSide;
use super::relay::{Relay, Trailers};
use super::splice::SpliceEnds;
use crate::exchange::reply::Reply;
use crate::limits::INTERIM_RESPONSES_MAX;
use crate::observe::meter::Message;

pub(crate) struct Download<'a> {
    pub(crate) attempt: Attempt<'a>,
    pub(crate) server: &'a Transport,
    pub(crate) server_input: &'a mut Input,
    pub(crate) reply: Reply<'a>,
}

/// State of the connection to the server after a complete response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ConnectionReuse {
    /// The connection may carry another request.
    Reusable,
    /// The connection must be closed.
    Spent,
    /// The connection has become a tunnel.
    Tunnel,
}

/// State of the received bytes.
enum DownloadState {
    Nothing,
    /// A 1xx response, which has been written for the client.
    Interim,
    Response(Relay, ConnectionReuse),
}

impl<'a> Download<'a> {
    /// Sends the whole request, already queued, and relays the response.
    pub(crate) async fn send_and_run(&mut self) -> Result<ConnectionReuse, Failure> {
        let wait = self.attempt.timeouts().upstream_first_byte;
        let deadline = self
            .attempt
            .forward
            .deadline(&self.attempt.worker.core, wait);
        self.server.set_deadline(Some(deadline));
        let flushed = self.reply.unless_hung_up(self.server.flush());
        let flushed = flushed.await.map_err(Failure::Client)?;
        flushed.map_err(Failure::NoResponse)?;
        self.attempt.progress.request_is_sent();
        self.run().await
    }

    /// Relays the response up to its last byte, which may not be sent yet.
    pub(crate) async fn run(&mut self) -> Result<ConnectionReuse, Failure> {
        let (mut relay, done) = self.head().await?;
        if done == ConnectionReuse::Tunnel {
            // A tunnel's bytes have no framing and are relayed elsewhere.
            return Ok(done);
        }
        let begun = self.attempt.worker.core.now();
        if relay.is_encoding() {
            Box::pin(self.run_encoding(relay)).await?;
            self.attempt.record_complete(begun);
            return Ok(done);
        }
        let keeps = self.trailer_filter(&mut relay);
        loop {
            relay.advance(
                self.server_input,
                &mut self.reply,
                &self.attempt.worker.limits,
                &keeps,
            )?;
            if relay.is_complete() {
                break;
            }
            self.flush().await.map_err(Failure::Client)?;
            let (from, to) = (|| self.server.as_plain(), || self.reply.as_plain());
            if let Some(ends) = SpliceEnds::new(relay.verbatim_left(), from, to) {
                // Boxed: only long bodies need memory for it.
                Box::pin(self.splice(ends, &mut relay)).await?;
                if relay.is_complete() {
                    break;
                }
            }
            self.set_body_deadline();
            let received = self.receive().await?;
            body_received(received, &mut relay)?;
        }
        relay.finish(&mut self.reply)?;
        if relay.has_dropped_trailers() {
            self.attempt
                .worker
                .meter
                .trailers_dropped(Message::Response);
        }
        self.attempt.record_complete(begun);
        Ok(done)
    }

    /// Returns a predicate on the names of trailers: whether to relay them.
    pub(super) fn trailer_filter(&self, relay: &mut Relay) -> impl Fn(&[u8]) -> bool + use<'a> {
        let (trailers, exchange) = (relay.trailers(), self.attempt.exchange);
        let of_connection = relay.take_connection_fields();
        move |name| {
            !of_connection.contain(name)
                && (trailers == Trailers::Pass || exchange.passes_response_trailer(name))
        }
    }

    pub(super) fn set_body_deadline(&self) {
        let wait = self.attempt.timeouts().upstream_body;
        let deadline = self
            .attempt
            .forward
            .deadline(&self.attempt.worker.core, wait);
        self.server.set_deadline(Some(deadline));
    }

    /// Receives more of the response, unless the client hangs up.
    pub(super) async fn receive(&mut self) -> Result<Result<usize, Error>, Failure> {
        let received = self.server.recv(self.server_input);
        let received = self.reply.unless_hung_up(received).await;
        received.map_err(Failure::Client)
    }

    async fn head(&mut self) -> Result<(Relay, ConnectionReuse), Failure> {
        let mut interim_responses = 0;
        loop {
            match self.begin()? {
                DownloadState::Response(relay, done) => return Ok((relay, done)),
                DownloadState::Interim => {
                    interim_responses += 1;
                    if interim_responses > INTERIM_RESPONSES_MAX {
                        return Err(Failure::BadResponse(
                            "its interim responses do not end".into(),
                        ));
                    }
                    self.flush().await.map_err(Failure::Client)?;
                    continue;
                }
                DownloadState::Nothing => {}
            }
            let nothing_yet = self.server_input.is_empty();
            match self.receive().await? {
                Ok(0) if nothing_yet => return Err(Failure::Closed),
                Ok(0) => return Err(Failure::EndedInHead),
                Ok(_) => self
                    .attempt
                    .progress
                    .advance_response(ResponseSide::Arriving),
                Err(error) => return Err(Failure::NoResponse(error)),
            }
        }
    }

    /// Parses a head at the start of the input and writes it for the client.
    fn begin(&mut self) -> Result<DownloadState, Failure> {
        if self.server_input.is_empty() {
            return Ok(DownloadState::Nothing);
        }
        let mut slots = HeaderSlots::new();
        let (bytes, method) = (self.server_input.bytes(), self.attempt.forward.method());
        let head = match response::parse(bytes, &mut slots, method, &self.attempt.worker.limits) {
            Parsed::Complete(head) => head,
            Parsed::Partial => return Ok(DownloadState::Nothing),
            Parsed::Refused(refusal) => return Err(Failure::BadResponse(refusal.into())),
        };
        let is_tunnel = head.status == 101;
        let attempt = self.attempt;
        if is_tunnel {
            attempt.forward.check_upgrade(&head)?;
        }
        let consumed = head.bytes;
        if head.status < 200 && !is_tunnel {
            attempt.pass_interim(&head, &mut self.reply)?;
            self.server_input.consume(consumed);
            return Ok(DownloadState::Interim);
        }
        attempt.admit(head.status)?;
        let (relay, server_lives) = attempt.pass_head(&head, &mut self.reply)?;
        let done = match is_tunnel {
            true => ConnectionReuse::Tunnel,
            false if server_lives => ConnectionReuse::Reusable,
            false => ConnectionReuse::Spent,
        };
        self.server_input.consume(consumed);
        Ok(DownloadState::Response(relay, done))
    }

    /// Sends the output to the client. Errors come from the client's connection.
    pub(super) fn flush(&mut self) -> impl Future<Output = Result<(), Error>> {
        self.reply.flush(self.client_patience())
    }

    /// Timeout for each send to the client.
    pub(super) fn client_patience(&self) -> Duration {
        let timeouts = self.attempt.timeouts();
        if self.attempt.progress.is_request_sent() {
            timeouts.client_send
        } else {
            // The upload may be waiting for the client at the same time, and a connection has one deadline.
            timeouts.client_send.max(timeouts.client_body)
        }
    }
}

impl Download<'_> {
    /// Splices the rest of the body to the client; returns early when the rest must be received into a buffer.
    pub(super) async fn splice(
        &mut self,
        ends: SpliceEnds<'_>,
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
            relay.count_spliced(taken);
            self.reply.count_spliced(taken);
        }
        Ok(())
    }
}

pub(super) fn body_received(
    received: Result<usize, Error>,
    relay: &mut Relay,
) -> Result<(), Failure> {
    match received {
        Ok(0) => relay.end(),
        Ok(_) => Ok(()),
        Err(error) if error.is_reset() => Err(Failure::Cut("it reset the connection".into())),
        Err(error) => Err(Failure::Cut(match error.kind {
            Kind::TimedOut => "it stopped sending".into(),
            Kind::Truncated => "it closed the connection without a TLS close_notify".into(),
            _ => "the connection to it failed".into(),
        })),
    }
}
