//! A value of the core's thread that mail can find.

use std::any::Any;
use std::rc::{Rc, Weak};

use super::Core;

impl Core {
    /// Makes a value of this thread available to mail from other threads. The core does not keep it alive.
    pub fn attach(&self, value: Weak<dyn Any>) {
        self.inner().attached.replace(Some(value));
    }

    /// The attached value; `None` if it was dropped or has another type.
    pub fn attached<T: 'static>(&self) -> Option<Rc<T>> {
        let value = self.inner().attached.borrow().as_ref()?.upgrade()?;
        value.downcast().ok()
    }
}
