//! The body of an answer on its way to the client, framed as the client understands it.

use onrush_engine::{Error, Input};
use onrush_http::body::BodyReader;
use onrush_http::write::{CHUNK_END, CHUNK_HEAD_BYTES_MAX, LAST_CHUNK, chunk_head};
use onrush_http::{Framing, Limits, Version};
use onrush_tls::Transport;

use super::failure::Failure;
use crate::output::Output;

/// What happens to the framing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// It passes as it is.
    Verbatim,
    /// The client knows no chunks (HTTP/1.0): payload only, ended by closing.
    Dechunk,
    /// The server ends by closing; the client's connection need not.
    Enchunk,
}

/// A body under way.
#[derive(Debug)]
pub(crate) struct Relay {
    body: BodyReader,
    mode: Mode,
    ended: bool,
}

/// Less than this is copied behind what is written already; more travels as the buffer it came in.
const COPY_MAX: usize = 4096;

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
        let body = BodyReader::new(framing);
        Self {
            ended: body.is_complete(),
            body,
            mode,
        }
    }

    /// Whether the client sees chunks.
    pub(crate) fn is_chunked_for_client(&self, framing: Framing) -> bool {
        self.mode == Mode::Enchunk || (self.mode == Mode::Verbatim && framing == Framing::Chunked)
    }

    /// Whether only closing the connection tells the client where the body ends.
    pub(crate) fn ends_by_closing(&self, framing: Framing) -> bool {
        self.mode == Mode::Dechunk
            || (self.mode == Mode::Verbatim && framing == Framing::UntilClose)
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.ended
    }

    /// Moves what has arrived of the body from `input` to `output`.
    pub(crate) fn advance(
        &mut self,
        input: &mut Input,
        output: &mut Output,
        client: &Transport,
        limits: &Limits,
    ) -> Result<(), Failure> {
        let moved = match self.mode {
            Mode::Verbatim => self.pass(input, output, client, limits)?,
            Mode::Dechunk => self.dechunk(input, output, client, limits)?,
            Mode::Enchunk => enchunk(input, output, client),
        };
        moved.map_err(Failure::Client)?;
        self.ended |= self.body.is_complete();
        Ok(())
    }

    /// The server has closed the connection.
    pub(crate) fn end(&mut self, output: &mut Output, client: &Transport) -> Result<(), Failure> {
        self.body
            .end_of_input()
            .map_err(|_| Failure::Cut("it closed the connection"))?;
        self.ended = true;
        match self.mode {
            Mode::Enchunk => output.put(client, LAST_CHUNK).map_err(Failure::Client),
            Mode::Verbatim | Mode::Dechunk => Ok(()),
        }
    }

    fn pass(
        &mut self,
        input: &mut Input,
        output: &mut Output,
        client: &Transport,
        limits: &Limits,
    ) -> Result<Result<(), Error>, Failure> {
        let bytes = self
            .body
            .skip(input.bytes(), limits)
            .map_err(|refusal| Failure::Cut(refusal.reason))?;
        Ok(forward(input, bytes, output, client))
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
                .map_err(|refusal| Failure::Cut(refusal.reason))?;
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

/// Passes the first `bytes` of `input` on, without a copy when that is all of it and it is worth it.
pub(super) fn forward(
    input: &mut Input,
    bytes: usize,
    output: &mut Output,
    to: &Transport,
) -> Result<(), Error> {
    if bytes > COPY_MAX
        && bytes == input.bytes().len()
        && let Some(buffer) = input.take()
    {
        output.part(to, buffer);
        return Ok(());
    }
    output.put(to, &input.bytes()[..bytes])?;
    if bytes > 0 {
        input.consume(bytes);
    }
    Ok(())
}

fn enchunk(input: &mut Input, output: &mut Output, client: &Transport) -> Result<(), Error> {
    let bytes = input.bytes().len();
    if bytes == 0 {
        return Ok(());
    }
    let buffer = output.room(client, CHUNK_HEAD_BYTES_MAX)?;
    let written = chunk_head(buffer.spare(), bytes as u64).expect("room was made");
    buffer.fill(written);
    forward(input, bytes, output, client)?;
    output.put(client, CHUNK_END)
}
