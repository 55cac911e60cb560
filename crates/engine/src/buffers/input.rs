//! The received and not yet consumed bytes of a connection. Holds a buffer only while it has bytes.

use std::mem;
use std::rc::Rc;

use crate::buffers::buffer::{Buffer, Pool};
use crate::error::Error;
use crate::limits::BUFFER_BYTES;

/// Received bytes, in order.
///
/// While a task waits for more, the rest (for example half a head) is parked in memory of exactly its size, so a
/// stalled client costs the bytes that it sent and an idle one nothing.
#[derive(Debug, Default)]
pub struct Input {
    buffer: Option<Buffer>,
    /// Invariant: empty while `buffer` is `Some`.
    parked: Box<[u8]>,
}

impl Input {
    /// All unconsumed bytes.
    pub fn bytes(&self) -> &[u8] {
        match &self.buffer {
            Some(buffer) => buffer,
            None => &self.parked,
        }
    }

    /// Whether all bytes are consumed.
    pub fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// Drops the first `count` bytes; returns the buffer to the pool when none are left.
    ///
    /// # Panics
    /// When there are fewer bytes.
    pub fn consume(&mut self, count: usize) {
        match &mut self.buffer {
            Some(buffer) => {
                buffer.consume(count);
                if buffer.is_empty() {
                    self.buffer = None;
                }
            }
            None => self.parked = self.parked[count..].into(),
        }
    }

    /// Takes the buffer, to pass it on without a copy. `None` if nothing was received since the last wait.
    pub fn take(&mut self) -> Option<Buffer> {
        self.buffer.take()
    }

