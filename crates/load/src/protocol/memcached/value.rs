//! A value of an answer, as far as it has come.

use super::reading::Reading;
use crate::requests::memcached::Verify;
use crate::requests::memcached::workload::Key;

/// A value on its way.
pub(super) struct Value {
    /// The key that it belongs to; none where nobody had asked for it, or nobody looks at it.
    pub(super) key: Option<Key>,
    pub(super) at: u64,
    pub(super) left: u64,
    /// Whether it is that of its key, as far as it has come and is looked at.
    pub(super) is_right: bool,
}

impl Value {
    /// Whether what still comes of it can change what is known of it.
    pub(super) fn is_looked_at(&self, reading: &Reading) -> bool {
        self.is_right && reading.workload.verify() == Verify::Yes
    }

    /// So many bytes of it have come.
    pub(super) fn pass(&mut self, count: u64) {
        self.at += count;
        self.left -= count;
    }
}
