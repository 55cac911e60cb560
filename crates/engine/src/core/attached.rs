//! What mail from other threads works on.

use std::any::Any;
use std::rc::{Rc, Weak};

use super::Core;

impl Core {
    /// Mail finds `value` here from now on: it comes from other threads, which cannot hold what lives on this one. The core
    /// does not keep it alive.
    pub fn attach(&self, value: Weak<dyn Any>) {
        self.inner().attached.replace(Some(value));
    }

    /// What was attached; `None` when it is gone, or of another type.
    pub fn attached<T: 'static>(&self) -> Option<Rc<T>> {
        let value = self.inner().attached.borrow().as_ref()?.upgrade()?;
        value.downcast().ok()
    }
}