    /// The unconsumed bytes, for decryption in place.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.buffer {
            Some(buffer) => buffer.filled_mut(),
            None => &mut self.parked,
        }
    }

    /// Sets the content to `buffer`: the inverse of [`Input::take`].
    ///
    /// # Panics
    /// When there are unconsumed bytes.
    pub fn give(&mut self, buffer: Buffer) {
        assert!(self.is_empty(), "bytes would be lost");
        if !buffer.is_empty() {
            self.parked = Box::default();
            self.buffer = Some(buffer);
        }
    }

    /// Returns the buffer to the pool before a wait.
    pub fn park(&mut self) {
        if let Some(buffer) = self.buffer.take()
            && !buffer.is_empty()
        {
            self.parked = buffer[..].into();
        }
    }

    /// A buffer that starts with the unconsumed bytes and has room after them.
    pub(crate) fn buffer_with_room(&mut self, pool: &Rc<Pool>) -> Result<&mut Buffer, Error> {
        let buffer = self.compact_buffer(pool)?;
        assert!(
            buffer.room() > 0,
            "the caller consumes or refuses before a whole buffer is unconsumed"
        );
        Ok(buffer)
    }

    /// Like [`Input::buffer_with_room`], with a wide buffer if possible.
    pub(crate) fn buffer_for_bulk(&mut self, pool: &Rc<Pool>) -> Result<&mut Buffer, Error> {
        if self.buffer.is_none()
            && let Some(mut buffer) = pool.take_wide()
        {
            let parked = mem::take(&mut self.parked);
            let fits = buffer.put(&parked);
            assert!(fits, "parked bytes came from a buffer that is not wider");
            self.buffer = Some(buffer);
        }
        self.buffer_with_room(pool)
    }

    /// A buffer that starts with the unconsumed bytes.
    pub(crate) fn compact_buffer(&mut self, pool: &Rc<Pool>) -> Result<&mut Buffer, Error> {
        if let Some(buffer) = &mut self.buffer {
            buffer.compact();
        } else {
            let mut buffer = match self.parked.len() {
                ..=BUFFER_BYTES => pool.take()?,
                _ => pool.take_wide_unbounded(),
            };
            let parked = mem::take(&mut self.parked);
            let fits = buffer.put(&parked);
            assert!(fits, "parked bytes came from a buffer that is not wider");
            self.buffer = Some(buffer);
        }
        Ok(self.buffer.as_mut().expect("set above"))
    }

    /// Appends the buffer `received` from the kernel, without a copy if all earlier bytes were consumed. Leaves the
    /// rest in `received` if it does not fit (everything if there is no buffer), and returns the number of bytes
    /// appended.
    pub(crate) fn append(
        &mut self,
        received: &mut Option<Buffer>,
        pool: &Rc<Pool>,
    ) -> Result<usize, Error> {
        let Some(mut arrived) = received.take() else {
            return Ok(0);
        };
        if self.is_empty() {
            let count = arrived.len();
            self.parked = Box::default();
            self.buffer = Some(arrived);
            return Ok(count);
        }
        let count = match self.buffer_with_room(pool) {
            Ok(buffer) => buffer.put_some(&arrived),
            Err(error) => {
                *received = Some(arrived);
                return Err(error);
            }
        };
        arrived.consume(count);
        if !arrived.is_empty() {
            *received = Some(arrived);
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Core;
    use crate::limits::WIDE_BUFFERS_MAX;

    #[test]
    fn park_releases_buffer_and_keeps_bytes() {
        let pool = Pool::new();
        let mut input = Input::default();
        assert!(input.buffer_with_room(&pool).unwrap().put(b"GET / HT"));
        input.consume(4);
        input.park();
        assert_eq!(pool.in_use(), 0);
        assert_eq!(input.bytes(), b"/ HT");
        assert!(input.buffer_with_room(&pool).unwrap().put(b"TP/1.1"));
        assert_eq!(input.bytes(), b"/ HTTP/1.1");
    }

    #[test]
    fn append_to_empty_input_does_not_copy() {
        let pool = Pool::new();
        let mut arrived = pool.take().unwrap();
        assert!(arrived.put(b"abc"));
        let address = arrived.as_ptr();
        let mut input = Input::default();
        assert_eq!(input.append(&mut Some(arrived), &pool).unwrap(), 3);
        assert_eq!(input.bytes().as_ptr(), address);
    }

    #[test]
    fn give_put_and_take_share_one_buffer() {
        let core = Core::simulated(crate::Simulation::with_seed(1));
        let mut buffer = core.buffer().unwrap();
        assert!(buffer.put(&vec![1; BUFFER_BYTES - 2]));
        let address = buffer.as_ptr();
        let mut input = Input::default();
        input.give(buffer);
        assert_eq!(input.put_some(b"abcd", &core), Ok(2));
        assert_eq!(input.put_some(b"cd", &core), Ok(0));
        input.bytes_mut()[0] = 7;
        input.consume(0);
        let taken = input.take().unwrap();
        assert_eq!((taken.as_ptr(), taken[0]), (address, 7));
        assert!(taken.ends_with(b"\x01ab"));
    }

    #[test]
    fn large_input_survives_parking() {
        let pool = Pool::new();
        let mut input = Input::default();
        let bytes: Vec<u8> = (0..3 * BUFFER_BYTES).map(|index| index as u8).collect();
        let buffer = input.buffer_for_bulk(&pool).unwrap();
        assert!(buffer.put(&bytes), "it is wide");
        input.park();
        assert_eq!(pool.in_use(), 0);
        let others: Vec<Buffer> = (0..WIDE_BUFFERS_MAX)
            .map(|_| pool.take_wide().unwrap())
            .collect();
        assert!(pool.take_wide().is_none(), "that is the bound");
        assert!(input.buffer_with_room(&pool).unwrap().put(b"behind"));
        assert!(input.bytes().strip_prefix(&bytes[..]) == Some(b"behind"));
        drop(others);
        input = Input::default();
        assert!(input.buffer_for_bulk(&pool).unwrap().room() > BUFFER_BYTES);
    }

    #[test]
    fn failed_append_keeps_received_bytes() {
        let pool = Pool::new();
        let mut input = Input::default();
        assert!(input.buffer_with_room(&pool).unwrap().put(b"ab"));
        input.park();
        let mut arrived = pool.take().unwrap();
        assert!(arrived.put(b"cd"));
        let mut arrived = Some(arrived);
        pool.set_exhausted(true);
        assert!(input.append(&mut arrived, &pool).is_err());
        pool.set_exhausted(false);
        assert_eq!(
            (input.bytes(), &arrived.as_ref().unwrap()[..]),
            (&b"ab"[..], &b"cd"[..])
        );
        assert_eq!(input.append(&mut arrived, &pool), Ok(2));
        assert_eq!(input.bytes(), b"abcd");
    }

    #[test]
    fn append_keeps_bytes_beyond_capacity() {
        let pool = Pool::new();
        let mut input = Input::default();
        assert!(
            input
                .buffer_with_room(&pool)
                .unwrap()
                .put(&vec![1; BUFFER_BYTES - 2])
        );
        let mut arrived = pool.take().unwrap();
        assert!(arrived.put(b"abcd"));
        let mut arrived = Some(arrived);
        assert_eq!(input.append(&mut arrived, &pool).unwrap(), 2);
        assert_eq!(&arrived.unwrap()[..], b"cd");
    }
}
