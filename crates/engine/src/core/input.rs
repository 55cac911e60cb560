//! Bytes of this process in an input, whose buffers are the core's.

use super::Core;
use crate::buffers::input::Input;
use crate::error::Error;
use crate::limits::BUFFER_BYTES;

impl Input {
    /// Appends as many of `bytes` as there is room for and says how many.
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
