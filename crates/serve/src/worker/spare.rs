//! Boxes kept for reuse, independent of their type.

use std::any::Any;
use std::cell::RefCell;

/// Boxes of one type.
#[derive(Default)]
pub(crate) struct Spare(RefCell<Vec<Box<dyn Any>>>);

impl Spare {
    pub(crate) fn take<T: 'static>(&self) -> Option<Box<T>> {
        let spare = self.0.borrow_mut().pop()?;
        spare.downcast().ok()
    }

    /// Keeps a box, unless there are `most` already.
    pub(crate) fn give<T: 'static>(&self, spare: Box<T>, most: usize) {
        let mut all = self.0.borrow_mut();
        if all.len() < most {
            all.push(spare);
        }
    }

    /// Frees all boxes and returns their number.
    pub(crate) fn clear(&self) -> usize {
        self.0.take().len()
    }
}
