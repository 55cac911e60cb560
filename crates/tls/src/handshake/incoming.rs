//! What the peer has sent of a handshake.

use onrush_engine::{BUFFER_BYTES, Core, Input, Stream, WIDE_BUFFER_BYTES};

use crate::error::HandshakeError;
use crate::limits::{EARLY_RECORD_BYTES_MAX, HANDSHAKE_BYTES_MAX};
use crate::record;

/// Where the first record has the version of its hello: behind the header of the record, the type and the length.
pub(super) const HELLO_VERSION: std::ops::Range<usize> = 9..11;

/// What has been received and rustls has not consumed: one buffer, or as long as a message needs.
#[derive(Default)]
pub(super) struct Incoming {
    pub(super) input: Input,
    /// Used once a buffer was too short. Invariant: then `input` is empty between receives.
    pub(super) long: Vec<u8>,
    /// The bytes that rustls may look at: whole records, and none behind the one that completes the handshake.
    pub(super) shown: usize,
    /// What the first record's hello says of its version (RFC 8446 4.1.2).
    pub(super) hello_version: Option<[u8; 2]>,
    /// Bytes of early data that were skipped.
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

    /// Shows one more record, if it is there; what is none is shown as it is, so that rustls refuses it.
    pub(super) fn show_next_record(&mut self) -> bool {
        if self.hello_version.is_none() {
            self.hello_version = self.bytes().get(HELLO_VERSION).map(|two| [two[0], two[1]]);
        }
        let hidden = &self.bytes()[self.shown..];
        let more = match record::length(hidden) {
            // Nobody has a version other than 3.x: what claims one is no record, and rustls is to say so at once.
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

    /// Drops the record that was shown and could not be opened: early data, of which rustls skips a record without an end
    /// of its own, and would look at it again with the next one (RFC 8446 4.2.10).
    pub(super) fn skip_early_data(&mut self) -> Result<(), HandshakeError> {
        self.skipped += self.shown;
        self.consume(self.shown);
        if self.skipped > EARLY_RECORD_BYTES_MAX {
            return Err(HandshakeError::TooLong);
        }
        Ok(())
    }

    /// What is left for the session.
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
