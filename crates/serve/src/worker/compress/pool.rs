//! Pool of a core's encoders, with a limit on the memory of lent ones.

use std::cell::{Cell, RefCell};
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use onrush_http::encoding::Coding;

use crate::limits::{ENCODERS_BYTES_MAX, ENCODERS_IDLE_MAX};
use crate::worker::compress::Encoder;
use crate::worker::compress::level;

#[derive(Default)]
pub(crate) struct Pool {
    /// Reset encoders; the last returned one is last.
    idle: RefCell<Vec<Encoder>>,
    /// Memory of lent encoders. Invariant: `<= ENCODERS_BYTES_MAX`.
    lent_bytes: Cell<usize>,
}

impl Pool {
    /// An encoder for one response; `None` if the memory limit is reached.
    pub(crate) fn lend(self: &Rc<Self>, coding: Coding) -> Option<PooledEncoder> {
        let bytes = self.lent_bytes.get() + level::memory_max(coding);
        if bytes > ENCODERS_BYTES_MAX {
            return None;
        }
        self.lent_bytes.set(bytes);
        let mut idle = self.idle.borrow_mut();
        let found = idle.iter().rposition(|encoder| encoder.coding() == coding);
        let encoder = match found {
            Some(at) => idle.swap_remove(at),
            None => Encoder::new(coding, level::streaming(coding)),
        };
        Some(PooledEncoder {
            encoder: Some(encoder),
            pool: Rc::clone(self),
        })
    }

    fn take_back(&self, mut encoder: Encoder) {
        let bytes = level::memory_max(encoder.coding());
        self.lent_bytes.set(self.lent_bytes.get() - bytes);
        let mut idle = self.idle.borrow_mut();
        if idle.len() < ENCODERS_IDLE_MAX && encoder.keeps_memory() {
            encoder.reset();
            idle.push(encoder);
        }
    }

    #[cfg(test)]
    pub(crate) fn idle(&self) -> usize {
        self.idle.borrow().len()
    }
}

/// An encoder that returns to its pool when dropped.
pub(crate) struct PooledEncoder {
    /// `None` only while being dropped.
    encoder: Option<Encoder>,
    pool: Rc<Pool>,
}

impl Deref for PooledEncoder {
    type Target = Encoder;

    fn deref(&self) -> &Encoder {
        self.encoder.as_ref().expect("taken only when dropped")
    }
}

impl DerefMut for PooledEncoder {
    fn deref_mut(&mut self) -> &mut Encoder {
        self.encoder.as_mut().expect("taken only when dropped")
    }
}

impl Drop for PooledEncoder {
    fn drop(&mut self) {
        if let Some(encoder) = self.encoder.take() {
            self.pool.take_back(encoder);
        }
    }
}
