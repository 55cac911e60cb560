//! Whether everything requested was done, and its exit code.

use std::process::ExitCode;

/// Something was refused, is in conflict, or is not in force.
const PARTLY: u8 = 3;

/// How much was done.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Whole,
    Partly,
}

impl Extent {
    pub(super) fn code(self) -> ExitCode {
        match self {
            Extent::Whole => ExitCode::SUCCESS,
            Extent::Partly => ExitCode::from(PARTLY),
        }
    }
}
