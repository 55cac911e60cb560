//! Rules that refuse requests and have no equivalent in Onrush.

/// Treatment of rules that refuse requests under a condition that Onrush cannot evaluate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Guards {
    /// The rule refuses every request that reaches it.
    #[default]
    Closed,
    /// The rule is left out and refuses no request.
    Open,
}
