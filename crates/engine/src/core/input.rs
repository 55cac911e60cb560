//! Filling an input with bytes of this process, in buffers of the core.

use super::Core;
use crate::buffers::input::Input;
use crate::error::Error;
use crate::limits::BUFFER_BYTES;

impl Input {
    /// Appends as many of `bytes` as fit and returns their number.
    ///
    /// # Errors
    /// [`crate::Kind::NoBuffers`] when the core's bound is reached.
    pub fn put_some(&mut self, bytes: &[u8], core: &Core) -> Result<usize, Error> {
        if bytes.is_empty() {
            return Ok(0);
        }
        let pool = &core.inner().pool;
        let buffer = match bytes.len() {
            ..=BUFFER_BYTES => self.compact_buffer(pool)?,
            _ => self.buffer_for_bulk(pool)?,
        };
        Ok(buffer.put_some(bytes))
    }
}
