//! What a sender says of fields that it would have in nobody's table.

/// Whether somebody has said that fields of a block may be in nobody's table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sensitivity {
    /// Of none, or of those alone of which it is assumed anyway.
    #[default]
    Usual,
    /// Of others, too: who hands the block on does so without a table (RFC 7541 6.2.3).
    NeverIndexed,
}
