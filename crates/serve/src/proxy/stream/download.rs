//! Relays a response from an HTTP/2 stream to the client.

use std::future::poll_fn;
use std::pin::pin;
use std::time::Duration;

use onrush_engine::Error;
use onrush_http::http2::End;
use onrush_http::http2::fields::FieldSection;
use onrush_http::http2::message;
use onrush_http::response::ResponseHead;
use onrush_http::{HeaderSlots, Method};

use crate::exchange::reply::Reply;
use crate::limits::{ENCODED_BYTES_PER_TURN, INTERIM_RESPONSES_MAX};
use crate::observe::meter::Message;
use crate::proxy::attempt::Attempt;
use crate::proxy::download::ConnectionReuse;
use crate::proxy::failure::Failure;
use crate::proxy::heads::{RelayedHead, TrailerState};
use crate::proxy::multiplexed::{Arrived, Submission};
use crate::proxy::progress::ResponseSide;
use crate::proxy::relay::Trailers;
use crate::worker::compress::Then;

pub(crate) struct StreamDownload<'a> {
    attempt: Attempt<'a>,
    stream: &'a Submission,
    reply: Reply<'a>,
}

impl<'a> StreamDownload<'a> {
    pub(crate) fn new(attempt: Attempt<'a>, stream: &'a Submission, reply: Reply<'a>) -> Self {
        Self {
            attempt,
            stream,
            reply,
        }
    }

    /// Relays the response up to its last byte, which may not be sent yet.
    pub(crate) async fn run(&mut self) -> Result<ConnectionReuse, Failure> {
        let (mut opened, done) = self.head().await?;
        if done == ConnectionReuse::Tunnel {
            // A tunnel's bytes have no framing and are relayed elsewhere.
            return Ok(done);
        }
        let begun = self.attempt.worker.core.now();
        let mut in_a_turn = 0;
        loop {
            let arrived = match self.stream.arrived() {
                Some(arrived) => arrived,
                None => {
                    self.flush_encoder(&mut opened).await?;
                    self.set_body_deadline();
                    self.wait_for_data().await?
                }
            };
            let (encoded, bytes) = self.pass_data(&mut opened, arrived)?;
            in_a_turn += encoded;
            if arrived == Arrived::All {
                self.stream.release(bytes);
                break;
            }
            self.flush_passed().await.map_err(Failure::Client)?;
            // Only after the client has taken the data, so that at most one window is buffered for a slow client.
            self.stream.release(bytes);
            if in_a_turn >= ENCODED_BYTES_PER_TURN {
                in_a_turn = 0;
                self.attempt.worker.core.yield_now().await;
            }
        }
        self.end(&mut opened)?;
        self.attempt.record_complete(begun);
        Ok(done)
    }

    /// Relays a [whole](Submission::is_whole) response without waiting.
    pub(crate) fn pass(&mut self) -> Result<(), Failure> {
        let (fields, end) = self.stream.take_head().ok_or(Failure::Closed)?;
        self.attempt
            .progress
            .advance_response(ResponseSide::Arriving);
        let opened = self.begin(&fields, end);
        self.stream.give_fields(fields);
        let Some((mut opened, _)) = opened? else {
            return Err(Failure::BadResponse("it has no final response".into()));
        };
        let (_, bytes) = self.pass_data(&mut opened, Arrived::All)?;
        self.stream.release(bytes);
        self.end(&mut opened)?;
        self.attempt.record_complete(self.attempt.worker.core.now());
        Ok(())
    }

    /// Waits for the head of the final response and writes it, and interim heads before it, for the client.
    async fn head(&mut self) -> Result<(RelayedHead, ConnectionReuse), Failure> {
        let mut interim_responses = 0;
        loop {
            let head = pin!(self.stream.head());
            let head = self.reply.unless_hung_up(head);
            let (fields, end) = head.await.map_err(Failure::Client)??;
            self.attempt
                .progress
                .advance_response(ResponseSide::Arriving);
            let opened = self.begin(&fields, end);
            self.stream.give_fields(fields);
            if let Some(opened) = opened? {
                return Ok(opened);
            }
            interim_responses += 1;
            if interim_responses > INTERIM_RESPONSES_MAX {
                return Err(Failure::BadResponse(
                    "its interim responses do not end".into(),
                ));
            }
            self.flush().await.map_err(Failure::Client)?;
        }
    }

