//! Exit codes of what is made of earlier results, beside 0 for success and 1 for a result that cannot be read.

/// What was asked for cannot be told.
pub(super) const EXIT_UNTOLD: u8 = 3;
/// Something became worse: what 4 is for `onrush load`, a condition that failed.
pub(super) const EXIT_WORSE: u8 = 4;
