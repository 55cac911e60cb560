//! A value allocated on first use.

use std::cell::OnceCell;

/// A value allocated on first use; until then it costs one word.
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

    /// The value, allocated if needed.
    pub(crate) fn get_or_default(&self) -> &T {
        self.0.get_or_init(Box::default)
    }
}
