//! Whether a sender marked fields as never indexed.

/// Whether fields of a block must not be indexed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sensitivity {
    /// No field, or only fields for which that is assumed anyway.
    #[default]
    Unmarked,
    /// Other fields too: the next hops must not index the block either (RFC 7541 6.2.3).
    NeverIndexed,
}
