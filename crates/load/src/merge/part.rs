//! One generator's result.

use crate::report::Report;

/// One generator's result.
#[derive(Clone, Debug)]
pub struct Part {
    /// How messages call it, such as the name of its file.
    pub name: String,
    /// Its result.
    pub report: Report,
}
