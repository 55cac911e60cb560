//! Relays the body of a response in the framing that the client needs.

use onrush_engine::Input;
use onrush_http::body::BodyReader;
use onrush_http::{Framing, Limits};

use super::failure::Failure;
use crate::exchange::encoding::Encoding;
use crate::exchange::forward_body::{self, TrailerFilter};
use crate::exchange::reply::{BodyPassthrough, Reply};
use crate::worker::compress::Then;
use crate::worker::connection_fields::ConnectionFields;

enum Mode {
    /// The body passes in its framing, except for redundant parts such as chunk extensions.
    Verbatim,
    /// The payload passes in the client's framing.
    Payload,
    Encode(Box<Encoding>),
}

pub(crate) struct Relay {
    body: BodyReader,
    mode: Mode,
    trailers: Trailers,
    /// Names of trailers that are only for the server's connection.
    connection_fields: ConnectionFields,
    /// Whether the whole body has arrived.
    ended: bool,
    /// Whether the data has ended and the trailer section (possibly empty) follows.
    has_trailers: bool,
    /// Whether any trailer could not be sent to the client.
    has_dropped_trailers: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trailers {
    /// All are relayed except those for the server's connection only.
    Pass,
    /// The route's header edits also remove trailers.
    Edited,
}

impl Relay {
    pub(crate) fn new(framing: Framing, passage: BodyPassthrough) -> Self {
        Self::with(
            framing,
            match passage {
                BodyPassthrough::AsFramed => Mode::Verbatim,
                BodyPassthrough::Payload => Mode::Payload,
            },
        )
    }

    /// A relay that compresses the body with `encoding`.
    pub(crate) fn encoding(framing: Framing, encoding: Encoding) -> Self {
        Self {
            ended: false,
            ..Self::with(framing, Mode::Encode(Box::new(encoding)))
        }
    }

    fn with(framing: Framing, mode: Mode) -> Self {
        let body = BodyReader::of_response(framing);
        Self {
            ended: body.is_complete(),
            body,
            mode,
            trailers: Trailers::Pass,
            connection_fields: ConnectionFields::default(),
            has_trailers: false,
            has_dropped_trailers: false,
        }
    }

    pub(crate) fn trailers(&self) -> Trailers {
        self.trailers
    }

    pub(crate) fn set_trailers(&mut self, trailers: Trailers) {
        self.trailers = trailers;
    }

    pub(crate) fn take_connection_fields(&mut self) -> ConnectionFields {
        std::mem::take(&mut self.connection_fields)
    }

    pub(crate) fn set_connection_fields(&mut self, fields: ConnectionFields) {
        self.connection_fields = fields;
    }

    pub(crate) fn is_encoding(&self) -> bool {
        matches!(self.mode, Mode::Encode(_))
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.ended
    }

    /// Bytes left to relay, if they pass verbatim and their number is known.
    #[inline]
    pub(crate) fn verbatim_left(&self) -> Option<u64> {
        match self.mode {
            Mode::Verbatim => self.body.remaining(),
            Mode::Payload | Mode::Encode(_) => None,
        }
    }

    /// Records bytes of the body that were spliced.
    pub(crate) fn count_spliced(&mut self, count: u64) {
        self.body.count_forwarded(count);
        self.ended |= self.body.is_complete();
    }

    /// Moves the received part of the body from `input` to `reply`, with the trailers that `keeps` accepts.
    pub(crate) fn advance(
        &mut self,
        input: &mut Input,
        reply: &mut Reply<'_>,
        limits: &Limits,
        keeps: TrailerFilter<'_>,
    ) -> Result<(), Failure> {
        match self.mode {
            Mode::Verbatim => {
                let (output, client) = reply.as_framed();
                forward_body::pass(&mut self.body, input, output, client, limits, keeps)
                    .map_err(|refusal| Failure::Cut(refusal.into()))?
                    .map_err(Failure::Client)?;
            }
            Mode::Payload | Mode::Encode(_) => self.pass_payload(input, reply, limits, keeps)?,
        }
        self.ended |= self.body.is_complete();
        Ok(())
    }

