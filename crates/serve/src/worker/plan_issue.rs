//! Errors and warnings about the files of a plan.

use std::collections::HashSet;
use std::fmt;

use onrush_config::diagnostic::Span;
use onrush_config::plan::FilePath;

/// An error or warning about a file that a plan names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanIssue {
    /// Position in the configuration; `None` if the file is named on the command line.
    pub place: Option<Span>,
    /// A sentence that names the file.
    pub message: String,
}

impl PlanIssue {
    pub(crate) fn with(file: &FilePath, message: String) -> Self {
        Self {
            place: file.place().cloned(),
            message,
        }
    }
}

impl fmt::Display for PlanIssue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Errors and warnings found while the files of a plan were read.
#[derive(Clone, Default)]
pub(crate) struct PlanIssues {
    pub(crate) warnings: Vec<PlanIssue>,
    pub(crate) wrong: Vec<PlanIssue>,
}

/// Removes duplicates.
pub(crate) fn deduplicate(troubles: &mut Vec<PlanIssue>) {
    let mut said = HashSet::new();
    troubles.retain(|trouble| said.insert(trouble.message.clone()));
}
