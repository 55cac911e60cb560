use crate::report::Report;

/// Result of one generator.
#[derive(Clone, Debug)]
pub struct Part {
    /// Name in messages, such as that of its file.
    pub name: String,
    /// The result.
    pub report: Report,
}