    /// Handles the end of the server's connection.
    pub(crate) fn end(&mut self) -> Result<(), Failure> {
        self.body
            .end_of_input()
            .map_err(|_| Failure::Cut("it closed the connection".into()))?;
        self.ended = true;
        Ok(())
    }

    /// Writes the end of a complete body for the client.
    pub(crate) fn finish(&mut self, reply: &mut Reply<'_>) -> Result<(), Failure> {
        if !self.has_trailers && !matches!(self.mode, Mode::Verbatim) {
            self.end_encoding(reply)?;
            reply.end().map_err(Failure::Client)?;
        }
        Ok(())
    }

    /// Whether trailers were dropped because the client's body is not chunked.
    pub(crate) fn has_dropped_trailers(&self) -> bool {
        self.has_dropped_trailers
    }

    /// Flushes the encoder, so that the client can decode all that has arrived.
    pub(crate) fn flush_encoder(&mut self, reply: &mut Reply<'_>) -> Result<(), Failure> {
        self.encode(b"", Then::Flush, reply)
    }

    fn pass_payload(
        &mut self,
        input: &mut Input,
        reply: &mut Reply<'_>,
        limits: &Limits,
        keeps: TrailerFilter<'_>,
    ) -> Result<(), Failure> {
        while !self.body.is_in_trailers() {
            let step = self
                .body
                .advance(input.bytes(), limits)
                .map_err(|refusal| Failure::Cut(refusal.into()))?;
            if step.consumed == 0 {
                return Ok(());
            }
            let payload = &input.bytes()[step.payload];
            match &self.mode {
                Mode::Encode(_) => self.encode(payload, Then::More, reply)?,
                _ if payload.len() == step.consumed => {
                    reply
                        .data_from(input, step.consumed)
                        .map_err(Failure::Client)?;
                    continue;
                }
                _ => reply.data(payload).map_err(Failure::Client)?,
            }
            input.consume(step.consumed);
        }
        if !self.has_trailers {
            self.has_trailers = true;
            self.end_encoding(reply)?;
            reply.end_data().map_err(Failure::Client)?;
        }
        self.pass_trailers(input, reply, limits, keeps)
    }

    /// Relays the trailer section, with its final empty line.
    fn pass_trailers(
        &mut self,
        input: &mut Input,
        reply: &mut Reply<'_>,
        limits: &Limits,
        keeps: TrailerFilter<'_>,
    ) -> Result<(), Failure> {
        loop {
            let passing = self
                .body
                .pass(input.bytes(), limits, keeps)
                .map_err(|refusal| Failure::Cut(refusal.into()))?;
            if passing.consumed == 0 {
                return Ok(());
            }
            let bytes = &input.bytes()[..passing.consumed];
            let (before, after) = (
                &bytes[..passing.surplus.start],
                &bytes[passing.surplus.end..],
            );
            let has_fields = before.contains(&b':') || after.contains(&b':');
            self.has_dropped_trailers |= has_fields && !reply.supports_trailers();
            reply
                .trailers(before)
                .and_then(|()| reply.trailers(after))
                .map_err(Failure::Client)?;
            input.consume(passing.consumed);
        }
    }

    fn end_encoding(&mut self, reply: &mut Reply<'_>) -> Result<(), Failure> {
        self.encode(b"", Then::Finish, reply)
    }

    /// Encodes `bytes`; does nothing in other modes.
    fn encode(&mut self, bytes: &[u8], then: Then, reply: &mut Reply<'_>) -> Result<(), Failure> {
        match &mut self.mode {
            Mode::Encode(encoding) => encoding.write(bytes, then, reply).map_err(Failure::Client),
            Mode::Verbatim | Mode::Payload => Ok(()),
        }
    }
}
