//! Exit codes of `onrush load`; 0 is success.

/// The run is impossible as requested.
pub(super) const EXIT_USAGE: u8 = 1;
/// No connection to the target succeeded.
pub(super) const EXIT_UNREACHABLE: u8 = 2;
/// A signal ended the program before its report: 128 plus the number of SIGINT, as in shells.
pub(super) const EXIT_INTERRUPTED: u8 = 130;
pub(super) const EXIT_ERRORS: u8 = 3;
/// A condition of --fail-if holds, or could not be evaluated.
pub(super) const EXIT_THRESHOLD: u8 = 4;
/// A search was ended early, or found no rate.
pub(super) const EXIT_NOT_FOUND: u8 = 4;
/// The verdict on the run is INVALID.
pub(super) const EXIT_INVALID: u8 = 5;