    /// Writes a head for the client; `None` for an interim response.
    fn begin(
        &mut self,
        fields: &FieldSection,
        end: End,
    ) -> Result<Option<(RelayedHead, ConnectionReuse)>, Failure> {
        let attempt = self.attempt;
        let mut slots = HeaderSlots::new();
        let (method, limits) = (attempt.forward.sent_method(), &attempt.worker.limits);
        let head = message::response(fields, &mut slots, method, end.into(), limits);
        let head = head.map_err(|rejection| Failure::BadResponse(rejection.into()))?;
        let is_tunnel = method == Method::Connect && (200..300).contains(&head.status);
        // Treated from here on like the 101 of an HTTP/1 server (RFC 8441 5).
        let status = match is_tunnel {
            true => 101,
            false => head.status,
        };
        // HTTP/2 has no reason phrase, and some HTTP/1 clients display it.
        let head = ResponseHead {
            status,
            reason: onrush_http::reason(status),
            ..head
        };
        if head.status < 200 && !is_tunnel {
            attempt.pass_interim(&head, &mut self.reply)?;
            return Ok(None);
        }
        attempt.admit(head.status)?;
        let trailing = match self.stream.has_trailers() {
            true => TrailerState::Arrived,
            false => TrailerState::Unknown,
        };
        let opened = attempt.open((&head, trailing), &mut self.reply)?;
        if is_tunnel {
            return Ok(Some((opened, ConnectionReuse::Tunnel)));
        }
        if end == End::Open && opened.encoding.is_none() {
            // Trailers may follow a body with a Content-Length.
            self.reply.set_explicit_end();
        }
        Ok(Some((opened, ConnectionReuse::Reusable)))
    }

    async fn wait_for_data(&mut self) -> Result<Arrived, Failure> {
        let data = pin!(self.stream.data());
        let data = self.reply.unless_hung_up(data);
        data.await
            .map_err(Failure::Client)?
            .map_err(Failure::into_cut)
    }

    fn set_body_deadline(&self) {
        let wait = self.attempt.timeouts().upstream_body;
        let core = &self.attempt.worker.core;
        let deadline = self.attempt.forward.deadline(core, wait);
        self.stream.set_deadline(deadline);
    }

    /// Relays the received part of the body. Returns the number of bytes compressed, and of bytes taken.
    fn pass_data(
        &mut self,
        opened: &mut RelayedHead,
        arrived: Arrived,
    ) -> Result<(usize, u32), Failure> {
        let reply = &mut self.reply;
        let is_last = arrived == Arrived::All && !self.stream.has_trailers();
        // A response without a body, such as to HEAD, writes no data.
        let (passed, bytes) = self.stream.take(|bytes| match &mut opened.encoding {
            _ if bytes.is_empty() => Ok(0),
            Some(encoding) => encoding
                .write(bytes, Then::More, reply)
                .map(|()| bytes.len()),
            None => {
                if is_last {
                    reply.set_end_after(bytes.len());
                }
                reply.data(bytes).map(|()| 0)
            }
        });
        Ok((passed.map_err(Failure::Client)?, bytes))
    }

    /// Flushes the encoder and the output before the next wait: the client may be waiting for exactly these bytes.
    async fn flush_encoder(&mut self, opened: &mut RelayedHead) -> Result<(), Failure> {
        if let Some(encoding) = &mut opened.encoding {
            let written = encoding.write(b"", Then::Flush, &mut self.reply);
            written.map_err(Failure::Client)?;
        }
        self.flush().await.map_err(Failure::Client)
    }

    /// Writes the end of the body, with its trailers.
    fn end(&mut self, opened: &mut RelayedHead) -> Result<(), Failure> {
        if let Some(encoding) = &mut opened.encoding {
            let written = encoding.write(b"", Then::Finish, &mut self.reply);
            written.map_err(Failure::Client)?;
        }
        let lines = self.stream.trailers();
        let exchange = self.attempt.exchange;
        let keeps = |line: &&[u8]| {
            let name = line.split(|&byte| byte == b':').next();
            opened.trailers == Trailers::Pass
                || name.is_some_and(|it| exchange.passes_response_trailer(it))
        };
        let lines = lines.split_inclusive(|&byte| byte == b'\n').filter(keeps);
        let mut trailers: Vec<u8> = lines.flatten().copied().collect();
        let has_body = self.attempt.forward.method() != Method::Head;
        let ended = match trailers.is_empty() || !has_body {
            true => self.reply.end(),
            false => {
                if !self.reply.supports_trailers() {
                    self.attempt
                        .worker
                        .meter
                        .trailers_dropped(Message::Response);
                }
                trailers.extend_from_slice(b"\r\n");
                let reply = &mut self.reply;
                reply.end_data().and_then(|()| reply.trailers(&trailers))
            }
        };
        ended.map_err(Failure::Client)
    }

    /// Sends the output to the client. Errors come from the client's connection.
    fn flush(&mut self) -> impl Future<Output = Result<(), Error>> {
        self.reply.flush(self.client_patience())
    }

    /// Flushes data of the body. While the client is slow, the stream does not keep a second buffer.
    async fn flush_passed(&mut self) -> Result<(), Error> {
        let stream = self.stream;
        let mut flush = pin!(self.flush());
        poll_fn(|context| {
            let flushed = flush.as_mut().poll(context);
            if flushed.is_pending() {
                stream.free_buffer();
            }
            flushed
        })
        .await
    }

    /// Timeout for each send to the client.
    fn client_patience(&self) -> Duration {
        let timeouts = self.attempt.timeouts();
        match self.attempt.progress.is_request_sent() {
            true => timeouts.client_send,
            // The upload may be waiting for the client at the same time, and a connection has one deadline.
            false => timeouts.client_send.max(timeouts.client_body),
        }
    }
}
