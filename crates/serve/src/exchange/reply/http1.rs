//! A response over HTTP/1 (RFC 9112).

use std::time::Duration;

use onrush_engine::{Error, File, Input, Part};
use onrush_http::response::ResponseHead;
use onrush_http::write::{CHUNK_END, CHUNK_HEAD_BYTES_MAX, HeadWriter, LAST_CHUNK, chunk_head};
use onrush_http::{Framing, Method, Version, upgrade};
use onrush_tls::Transport;

use super::fields::{BodyLength, Fields};
use super::outcome::{BodyPassthrough, Interim, Persistence, TooLarge};
use crate::exchange::output::{BodyFraming, Output};
use crate::exchange::rendered::{self, Rendered};
use crate::limits::{CACHE_LINE_BYTES_MAX, RESPONSE_LINES_BYTES_MAX};
use crate::rules::response_edits::AppliedEdits;
use crate::worker::Worker;

pub(crate) struct Reply<'a> {
    stream: &'a Transport,
    output: &'a mut Output,
    ending: &'a mut Ending,
    pub(super) asked: RequestConnection,
    persistence: Persistence,
}

/// Whether the connection is kept after all output is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Ending {
    #[default]
    Open,
    Close,
    /// The connection is reset: the last response is incomplete, and an orderly close would mark it as complete.
    Reset,
}

/// Facts about the connection from the request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestConnection {
    pub(crate) version: Version,
    /// Whether the client wants a persistent connection.
    pub(crate) keep_alive: bool,
    /// Whether bytes of another request have arrived.
    pub(crate) is_followed: bool,
}

/// Room for any generated head. The longest have a redirect's `Location`, whose length is bounded by the target's (8
/// KiB), or the fields of a configured response, plus `Cache-Control`.
const HEAD_BYTES_MAX: usize = 12 * 1024;

/// Length of a chunk-size line for a chunk of at most one buffer: four digits and CRLF.
const CHUNK_LINE: usize = 6;

impl<'a> Reply<'a> {
    #[inline]
    pub(crate) fn new(
        stream: &'a Transport,
        output: &'a mut Output,
        ending: &'a mut Ending,
        asked: RequestConnection,
    ) -> Self {
        Self {
            stream,
            output,
            ending,
            asked,
            persistence: Persistence::Close,
        }
    }

    #[inline]
    pub(super) fn persist(&mut self, persistence: Persistence, worker: &Worker) {
        let asked = self.asked;
        self.persistence = match persistence {
            Persistence::AsRequested if !asked.keep_alive || *self.ending != Ending::Open => {
                Persistence::Close
            }
            Persistence::AsRequested | Persistence::Keep
                if worker.closes_after_response(asked.is_followed, self.stream) =>
            {
                Persistence::Close
            }
            Persistence::AsRequested => Persistence::Keep,
            persistence => persistence,
        };
    }

    /// Whether the standard head can be used: HTTP/1.1 and a persistent connection need no `Connection` field.
    #[inline]
    pub(super) fn uses_standard_head(&self) -> bool {
        self.persistence == Persistence::Keep && self.asked.version == Version::Http11
    }

