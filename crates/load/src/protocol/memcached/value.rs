//! A value of a response that is being received.

use super::reading::Reading;
use crate::requests::memcached::Verify;
use crate::requests::memcached::workload::Key;

pub(super) struct Value {
    /// The key of the value; `None` if it was not requested, or is not verified.
    pub(super) key: Option<Key>,
    pub(super) at: u64,
    pub(super) left: u64,
    /// Whether the bytes verified so far belong to the key.
    pub(super) is_right: bool,
}

impl Value {
    /// Whether the remaining bytes must be verified.
    pub(super) fn needs_verification(&self, reading: &Reading) -> bool {
        self.is_right && reading.workload.verify() == Verify::Yes
    }

    pub(super) fn pass(&mut self, count: u64) {
        self.at += count;
        self.left -= count;
    }
}
