//! Rules that refuse requests and cannot be asked for in the result.

/// What becomes of a rule that refuses requests where Onrush has no condition for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Guards {
    /// It refuses every request that reaches it.
    #[default]
    Closed,
    /// It is left out and refuses none.
    Open,
}