    pub(super) fn head(
        &mut self,
        (status, method): (u16, Method),
        worker: &Worker,
        edits: Option<AppliedEdits<'_>>,
        fields: impl FnOnce(&mut Fields<'_>),
    ) -> Result<(), Error> {
        let room = HEAD_BYTES_MAX + edits.map_or(0, |_| RESPONSE_LINES_BYTES_MAX);
        let buffer = self.output.room(self.stream, room)?;
        let mut writer = HeadWriter::new(buffer.spare());
        let date = worker.date();
        writer.status_line(status).raw(rendered::SERVER).date(&date);
        let (mut writer, body) = write_fields(writer, self.asked.version, fields);
        self.persistence = self.persistence.with_framing(body);
        write_connection(self.asked.version, self.persistence, &mut writer);
        let bytes = writer.end().finish();
        let bytes = bytes.expect("heads of our own are far shorter than a buffer");
        let bytes = match edits {
            None => bytes,
            Some(edits) => edits
                .rewrite(buffer.spare(), bytes)
                .expect("there is room for what is added"),
        };
        buffer.fill(bytes);
        self.begin_body(match method {
            Method::Head => BodyFraming::Plain,
            _ => body,
        });
        Ok(())
    }

    #[inline]
    pub(super) fn rendered(
        &mut self,
        rendered: &Rendered,
        worker: &Worker,
        edits: Option<AppliedEdits<'_>>,
    ) -> Result<(), Error> {
        if let Some(edits) = edits {
            return self.rendered_edited(rendered, worker, edits);
        }
        let buffer = self.output.room(self.stream, rendered.length())?;
        rendered.with(worker, |head, body| {
            let fits = buffer.put(head) && buffer.put(body);
            debug_assert!(fits);
        });
        Ok(())
    }

    fn rendered_edited(
        &mut self,
        rendered: &Rendered,
        worker: &Worker,
        edits: AppliedEdits<'_>,
    ) -> Result<(), Error> {
        let Self { stream, output, .. } = self;
        rendered.with(worker, |head, body| {
            let buffer = output.room(
                stream,
                head.len() + RESPONSE_LINES_BYTES_MAX + CACHE_LINE_BYTES_MAX,
            )?;
            let room = buffer.spare();
            room[..head.len()].copy_from_slice(head);
            let bytes = edits
                .rewrite(room, head.len())
                .expect("there is room for what is added");
            buffer.fill(bytes);
            output.put(stream, body)
        })
    }

    pub(super) fn forwarded_head(
        &mut self,
        head: &ResponseHead<'_, '_>,
        edits: Option<AppliedEdits<'_>>,
        room: usize,
        fields: impl FnOnce(&mut Fields<'_>),
    ) -> Result<Result<(), TooLarge>, Error> {
        let buffer = self.output.room(self.stream, room)?;
        let mut writer = HeadWriter::new(buffer.spare());
        write_status_line(head, &mut writer);
        let (mut writer, body) = write_fields(writer, self.asked.version, fields);
        self.persistence = self.persistence.with_framing(body);
        write_connection(self.asked.version, self.persistence, &mut writer);
        if let Some(edits) = edits {
            edits.write(&mut writer);
        }
        let Some(bytes) = writer.end().finish() else {
            return Ok(Err(TooLarge));
        };
        buffer.fill(bytes);
        self.begin_body(body);
        Ok(Ok(()))
    }

    /// Sets the framing of the body after its head is written, and whether the connection closes after it.
    fn begin_body(&mut self, body: BodyFraming) {
        self.output.body = body;
        if self.persistence == Persistence::Close && *self.ending == Ending::Open {
            *self.ending = Ending::Close;
        }
    }

    pub(super) fn interim(
        &mut self,
        head: &ResponseHead<'_, '_>,
        room: usize,
        fields: impl FnOnce(&mut Fields<'_>),
    ) -> Result<Interim, Error> {
        if self.asked.version != Version::Http11 {
            return Ok(Interim::Skipped);
        }
        let buffer = self.output.room(self.stream, room)?;
        let mut writer = HeadWriter::new(buffer.spare());
        write_status_line(head, &mut writer);
        let (mut writer, _) = write_fields(writer, self.asked.version, fields);
        let bytes = writer.end().finish();
        buffer.fill(bytes.expect("the caller made room"));
        Ok(Interim::Written)
    }

    pub(super) fn passage(&self, framing: Framing) -> BodyPassthrough {
        match (framing, self.output.body) {
            (Framing::None | Framing::Length(_), BodyFraming::Plain)
            | (Framing::Chunked, BodyFraming::Chunked)
            | (Framing::UntilClose, BodyFraming::UntilClose) => BodyPassthrough::AsFramed,
            _ => BodyPassthrough::Payload,
        }
    }

    pub(super) fn written(&self) -> u64 {
        self.output.written()
    }

    pub(super) fn stream(&self) -> &'a Transport {
        self.stream
    }

    pub(super) fn parts(&mut self) -> (&mut Output, &'a Transport) {
        (self.output, self.stream)
    }

    /// Appends bytes without framing.
    pub(super) fn raw(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.output.put(self.stream, bytes)
    }

    pub(super) fn data(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.begin_chunk(bytes.len())?;
        self.raw(bytes)?;
        self.end_chunk(bytes.len())
    }

    pub(super) fn part(&mut self, part: Part) -> Result<(), Error> {
        let bytes = part.bytes().len();
        self.begin_chunk(bytes)?;
        self.output.part(self.stream, part);
        self.end_chunk(bytes)
    }

    pub(super) fn data_from(&mut self, input: &mut Input, bytes: usize) -> Result<(), Error> {
        self.begin_chunk(bytes)?;
        self.output.take_from(self.stream, input, bytes)?;
        self.end_chunk(bytes)
    }

    /// Writes the chunk-size line if the body is chunked. Size 0 is skipped because it would end the body.
    fn begin_chunk(&mut self, bytes: usize) -> Result<(), Error> {
        if self.output.body == BodyFraming::Chunked && bytes > 0 {
            let buffer = self.output.room(self.stream, CHUNK_HEAD_BYTES_MAX)?;
            let written = chunk_head(buffer.spare(), bytes as u64).expect("room was made");
            buffer.fill(written);
        }
        Ok(())
    }

    fn end_chunk(&mut self, bytes: usize) -> Result<(), Error> {
        match self.output.body {
            BodyFraming::Chunked if bytes > 0 => self.raw(CHUNK_END),
            _ => Ok(()),
        }
    }

    pub(super) fn fill(
        &mut self,
        room_min: usize,
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) -> Result<(), Error> {
        let body = self.output.body;
        let buffer = self.output.room(self.stream, room_min)?;
        let room = buffer.spare();
        let bytes = match body {
            BodyFraming::Chunked => {
                let end = room.len() - CHUNK_END.len();
                match fill(&mut room[CHUNK_LINE..end]) {
                    0 => 0,
                    written => frame(room, written),
                }
            }
            BodyFraming::Plain | BodyFraming::UntilClose => fill(room),
        };
        buffer.fill(bytes);
        Ok(())
    }

    #[inline]
    pub(super) fn end(&mut self) -> Result<(), Error> {
        match self.output.body {
            BodyFraming::Chunked => self.raw(LAST_CHUNK),
            BodyFraming::Plain | BodyFraming::UntilClose => Ok(()),
        }
    }

    pub(super) fn end_data(&mut self) -> Result<(), Error> {
        match self.output.body {
            BodyFraming::Chunked => self.raw(&LAST_CHUNK[..LAST_CHUNK.len() - CHUNK_END.len()]),
            BodyFraming::Plain | BodyFraming::UntilClose => Ok(()),
        }
    }

    pub(super) fn takes_trailers(&self) -> bool {
        self.output.body == BodyFraming::Chunked
    }

    pub(super) fn trailers(&mut self, lines: &[u8]) -> Result<(), Error> {
        match self.output.body {
            BodyFraming::Chunked => self.raw(lines),
            BodyFraming::Plain | BodyFraming::UntilClose => Ok(()),
        }
    }

    pub(super) async fn flush(&mut self, patience: Duration) -> Result<(), Error> {
        self.stream.set_send_patience(patience);
        self.output.flush(self.stream).await
    }

    pub(super) async fn file(
        &mut self,
        file: &File,
        (offset, length): (u64, u64),
        patience: Duration,
        worker: &Worker,
    ) -> Result<u64, Error> {
        // The deadline restarts with each byte that the client accepts.
        self.stream.set_deadline(Some(worker.core.now() + patience));
        self.output
            .flush_file(self.stream, file, offset, length)
            .await
    }
}

/// Calls `fields` to write after the contents of `writer`. Returns the framing of the body.
#[inline]
fn write_fields<'b>(
    writer: HeadWriter<'b>,
    version: Version,
    fields: impl FnOnce(&mut Fields<'_>),
) -> (HeadWriter<'b>, BodyFraming) {
    let mut to = Fields::http1(writer, version);
    fields(&mut to);
    let body = match (to.body_length(), version) {
        (Some(BodyLength::Unknown), Version::Http11 | Version::Http2) => BodyFraming::Chunked,
        (Some(BodyLength::Unknown), Version::Http10) => BodyFraming::UntilClose,
        (Some(BodyLength::Known(_)) | None, _) => BodyFraming::Plain,
    };
    (to.into_writer(), body)
}

/// Writes the `Connection` field if the version's default differs.
#[inline]
fn write_connection(version: Version, persistence: Persistence, writer: &mut HeadWriter<'_>) {
    match (persistence, version) {
        (Persistence::Upgrade(protocol), _) => upgrade::write([protocol.as_bytes()], &[], writer),
        (Persistence::Keep, Version::Http11 | Version::Http2) => {}
        (Persistence::Keep, Version::Http10) => {
            writer.keep_alive();
        }
        (Persistence::Close | Persistence::AsRequested, _) => {
            writer.connection_close();
        }
    }
}

/// Writes a server's status line with its own reason phrase.
fn write_status_line(head: &ResponseHead<'_, '_>, writer: &mut HeadWriter<'_>) {
    let digit = |place: u16| b'0' + (head.status / place % 10) as u8;
    let mut line = *b"HTTP/1.1 000 ";
    line[9..12].copy_from_slice(&[digit(100), digit(10), digit(1)]);
    writer.raw(&line).raw(head.reason.as_bytes()).raw(b"\r\n");
}

/// Frames as a chunk the `size` bytes that follow the room for the chunk-size line. Returns the length of the chunk.
fn frame(room: &mut [u8], size: usize) -> usize {
    let line = chunk_head(&mut room[..CHUNK_LINE], size as u64).expect("a buffer has 16 KiB");
    // Only chunks below 4 KiB have a shorter size line.
    if line < CHUNK_LINE {
        room.copy_within(CHUNK_LINE..CHUNK_LINE + size, line);
    }
    let end = line + size;
    room[end..end + CHUNK_END.len()].copy_from_slice(CHUNK_END);
    end + CHUNK_END.len()
}
