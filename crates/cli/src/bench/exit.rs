//! Exit codes of the subcommands that read earlier results; 0 is success, 1 an unreadable result.

/// A requested figure is missing or cannot be compared.
pub(super) const EXIT_NOT_COMPARABLE: u8 = 3;
/// Something became worse; `onrush load` uses 4 in the same sense, for a failed condition.
pub(super) const EXIT_WORSE: u8 = 4;
