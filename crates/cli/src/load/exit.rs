//! Exit codes of `onrush load`, beside 0 for success.

/// The run cannot be made as asked.
pub(super) const EXIT_USAGE: u8 = 1;
/// Nothing of the target could be reached.
pub(super) const EXIT_UNREACHABLE: u8 = 2;
/// A signal ended the program before its report: 128 and the number of SIGINT, as shells have it.
pub(super) const EXIT_INTERRUPTED: u8 = 130;
/// There were errors during the run.
pub(super) const EXIT_ERRORS: u8 = 3;
/// A condition of --fail-if holds, or could not be judged.
pub(super) const EXIT_THRESHOLD: u8 = 4;
/// A search that was ended before its time, or found no rate.
pub(super) const EXIT_NOT_FOUND: u8 = 4;
/// The figures of the run cannot be believed.
pub(super) const EXIT_INVALID: u8 = 5;
