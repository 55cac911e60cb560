//! Each core's limit on idle upstream connections, across all of its pools.

use std::cell::Cell;
use std::rc::Rc;

#[derive(Debug)]
pub(crate) struct IdleLimit {
    max: Cell<usize>,
    count: Cell<usize>,
}

/// Owner of idle connections and cached files.
pub(crate) trait IdleOwner {
    /// Closes them; returns their number.
    fn give_up(&self) -> usize;

    /// Frees the objects that open connections keep for reuse and returns their number.
    fn free_spare(&self) -> usize;
}

impl IdleLimit {
    pub(crate) fn new(max: usize) -> Rc<Self> {
        Rc::new(Self {
            max: Cell::new(max),
            count: Cell::new(0),
        })
    }

    /// Sets the limit. Connections beyond it stay open until they are used or too old.
    pub(crate) fn bound(&self, max: usize) {
        self.max.set(max);
    }

    pub(crate) fn has_room(&self) -> bool {
        self.count.get() < self.max.get()
    }

    pub(crate) fn is_exceeded(&self) -> bool {
        self.count.get() > self.max.get()
    }

    pub(crate) fn add(&self, count: usize) {
        self.count.set(self.count.get() + count);
    }

    pub(crate) fn subtract(&self, count: usize) {
        self.count.set(self.count.get() - count);
    }
}
