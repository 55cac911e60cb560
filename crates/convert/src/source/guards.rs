//! Rules that refuse requests and have no counterpart in the result.

/// Treatment of a rule that refuses requests under a condition that Onrush does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Guards {
    /// It refuses every request that reaches it.
    #[default]
    Closed,
    /// It is left out and refuses none.
    Open,
}
