//! What few of many need.

use std::cell::OnceCell;

/// A value that has memory of its own from its first use on: whoever holds many of which few are used holds a word for each.
pub(crate) struct OnDemand<T>(OnceCell<Box<T>>);

impl<T> Default for OnDemand<T> {
    fn default() -> Self {
        Self(OnceCell::new())
    }
}

impl<T: Default> OnDemand<T> {
    /// The value, if it was ever used.
    pub(crate) fn get(&self) -> Option<&T> {
        self.0.get().map(|it| &**it)
    }

    /// The value, which is used from now on.
    pub(crate) fn used(&self) -> &T {
        self.0.get_or_init(Box::default)
    }
}
