//! The body of an answer on its way to the client, framed as the client understands it.

use onrush_engine::{Error, Input};
use onrush_http::body::BodyReader;
use onrush_http::write::{CHUNK_END, CHUNK_HEAD_BYTES_MAX, LAST_CHUNK, chunk_head};
use onrush_http::{Framing, Limits, Version};
use onrush_tls::Transport;

use super::failure::Failure;
use super::portion::{self, Keeps};
use crate::compress::{Encoding, Then};
use crate::hop::ConnectionFields;
use crate::output::Output;

/// What happens to the framing.
enum Mode {
    /// It passes as it is, but for what is surplus in it.
    Verbatim,
    /// The client knows no chunks (HTTP/1.0): payload only, ended by closing.
    Dechunk,
    /// The server ends by closing; the client's connection need not.
    Enchunk,
    /// The payload is encoded, and chunked anew.
    Encode(Box<Encoding>),
}

/// A body under way.
pub(crate) struct Relay {
    body: BodyReader,
    mode: Mode,
    trailers: Trailers,
    /// What of the trailers is for the server's connection only.
    connection_fields: ConnectionFields,
    ended: bool,
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
    /// For a body framed by the server as `framing`, to a client of `version`.
    pub(crate) fn new(framing: Framing, version: Version) -> Self {
        let mode = match (framing, version) {
            (Framing::Chunked, Version::Http10) => Mode::Dechunk,
            (Framing::UntilClose, Version::Http11) => Mode::Enchunk,
            (Framing::Chunked, Version::Http11)
            | (Framing::UntilClose, Version::Http10)
            | (Framing::None | Framing::Length(_), _) => Mode::Verbatim,
        };
        let body = BodyReader::of_response(framing);
        Self {
            ended: body.is_complete(),
            body,
            mode,
            trailers: Trailers::Pass,
            connection_fields: ConnectionFields::default(),
        }
    }

    /// For a body that the client, of HTTP/1.1, gets through `encoding`.
    pub(crate) fn encoding(framing: Framing, encoding: Encoding) -> Self {
        Self {
            body: BodyReader::of_response(framing),
            mode: Mode::Encode(Box::new(encoding)),
            trailers: Trailers::Pass,
            connection_fields: ConnectionFields::default(),
            ended: false,
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

    /// Whether the client sees chunks.
    pub(crate) fn is_chunked_for_client(&self, framing: Framing) -> bool {
        match self.mode {
            Mode::Enchunk | Mode::Encode(_) => true,
            Mode::Verbatim => framing == Framing::Chunked,
            Mode::Dechunk => false,
        }
    }

    /// Whether only closing the connection tells the client where the body ends.
    pub(crate) fn ends_by_closing(&self, framing: Framing) -> bool {
        match self.mode {
            Mode::Dechunk => true,
            Mode::Verbatim => framing == Framing::UntilClose,
            Mode::Enchunk | Mode::Encode(_) => false,
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.ended
    }

    /// Moves what has arrived of the body from `input` to `output`; of its trailers those that `keeps` says.
    pub(crate) fn advance(
        &mut self,
        input: &mut Input,
        output: &mut Output,
        client: &Transport,
        limits: &Limits,
        keeps: Keeps<'_>,
    ) -> Result<(), Failure> {
        let moved = match &mut self.mode {
            Mode::Verbatim => portion::pass(&mut self.body, input, output, client, limits, keeps)
                .map_err(|refusal| Failure::Cut(refusal.into()))?,
            Mode::Dechunk => self.dechunk(input, output, client, limits)?,
            Mode::Enchunk => enchunk(input, output, client),
            Mode::Encode(encoding) => {
                let onward = (output, client);
                encode(&mut self.body, encoding, input, onward, limits, keeps)?
            }
        };
        moved.map_err(Failure::Client)?;
        self.ended |= self.body.is_complete();
        Ok(())
    }

    /// The server has closed the connection.
    pub(crate) fn end(&mut self, output: &mut Output, client: &Transport) -> Result<(), Failure> {
        self.body
            .end_of_input()
            .map_err(|_| Failure::Cut("it closed the connection".into()))?;
        self.ended = true;
        match &mut self.mode {
            Mode::Enchunk => output.put(client, LAST_CHUNK).map_err(Failure::Client),
            Mode::Encode(encoding) => encode_end(encoding, output, client).map_err(Failure::Client),
            Mode::Verbatim | Mode::Dechunk => Ok(()),
        }
    }

    /// Writes what an encoder has kept back, so that the client can decode all that has arrived.
    pub(crate) fn catch_up(
        &mut self,
        output: &mut Output,
        client: &Transport,
    ) -> Result<(), Failure> {
        match &mut self.mode {
            Mode::Encode(encoding) => encoding
                .write(b"", Then::Flush, output, client)
                .map_err(Failure::Client),
            Mode::Verbatim | Mode::Dechunk | Mode::Enchunk => Ok(()),
        }
    }

    fn dechunk(
        &mut self,
        input: &mut Input,
        output: &mut Output,
        client: &Transport,
        limits: &Limits,
    ) -> Result<Result<(), Error>, Failure> {
        loop {
            let step = self
                .body
                .advance(input.bytes(), limits)
                .map_err(|refusal| Failure::Cut(refusal.into()))?;
            if step.consumed == 0 {
                return Ok(Ok(()));
            }
            if let Err(error) = output.put(client, &input.bytes()[step.payload]) {
                return Ok(Err(error));
            }
            input.consume(step.consumed);
        }
    }
}

fn enchunk(input: &mut Input, output: &mut Output, client: &Transport) -> Result<(), Error> {
    let bytes = input.bytes().len();
    if bytes == 0 {
        return Ok(());
    }
    let buffer = output.room(client, CHUNK_HEAD_BYTES_MAX)?;
    let written = chunk_head(buffer.spare(), bytes as u64).expect("room was made");
    buffer.fill(written);
    portion::forward(input, bytes, output, client)?;
    output.put(client, CHUNK_END)
}

fn encode(
    body: &mut BodyReader,
    encoding: &mut Encoding,
    input: &mut Input,
    (output, client): (&mut Output, &Transport),
    limits: &Limits,
    keeps: Keeps<'_>,
) -> Result<Result<(), Error>, Failure> {
    loop {
        if body.is_in_trailers() {
            return portion::pass(body, input, output, client, limits, keeps)
                .map_err(|refusal| Failure::Cut(refusal.into()));
        }
        let step = body
            .advance(input.bytes(), limits)
            .map_err(|refusal| Failure::Cut(refusal.into()))?;
        if step.consumed == 0 {
            return Ok(Ok(()));
        }
        let bytes = input.bytes();
        let written = encoding
            .write(&bytes[step.payload], Then::More, output, client)
            .and_then(|()| match (body.is_in_trailers(), body.is_complete()) {
                // Trailers, or the empty line that says there are none, are still to be passed.
                (true, _) => encoding.finish(output, client),
                (_, true) => encode_end(encoding, output, client),
                (false, false) => Ok(()),
            });
        if written.is_err() {
            return Ok(written);
        }
        input.consume(step.consumed);
    }
}

/// Ends a body that has no trailers.
fn encode_end(
    encoding: &mut Encoding,
    output: &mut Output,
    client: &Transport,
) -> Result<(), Error> {
    encoding.finish(output, client)?;
    output.put(client, CHUNK_END)
}
