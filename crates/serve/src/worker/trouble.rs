//! What is wrong with the files of a plan, or worth a warning.

use std::collections::HashSet;
use std::fmt;

use onrush_config::diagnostic::Span;
use onrush_config::plan::FilePath;

/// Something wrong with a file that a plan names, or worth a warning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trouble {
    /// Where the text of the configuration names it; nowhere when the command line does.
    pub place: Option<Span>,
    /// What it is, in a sentence that names the file.
    pub message: String,
}

impl Trouble {
    pub(crate) fn with(file: &FilePath, message: String) -> Self {
        Self {
            place: file.place().cloned(),
            message,
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// What has been seen while the files of a plan were read.
#[derive(Clone, Default)]
pub(crate) struct Troubles {
    pub(crate) warnings: Vec<Trouble>,
    pub(crate) wrong: Vec<Trouble>,
}

/// Drops what has been said before.
pub(crate) fn say_once(troubles: &mut Vec<Trouble>) {
    let mut said = HashSet::new();
    troubles.retain(|trouble| said.insert(trouble.message.clone()));
}
