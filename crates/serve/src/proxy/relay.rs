//! The body of a response on its way to the client, framed as the client understands it.

use onrush_engine::Input;
use onrush_http::body::BodyReader;
use onrush_http::{Framing, Limits};

use super::failure::Failure;
use crate::exchange::encoding::Encoding;
use crate::exchange::portion::{self, Keeps};
use crate::exchange::reply::{Passage, Reply};
use crate::worker::compress::Then;
use crate::worker::hop::ConnectionFields;

/// What happens to the framing.
enum Mode {
    /// It passes as it is, but for what is surplus in it.
    Verbatim,
    /// The payload passes, in the client's own framing.
    Payload,
    /// The payload is encoded.
    Encode(Box<Encoding>),
}

/// A body under way.
pub(crate) struct Relay {
    body: BodyReader,
    mode: Mode,
    trailers: Trailers,
    /// What of the trailers is for the server's connection only.
    connection_fields: ConnectionFields,
    /// All of it has arrived.
    ended: bool,
    /// Its data has ended and trailers follow, if only the empty line behind them.
    has_trailers: bool,
    /// Some trailers could not be passed to the client.
    has_dropped_trailers: bool,
}

/// What becomes of trailers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trailers {
    /// All that are not for the server's connection only pass.
    Pass,
    /// Of those the route's edits take out what they take out of the head.
    Edited,
}

impl Relay {
    /// For a body that a server has framed as `framing`.
    pub(crate) fn new(framing: Framing, passage: Passage) -> Self {
        Self::with(
            framing,
            match passage {
                Passage::AsFramed => Mode::Verbatim,
                Passage::Payload => Mode::Payload,
            },
        )
    }

    /// For one that the client gets through `encoding`.
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

    /// How many bytes are still to pass, where they pass as they are and their number is known.
    #[inline]
    pub(crate) fn verbatim_left(&self) -> Option<u64> {
        match self.mode {
            Mode::Verbatim => self.body.left(),
            Mode::Payload | Mode::Encode(_) => None,
        }
    }

    /// So many bytes of the body have passed without a look at them.
    pub(crate) fn pass_unseen(&mut self, count: u64) {
        self.body.pass_unseen(count);
        self.ended |= self.body.is_complete();
    }

    /// Moves what has arrived of the body from `input` to `reply`; of its trailers those that `keeps` says.
    pub(crate) fn advance(
        &mut self,
        input: &mut Input,
        reply: &mut Reply<'_>,
        limits: &Limits,
        keeps: Keeps<'_>,
    ) -> Result<(), Failure> {
        match self.mode {
            Mode::Verbatim => {
                let (output, client) = reply.as_framed();
                portion::pass(&mut self.body, input, output, client, limits, keeps)
                    .map_err(|refusal| Failure::Cut(refusal.into()))?
                    .map_err(Failure::Client)?;
            }
            Mode::Payload | Mode::Encode(_) => self.pass_payload(input, reply, limits, keeps)?,
        }
        self.ended |= self.body.is_complete();
        Ok(())
    }

    /// The server has closed the connection.
    pub(crate) fn end(&mut self) -> Result<(), Failure> {
        self.body
            .end_of_input()
            .map_err(|_| Failure::Cut("it closed the connection".into()))?;
        self.ended = true;
        Ok(())
    }

    /// Writes what ends the body for the client, when it is complete.
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

    /// Writes what an encoder has kept back, so that the client can decode all that has arrived.
    pub(crate) fn catch_up(&mut self, reply: &mut Reply<'_>) -> Result<(), Failure> {
        self.encode(b"", Then::Flush, reply)
    }

    fn pass_payload(
        &mut self,
        input: &mut Input,
        reply: &mut Reply<'_>,
        limits: &Limits,
        keeps: Keeps<'_>,
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

    /// Passes trailers, and the empty line behind them.
    fn pass_trailers(
        &mut self,
        input: &mut Input,
        reply: &mut Reply<'_>,
        limits: &Limits,
        keeps: Keeps<'_>,
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
            self.has_dropped_trailers |= has_fields && !reply.takes_trailers();
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

    /// Encodes `bytes`, where that is what happens to the body.
    fn encode(&mut self, bytes: &[u8], then: Then, reply: &mut Reply<'_>) -> Result<(), Failure> {
        match &mut self.mode {
            Mode::Encode(encoding) => encoding.write(bytes, then, reply).map_err(Failure::Client),
            Mode::Verbatim | Mode::Payload => Ok(()),
        }
    }
}
