//! Output queue of a connection: responses are appended and sent together.

use onrush_engine::{Buffer, Error, File, Input, Part};
use onrush_tls::Transport;

use crate::limits::OUTPUT_BUFFERS_MAX;

/// Smaller bodies are copied into the output buffer; larger ones are passed on in the buffer they arrived in.
pub(crate) const COPY_MAX: usize = 4096;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum BodyFraming {
    /// Unframed: the head has the length, or the bytes are framed already.
    #[default]
    Plain,
    /// Chunked (RFC 9112 7.1).
    Chunked,
    /// Unframed, up to the end of the connection.
    UntilClose,
}

/// Unsent responses of one connection. Holds a buffer only while there are any.
#[derive(Default)]
pub(crate) struct Output {
    buffer: Option<Buffer>,
    /// Parts handed to the stream since the last flush.
    queued: u32,
    /// Framing of the body of the last response whose head is written.
    pub(crate) body: BodyFraming,
    /// Bytes that have left the buffer since the last response started, minus bytes of earlier responses in it at that
    /// time; modulo 2^64.
    passed: u64,
}

impl Output {
    /// Starts counting the bytes of the next response.
    #[inline]
    pub(crate) fn begin_response(&mut self) {
        self.passed = 0_u64.wrapping_sub(self.buffered());
    }

    /// Bytes of the last response so far.
    #[inline]
    pub(crate) fn written(&self) -> u64 {
        self.passed.wrapping_add(self.buffered())
    }

    #[inline]
    fn buffered(&self) -> u64 {
        self.buffer.as_ref().map_or(0, |buffer| buffer.len() as u64)
    }

    /// Counts bytes of the response that were sent without passing through this buffer.
    pub(crate) fn pass(&mut self, bytes: u64) {
        self.passed = self.passed.wrapping_add(bytes);
    }

    /// Whether so much is queued that it should be sent before further responses are written.
    pub(crate) fn is_full(&self) -> bool {
        self.queued as usize >= OUTPUT_BUFFERS_MAX
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queued == 0 && self.buffer.is_none()
    }

    /// Returns a buffer with room for `bytes`, which must not exceed the size of one buffer.
    pub(crate) fn room(&mut self, stream: &Transport, bytes: usize) -> Result<&mut Buffer, Error> {
        if self
            .buffer
            .as_ref()
            .is_some_and(|buffer| buffer.room() < bytes)
        {
            self.queue(stream);
        }
        if self.buffer.is_none() {
            self.buffer = Some(stream.core().buffer()?);
        }
        Ok(self.buffer.as_mut().expect("set above"))
    }

    /// Appends bytes, in several buffers if needed.
    pub(crate) fn put(&mut self, stream: &Transport, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            let written = self.room(stream, 1)?.put_some(bytes);
            bytes = &bytes[written..];
        }
        Ok(())
    }

    /// Appends a part without copying it.
    pub(crate) fn part(&mut self, stream: &Transport, part: impl Into<Part>) {
        self.queue(stream);
        let part = part.into();
        self.pass(part.bytes().len() as u64);
        stream.queue(part);
        self.queued += 1;
    }

    /// Appends the first `bytes` of `input`; without a copy if that is the whole input and more than [`COPY_MAX`].
    pub(crate) fn take_from(
        &mut self,
        stream: &Transport,
        input: &mut Input,
        bytes: usize,
    ) -> Result<(), Error> {
        if bytes > COPY_MAX
            && bytes == input.bytes().len()
            && let Some(buffer) = input.take()
        {
            self.part(stream, buffer);
            return Ok(());
        }
        self.put(stream, &input.bytes()[..bytes])?;
        if bytes > 0 {
            input.consume(bytes);
        }
        Ok(())
    }

    pub(crate) fn queue(&mut self, stream: &Transport) {
        if let Some(buffer) = self.buffer.take() {
            self.pass(buffer.len() as u64);
            stream.queue(buffer);
            self.queued += 1;
        }
    }

    /// Sends all written bytes.
    pub(crate) fn flush<'s>(
        &mut self,
        stream: &'s Transport,
    ) -> impl Future<Output = Result<(), Error>> + use<'s> {
        self.queue(stream);
        self.queued = 0;
        stream.flush()
    }

    /// Sends all written bytes, then bytes of `file`: see [`Transport::send_file`].
    pub(crate) async fn flush_file(
        &mut self,
        stream: &Transport,
        file: &File,
        offset: u64,
        length: u64,
    ) -> Result<u64, Error> {
        self.queue(stream);
        self.queued = 0;
        let sent = stream.send_file(file, offset, length).await?;
        self.pass(sent);
        Ok(sent)
    }
}
