//! The body of a request on its way in, whatever the protocol of its client.

use std::borrow::Cow;

use onrush_engine::{Buffer, Core, Error, Input, Instant, Stream};
use onrush_http::body::BodyReader;
use onrush_http::write::{CHUNK_END, LAST_CHUNK};
use onrush_http::{Framing, Limits, Refusal};
use onrush_tls::Transport;

use super::http2;
use crate::exchange::output::Output;
use crate::exchange::portion::{self, Keeps};

/// What has arrived of a body with its head.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arrived<'b> {
    /// Bytes as the client has framed them: the reader has read none of them.
    Framed(BodyReader, &'b [u8]),
    /// All of a body without framing, and how it is framed where that is needed.
    Whole(Framing, &'b [u8]),
}

impl<'b> Arrived<'b> {
    /// Whether a body that is framed so is known by now to have more than `max` bytes.
    pub(crate) fn exceeds(self, framing: Framing, max: u64, limits: &Limits) -> bool {
        match (framing, self) {
            (Framing::Length(length), _) => length > max,
            (Framing::Chunked, Arrived::Whole(_, bytes)) => bytes.len() as u64 > max,
            (Framing::Chunked, Arrived::Framed(mut reader, bytes)) => {
                reader.limit_chunks(max);
                reader.skip(bytes, limits).is_err()
            }
            (Framing::None | Framing::UntilClose, _) => false,
        }
    }

    /// Puts a body that has arrived whole into `out`, framed as it is: how many of its bytes that took. `None` when it is not
    /// whole, not well-formed or does not fit; then nothing is put.
    pub(crate) fn put_whole(
        self,
        out: &mut Buffer,
        limits: &Limits,
        keeps: Keeps<'_>,
    ) -> Option<usize> {
        match self {
            Arrived::Framed(mut reader, bytes) => {
                portion::put_whole(&mut reader, bytes, out, limits, keeps)
            }
            Arrived::Whole(framing, bytes) => {
                let framed = framed(framing, bytes);
                out.put(&framed).then_some(bytes.len())
            }
        }
    }

    /// The body without its framing, if all of it has arrived and nothing stands behind it, and how many bytes that took.
    pub(crate) fn payload(self, limits: &Limits) -> Option<(Vec<u8>, usize)> {
        let (mut reader, arrived) = match self {
            Arrived::Framed(reader, bytes) => (reader, bytes),
            Arrived::Whole(_, bytes) => return Some((bytes.to_vec(), bytes.len())),
        };
        let (mut data, mut trailers) = (Vec::new(), Vec::new());
        let to = (&mut data, &mut trailers);
        let bytes = portion::append_payload(&mut reader, arrived, to, limits, &|_| true);
        let is_bare = trailers.is_empty() || trailers == b"\r\n";
        let bytes = bytes.ok().filter(|_| is_bare && reader.is_complete())?;
        Some((data, bytes))
    }

    /// The body as it goes on, if all of it has arrived.
    pub(crate) fn whole(
        self,
        core: &Core,
        limits: &Limits,
        keeps: Keeps<'_>,
    ) -> Option<Cow<'b, [u8]>> {
        let (mut reader, bytes) = match self {
            Arrived::Framed(reader, bytes) => (reader, bytes),
            Arrived::Whole(framing, bytes) => return Some(framed(framing, bytes)),
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

/// A whole body as it goes on to a server of HTTP/1: as one chunk where its length is not said (RFC 9112 7.1).
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

/// Where a body comes from.
pub(crate) enum RequestBody<'a> {
    Http1 {
        stream: &'a Transport,
        input: &'a mut Input,
        reader: &'a mut BodyReader,
    },
    Http2(http2::Body<'a>),
}

impl<'a> RequestBody<'a> {
    /// Whether bytes of it have arrived that nobody has taken.
    pub(crate) fn has_arrived(&self) -> bool {
        match self {
            RequestBody::Http1 { input, .. } => !input.is_empty(),
            RequestBody::Http2(body) => body.has_arrived(),
        }
    }

    /// Whether all of it has been taken.
    pub(crate) fn is_complete(&self) -> bool {
        match self {
            RequestBody::Http1 { reader, .. } => reader.is_complete(),
            RequestBody::Http2(body) => body.is_complete(),
        }
    }

    /// Whether it had trailers that its framing toward an HTTP/1 server cannot carry.
    pub(crate) fn has_dropped_trailers(&self) -> bool {
        match self {
            RequestBody::Http1 { .. } => false,
            RequestBody::Http2(body) => body.has_dropped_trailers(),
        }
    }

    /// How many bytes of it are still to come, if that is known.
    pub(crate) fn left(&self) -> Option<u64> {
        match self {
            RequestBody::Http1 { reader, .. } => reader.left(),
            RequestBody::Http2(body) => body.left(),
        }
    }

    /// The client's connection itself, where the body is on it as it goes on.
    pub(crate) fn as_plain(&self) -> Option<&'a Stream> {
        match self {
            RequestBody::Http1 { stream, .. } => stream.as_plain(),
            RequestBody::Http2(_) => None,
        }
    }

    /// So many bytes have passed without a look at them, where [`RequestBody::as_plain`].
    pub(crate) fn pass_unseen(&mut self, count: u64) {
        match self {
            RequestBody::Http1 { reader, .. } => reader.pass_unseen(count),
            RequestBody::Http2(_) => unreachable!("it has frames"),
        }
    }

    /// Passes what has arrived on to a server of HTTP/1, of its trailers those that `keeps` wants: in chunks where its length
    /// is not known.
    ///
    /// # Errors
    /// A refusal when it is no body; within, what the recipient's connection says.
    pub(crate) fn pass(
        &mut self,
        (output, server): (&mut Output, &Transport),
        limits: &Limits,
        keeps: Keeps<'_>,
    ) -> Result<Result<(), Error>, Refusal> {
        match self {
            RequestBody::Http1 { input, reader, .. } => {
                portion::pass(reader, input, output, server, limits, keeps)
            }
            RequestBody::Http2(body) => body.pass((output, server), keeps),
        }
    }

    /// Appends what has arrived to `data` without its framing, and of its trailers those that `keeps` wants to `trailers`, as
    /// lines.
    ///
    /// # Errors
    /// A refusal when it is no body.
    pub(crate) fn append_to(
        &mut self,
        (data, trailers): (&mut Vec<u8>, &mut Vec<u8>),
        limits: &Limits,
        keeps: Keeps<'_>,
    ) -> Result<(), Refusal> {
        match self {
            RequestBody::Http1 { input, reader, .. } => {
                let to = (data, trailers);
                let bytes = portion::append_payload(reader, input.bytes(), to, limits, keeps)?;
                if bytes > 0 {
                    input.consume(bytes);
                }
                Ok(())
            }
            RequestBody::Http2(body) => body.append_to((data, trailers), keeps),
        }
    }

    /// Takes what has arrived, up to the piece with which it is `most` bytes or more; how many they are.
    ///
    /// # Errors
    /// A refusal when it is no body.
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

    /// Waits for more of it, which has to come until `deadline`. 0 is the end of the connection.
    ///
    /// # Errors
    /// Those of the connection.
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
