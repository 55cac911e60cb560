//! The request body, independent of the client's protocol.

use std::borrow::Cow;

use onrush_engine::{Buffer, Core, Error, Input, Instant, Stream};
use onrush_http::body::BodyReader;
use onrush_http::write::{CHUNK_END, LAST_CHUNK};
use onrush_http::{Framing, Limits, Refusal};
use onrush_tls::Transport;

use super::http2;
use crate::exchange::forward_body::{self, TrailerFilter};
use crate::exchange::output::Output;

/// The part of a body that arrived with the head.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReceivedBody<'b> {
    /// Bytes with the client's framing, none of them read by the reader yet.
    Framed(BodyReader, &'b [u8]),
    /// A complete body without framing, and the framing it needs.
    Whole(Framing, &'b [u8]),
}

impl<'b> ReceivedBody<'b> {
    /// Whether the body is already known to be longer than `max` bytes.
    pub(crate) fn exceeds(self, framing: Framing, max: u64, limits: &Limits) -> bool {
        match (framing, self) {
            (Framing::Length(length), _) => length > max,
            (Framing::Chunked, ReceivedBody::Whole(_, bytes)) => bytes.len() as u64 > max,
            (Framing::Chunked, ReceivedBody::Framed(mut reader, bytes)) => {
                reader.limit_chunks(max);
                reader.skip(bytes, limits).is_err()
            }
            (Framing::None | Framing::UntilClose, _) => false,
        }
    }

    /// Copies a complete body into `out` with its framing and returns its length. Returns `None` and copies nothing if
    /// the body is incomplete, malformed or too long for `out`.
    pub(crate) fn put_whole(
        self,
        out: &mut Buffer,
        limits: &Limits,
        keeps: TrailerFilter<'_>,
    ) -> Option<usize> {
        match self {
            ReceivedBody::Framed(mut reader, bytes) => {
                forward_body::put_whole(&mut reader, bytes, out, limits, keeps)
            }
            ReceivedBody::Whole(framing, bytes) => {
                let framed = framed(framing, bytes);
                out.put(&framed).then_some(bytes.len())
            }
        }
    }

    /// The payload of a complete body without trailers, and the number of bytes consumed.
    pub(crate) fn payload(self, limits: &Limits) -> Option<(Vec<u8>, usize)> {
        let (mut reader, arrived) = match self {
            ReceivedBody::Framed(reader, bytes) => (reader, bytes),
            ReceivedBody::Whole(_, bytes) => return Some((bytes.to_vec(), bytes.len())),
        };
        let (mut data, mut trailers) = (Vec::new(), Vec::new());
        let to = (&mut data, &mut trailers);
        let bytes = forward_body::append_payload(&mut reader, arrived, to, limits, &|_| true);
        let is_bare = trailers.is_empty() || trailers == b"\r\n";
        let bytes = bytes.ok().filter(|_| is_bare && reader.is_complete())?;
        Some((data, bytes))
    }

    /// The complete body as it is forwarded, or `None` if it is incomplete.
    pub(crate) fn whole(
        self,
        core: &Core,
        limits: &Limits,
        keeps: TrailerFilter<'_>,
    ) -> Option<Cow<'b, [u8]>> {
        let (mut reader, bytes) = match self {
            ReceivedBody::Framed(reader, bytes) => (reader, bytes),
            ReceivedBody::Whole(framing, bytes) => return Some(framed(framing, bytes)),
        };
        let passing = reader.pass(bytes, limits, keeps).ok()?;
        if passing.surplus.is_empty() {
            let is_whole = reader.is_complete();
            return is_whole.then_some(Cow::Borrowed(&bytes[..passing.consumed]));
        }
        let mut buffer = core.buffer().ok()?;
        self.put_whole(&mut buffer, limits, keeps)?;
        Some(Cow::Owned(buffer.to_vec()))
    }
}

/// Frames a complete body for an HTTP/1 server: as one chunk if it has no `Content-Length` (RFC 9112 7.1).
fn framed(framing: Framing, body: &[u8]) -> Cow<'_, [u8]> {
    if framing != Framing::Chunked {
        return Cow::Borrowed(body);
    }
    let size = format!("{:x}\r\n", body.len());
    Cow::Owned(match body {
        b"" => LAST_CHUNK.to_vec(),
        body => [size.as_bytes(), body, CHUNK_END, LAST_CHUNK].concat(),
    })
}

