//! Result of one generator, as input of a merge or a comparison.

use crate::report::Report;

/// Result of one generator.
#[derive(Clone, Debug)]
pub struct Part {
    /// Name in messages, such as that of its file.
    pub name: String,
    /// The result.
    pub report: Report,
}
