//! The response's way from a stream to the client.

use std::future::poll_fn;
use std::pin::pin;
use std::time::Duration;

use onrush_engine::{Error, Kind};
use onrush_http::http2::End;
use onrush_http::http2::fields::FieldSection;
use onrush_http::http2::message;
use onrush_http::response::ResponseHead;
use onrush_http::{HeaderSlots, Method};

use crate::exchange::reply::Reply;
use crate::limits::{ENCODED_BYTES_PER_TURN, INTERIM_RESPONSES_MAX};
use crate::observe::meter::Message;
use crate::proxy::attempt::Attempt;
use crate::proxy::download::Done;
use crate::proxy::failure::Failure;
use crate::proxy::heads::{Opened, Trailing};
use crate::proxy::multiplexed::{Arrived, Submission};
use crate::proxy::progress::ResponseSide;
use crate::proxy::relay::Trailers;
use crate::worker::compress::Then;

/// Everything a response passes on its way.
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

    /// Relays the response, up to its last byte, which may still stand in the output.
    pub(crate) async fn run(&mut self) -> Result<Done, Failure> {
        let (mut opened, done) = self.head().await?;
        if done == Done::Tunnel {
            // What follows its head has no end that could be written.
            return Ok(done);
        }
        let begun = self.attempt.worker.core.now();
        let mut in_a_turn = 0;
        loop {
            let arrived = match self.stream.arrived() {
                Some(arrived) => arrived,
                None => {
                    self.catch_up(&mut opened).await?;
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
            // Not before the client has taken it: what is held for one that does not read is one window of the server's.
            self.stream.release(bytes);
            if in_a_turn >= ENCODED_BYTES_PER_TURN {
                in_a_turn = 0;
                self.attempt.worker.core.yield_now().await;
            }
        }
        self.end(&mut opened)?;
        self.attempt.is_complete_now(begun);
        Ok(done)
    }

    /// Passes a response that [is whole](Submission::is_whole), which needs no waiting.
    pub(crate) fn pass(&mut self) -> Result<(), Failure> {
        let (fields, end) = self.stream.take_head().ok_or(Failure::Closed)?;
        self.attempt.progress.response_is(ResponseSide::Arriving);
        let opened = self.begin(&fields, end);
        self.stream.give_fields(fields);
        let Some((mut opened, _)) = opened? else {
            return Err(Failure::BadResponse("it has no final response".into()));
        };
        let (_, bytes) = self.pass_data(&mut opened, Arrived::All)?;
        self.stream.release(bytes);
        self.end(&mut opened)?;
        self.attempt.is_complete_now(self.attempt.worker.core.now());
        Ok(())
    }

    /// Waits for the head of the final response and writes it for the client, as those of interim ones before it.
    async fn head(&mut self) -> Result<(Opened, Done), Failure> {
        let mut interim_responses = 0;
        loop {
            let head = pin!(self.stream.head());
            let head = self.reply.unless_hung_up(head);
            let (fields, end) = head.await.map_err(Failure::Client)??;
            self.attempt.progress.response_is(ResponseSide::Arriving);
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

    /// Writes a head for the client; `None` for that of an interim response.
    fn begin(
        &mut self,
        fields: &FieldSection,
        end: End,
    ) -> Result<Option<(Opened, Done)>, Failure> {
        let attempt = self.attempt;
        let mut slots = HeaderSlots::new();
        let (method, limits) = (attempt.forward.sent_method(), &attempt.worker.limits);
        let head = message::response(fields, &mut slots, method, end.into(), limits);
        let head = head.map_err(|rejection| Failure::BadResponse(rejection.into()))?;
        let is_tunnel = method == Method::Connect && (200..300).contains(&head.status);
        // From here on it is the same agreement as that of a server of HTTP/1 (RFC 8441 5).
        let status = match is_tunnel {
            true => 101,
            false => head.status,
        };
        // HTTP/2 has no reason phrases, and some clients of HTTP/1 show them.
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
            true => Trailing::Arrived,
            false => Trailing::Unknown,
        };
        let opened = attempt.open((&head, trailing), &mut self.reply)?;
        if is_tunnel {
            return Ok(Some((opened, Done::Tunnel)));
        }
        if end == End::Open && opened.encoding.is_none() {
            // Trailers may come behind a body whose length was said.
            self.reply.ends_apart();
        }
        Ok(Some((opened, Done::Reusable)))
    }

    async fn wait_for_data(&mut self) -> Result<Arrived, Failure> {
        let data = pin!(self.stream.data());
        let data = self.reply.unless_hung_up(data);
        data.await.map_err(Failure::Client)?.map_err(cut)
    }

    fn set_body_deadline(&self) {
        let wait = self.attempt.timeouts().upstream_body;
        let core = &self.attempt.worker.core;
        let deadline = self.attempt.forward.deadline(core, wait);
        self.stream.set_deadline(deadline);
    }

    /// Passes what has come of the body; how many bytes of it are encoded, and how many it has.
    fn pass_data(
        &mut self,
        opened: &mut Opened,
        arrived: Arrived,
    ) -> Result<(usize, u32), Failure> {
        let reply = &mut self.reply;
        let is_last = arrived == Arrived::All && !self.stream.has_trailers();
        // The response to a HEAD and others that have none pass none.
        let (passed, bytes) = self.stream.take(|bytes| match &mut opened.encoding {
            _ if bytes.is_empty() => Ok(0),
            Some(encoding) => encoding
                .write(bytes, Then::More, reply)
                .map(|()| bytes.len()),
            None => {
                if is_last {
                    reply.ends_with(bytes.len());
                }
                reply.data(bytes).map(|()| 0)
            }
        });
        Ok((passed.map_err(Failure::Client)?, bytes))
    }

    /// Sends what there is, and what an encoder has kept back, before the next wait: somebody may be waiting for just these
    /// bytes.
    async fn catch_up(&mut self, opened: &mut Opened) -> Result<(), Failure> {
        if let Some(encoding) = &mut opened.encoding {
            let written = encoding.write(b"", Then::Flush, &mut self.reply);
            written.map_err(Failure::Client)?;
        }
        self.flush().await.map_err(Failure::Client)
    }

    /// Writes what ends the body for the client.
    fn end(&mut self, opened: &mut Opened) -> Result<(), Failure> {
        if let Some(encoding) = &mut opened.encoding {
            let written = encoding.write(b"", Then::Finish, &mut self.reply);
            written.map_err(Failure::Client)?;
        }
        let lines = self.stream.trailers();
        let exchange = self.attempt.exchange;
        let keeps = |line: &&[u8]| {
            let name = line.split(|&byte| byte == b':').next();
            opened.trailers == Trailers::Pass || name.is_some_and(|it| exchange.response_keeps(it))
        };
        let lines = lines.split_inclusive(|&byte| byte == b'\n').filter(keeps);
        let mut trailers: Vec<u8> = lines.flatten().copied().collect();
        let has_body = self.attempt.forward.method() != Method::Head;
        let ended = match trailers.is_empty() || !has_body {
            true => self.reply.end(),
            false => {
                if !self.reply.takes_trailers() {
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

    /// Sends what is written to the client. Its error is the client's.
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
                stream.give_up_room();
            }
            flushed
        })
        .await
    }

    /// How long the client may take for each of the bytes that it is sent.
    fn client_patience(&self) -> Duration {
        let timeouts = self.attempt.timeouts();
        match self.attempt.progress.is_request_sent() {
            true => timeouts.client_send,
            // The upload may be waiting for the client at the same time; a connection has one deadline.
            false => timeouts.client_send.max(timeouts.client_body),
        }
    }
}

/// What ends a response of which the client has the first part.
fn cut(failure: Failure) -> Failure {
    match failure {
        Failure::NoResponse(error) if error.kind == Kind::TimedOut => {
            Failure::Cut("it fell silent".into())
        }
        Failure::NoResponse(error) if error.is_reset() => {
            Failure::Cut("it reset the connection".into())
        }
        Failure::NoResponse(_) => Failure::Cut("the connection to it failed".into()),
        Failure::Closed => Failure::Cut("it closed the connection".into()),
        Failure::StreamReset(code) => Failure::CutByReset(code),
        Failure::Unprocessed(why) => Failure::Cut(why.into()),
        Failure::BadResponse(fault) => Failure::Cut(fault),
        failure => failure,
    }
}
