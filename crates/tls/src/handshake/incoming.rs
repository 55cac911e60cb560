//! Received bytes of a handshake.

use onrush_engine::{BUFFER_BYTES, Core, Input, Stream, WIDE_BUFFER_BYTES};

use crate::error::HandshakeError;
use crate::limits::{EARLY_RECORD_BYTES_MAX, HANDSHAKE_BYTES_MAX};
use crate::record;

/// Position of the hello's version in the first record: after the record's header, the type and the length.
pub(super) const HELLO_VERSION: std::ops::Range<usize> = 9..11;

/// Received bytes that rustls has not consumed: one buffer, or more if a message needs it.
#[derive(Default)]
pub(super) struct Incoming {
    pub(super) input: Input,
    /// Used once a message exceeds a buffer. Invariant: then `input` is empty between receives.
    pub(super) long: Vec<u8>,
    /// Number of bytes that rustls may read: whole records, up to the record that completes the handshake.
    pub(super) shown: usize,
    /// Version in the hello of the first record (RFC 8446 4.1.2).
    pub(super) hello_version: Option<[u8; 2]>,
    /// Number of bytes of early data skipped.
    pub(super) skipped: usize,
}

impl Incoming {
    pub(super) fn bytes(&self) -> &[u8] {
        if self.long.is_empty() {
            self.input.bytes()
        } else {
            &self.long
        }
    }

    pub(super) fn shown_mut(&mut self) -> &mut [u8] {
        let bytes = if self.long.is_empty() {
            self.input.bytes_mut()
        } else {
            &mut self.long
        };
        &mut bytes[..self.shown]
    }

    /// Makes one more complete record readable. Bytes that are not a record are passed on, so that rustls refuses them.
    pub(super) fn show_next_record(&mut self) -> bool {
        if self.hello_version.is_none() {
            self.hello_version = self.bytes().get(HELLO_VERSION).map(|two| [two[0], two[1]]);
        }
        let hidden = &self.bytes()[self.shown..];
        let more = match record::length(hidden) {
            // All versions are 3.x: bytes with another one are not a record, and rustls should refuse them at once.
            Ok(Some(_)) if hidden[1] != 3 => hidden.len(),
            Ok(Some(length)) if length <= hidden.len() => length,
            Ok(_) => return false,
            Err(_) => hidden.len(),
        };
        self.shown += more;
        true
    }

    pub(super) fn consume(&mut self, count: usize) {
        self.shown -= count;
        if !self.long.is_empty() {
            self.long.drain(..count);
        } else if count > 0 {
            self.input.consume(count);
        }
    }

    /// Drops the record that rustls could not decrypt: early data (RFC 8446 4.2.10). rustls skips such a record without
    /// consuming it, and would read it again with the next one.
    pub(super) fn skip_early_data(&mut self) -> Result<(), HandshakeError> {
        self.skipped += self.shown;
        self.consume(self.shown);
        if self.skipped > EARLY_RECORD_BYTES_MAX {
            return Err(HandshakeError::TooLong);
        }
        Ok(())
    }

    /// Returns the remaining bytes, for the session.
    pub(super) fn into_input(mut self, core: &Core) -> Result<Input, HandshakeError> {
        if !self.long.is_empty() && self.input.put_some(&self.long, core)? < self.long.len() {
            return Err(HandshakeError::TooLong);
        }
        Ok(self.input)
    }

    pub(super) async fn receive(&mut self, stream: &Stream) -> Result<usize, HandshakeError> {
        if self.input.bytes().len() >= BUFFER_BYTES {
            self.spill();
        }
        let count = stream.recv(&mut self.input).await?;
        if !self.long.is_empty() {
            self.spill();
            if self.long.len() > HANDSHAKE_BYTES_MAX + WIDE_BUFFER_BYTES {
                return Err(HandshakeError::TooLong);
            }
        }
        Ok(count)
    }

    pub(super) fn spill(&mut self) {
        self.long.extend_from_slice(self.input.bytes());
        self.input.consume(self.input.bytes().len());
    }
}
