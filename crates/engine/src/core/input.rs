//! Bytes of this process in an input, whose buffers are the core's.

use super::Core;
use crate::error::Error;
use crate::input::Input;

impl Input {
    /// Appends as many of `bytes` as there is room for and says how many.
    ///
    /// # Errors
    /// [`crate::Kind::NoBuffers`] when the core's bound is reached.
    pub fn put_some(&mut self, bytes: &[u8], core: &Core) -> Result<usize, Error> {
        if bytes.is_empty() {
            return Ok(0);
        }
        Ok(self.compact_buffer(&core.inner().pool)?.put_some(bytes))
    }
}
