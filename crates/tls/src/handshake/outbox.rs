//! Outgoing messages of a handshake.

use onrush_engine::{Buffer, Error, Stream};
use rustls::unbuffered::{EncodeError, EncodeTlsData};

/// Collects messages, so that several are sent together.
pub(super) struct Outbox<'s> {
    pub(super) stream: &'s Stream,
    pub(super) buffer: Option<Buffer>,
}

impl<'s> Outbox<'s> {
    pub(super) fn new(stream: &'s Stream) -> Self {
        Self {
            stream,
            buffer: None,
        }
    }

    pub(super) fn put<Data>(&mut self, mut message: EncodeTlsData<'_, Data>) -> Result<(), Error> {
        loop {
            if self.buffer.is_none() {
                self.buffer = Some(self.stream.core().buffer()?);
            }
            let buffer = self.buffer.as_mut().expect("set above");
            match message.encode(buffer.spare()) {
                Ok(count) => {
                    buffer.fill(count);
                    return Ok(());
                }
                Err(EncodeError::InsufficientSize(_)) => {
                    assert!(!buffer.is_empty(), "a record fits a buffer");
                    self.queue();
                }
                Err(EncodeError::AlreadyEncoded) => unreachable!("left with the first success"),
            }
        }
    }

    pub(super) fn queue(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.stream.queue(buffer);
        }
    }

    pub(super) async fn flush(&mut self) -> Result<(), Error> {
        self.queue();
        self.stream.flush().await
    }
}