pub(crate) enum RequestBody<'a> {
    Http1 {
        stream: &'a Transport,
        input: &'a mut Input,
        reader: &'a mut BodyReader,
    },
    Http2(http2::Body<'a>),
}

impl<'a> RequestBody<'a> {
    /// Whether received bytes are waiting to be read.
    pub(crate) fn has_unread(&self) -> bool {
        match self {
            RequestBody::Http1 { input, .. } => !input.is_empty(),
            RequestBody::Http2(body) => body.has_arrived(),
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        match self {
            RequestBody::Http1 { reader, .. } => reader.is_complete(),
            RequestBody::Http2(body) => body.is_complete(),
        }
    }

    /// Whether it had trailers that its framing for an HTTP/1 server cannot carry.
    pub(crate) fn has_dropped_trailers(&self) -> bool {
        match self {
            RequestBody::Http1 { .. } => false,
            RequestBody::Http2(body) => body.has_dropped_trailers(),
        }
    }

    /// Number of bytes still to come, if known.
    pub(crate) fn remaining(&self) -> Option<u64> {
        match self {
            RequestBody::Http1 { reader, .. } => reader.remaining(),
            RequestBody::Http2(body) => body.left(),
        }
    }

    /// The client's connection, if body bytes can be forwarded from it unchanged: HTTP/1 without TLS.
    pub(crate) fn as_plain(&self) -> Option<&'a Stream> {
        match self {
            RequestBody::Http1 { stream, .. } => stream.as_plain(),
            RequestBody::Http2(_) => None,
        }
    }

    /// Counts bytes that were forwarded without passing through user space; only with [`RequestBody::as_plain`].
    pub(crate) fn count_spliced(&mut self, count: u64) {
        match self {
            RequestBody::Http1 { reader, .. } => reader.count_forwarded(count),
            RequestBody::Http2(_) => unreachable!("it has frames"),
        }
    }

    /// Forwards the received part to an HTTP/1 server, in chunks if the length is unknown, with the trailers that pass
    /// `keeps`.
    ///
    /// # Errors
    /// A refusal if the body is malformed; the inner error is from the recipient's connection.
    pub(crate) fn pass(
        &mut self,
        (output, server): (&mut Output, &Transport),
        limits: &Limits,
        keeps: TrailerFilter<'_>,
    ) -> Result<Result<(), Error>, Refusal> {
        match self {
            RequestBody::Http1 { input, reader, .. } => {
                forward_body::pass(reader, input, output, server, limits, keeps)
            }
            RequestBody::Http2(body) => body.pass((output, server), keeps),
        }
    }

    /// Appends the received part to `data` without framing, and the trailers that pass `keeps` to `trailers` as lines.
    ///
    /// # Errors
    /// A refusal if the body is malformed.
    pub(crate) fn append_to(
        &mut self,
        (data, trailers): (&mut Vec<u8>, &mut Vec<u8>),
        limits: &Limits,
        keeps: TrailerFilter<'_>,
    ) -> Result<(), Refusal> {
        match self {
            RequestBody::Http1 { input, reader, .. } => {
                let to = (data, trailers);
                let bytes = forward_body::append_payload(reader, input.bytes(), to, limits, keeps)?;
                if bytes > 0 {
                    input.consume(bytes);
                }
                Ok(())
            }
            RequestBody::Http2(body) => body.append_to((data, trailers), keeps),
        }
    }

    /// Reads and discards received pieces until they add up to `most` bytes or more. Returns their total length.
    ///
    /// # Errors
    /// A refusal if the body is malformed.
    pub(crate) fn take(&mut self, most: u64, limits: &Limits) -> Result<u64, Refusal> {
        let (input, reader) = match self {
            RequestBody::Http1 { input, reader, .. } => (input, reader),
            RequestBody::Http2(body) => return body.take(),
        };
        let mut taken = 0;
        while taken < most {
            let step = reader.advance(input.bytes(), limits)?;
            if step.consumed == 0 {
                break;
            }
            input.consume(step.consumed);
            taken += step.payload.len() as u64;
        }
        Ok(taken)
    }

    /// Waits for more bytes until `deadline`. Returns 0 at the end of the connection.
    pub(crate) async fn receive(&mut self, deadline: Instant) -> Result<usize, Error> {
        match self {
            RequestBody::Http1 { stream, input, .. } => {
                stream.set_deadline(Some(deadline));
                stream.recv(input).await
            }
            RequestBody::Http2(body) => body.receive(deadline).await,
        }
    }
}
