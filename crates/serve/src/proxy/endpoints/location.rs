//! Where a server is.

use onrush_engine::Address;

/// Where a server is and how much it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) address: Address,
    pub(crate) weight: u32,
    /// Whether it gets requests only when no other server can take them.
    pub(crate) backup: bool,
}
