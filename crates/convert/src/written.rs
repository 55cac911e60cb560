//! Test helpers for both languages: files in memory, and access to the result and its notes.

use std::path::Path;

use crate::result::Conversion;
use crate::source::Files;
use crate::source::note::{Note, Outcome};

/// Files in memory, by name.
pub(crate) struct MemoryFiles(pub(crate) Vec<(&'static str, String)>);

impl Files for MemoryFiles {
    fn read(&self, path: &Path) -> Result<String, String> {
        let found = self.0.iter().find(|(name, _)| Path::new(name) == path);
        found
            .map(|(_, text)| text.clone())
            .ok_or_else(|| "No such file".to_owned())
    }

    fn list(&self, directory: &Path) -> Vec<String> {
        let inside = self.0.iter().filter_map(|(name, _)| {
            let path = Path::new(name);
            (path.parent() == Some(directory)).then(|| path.file_name())?
        });
        inside
            .map(|name| name.to_string_lossy().into_owned())
            .collect()
    }
}

/// Panics if the result is not a valid configuration of Onrush.
#[track_caller]
pub(crate) fn verified(conversion: Conversion) -> Conversion {
    if let Err(defect) = conversion.verify() {
        panic!("{}\n{defect}", conversion.text);
    }
    conversion
}

/// The lines of the result without comments and empty lines.
pub(crate) fn lines(conversion: &Conversion) -> impl Iterator<Item = &str> {
    let lines = conversion.text.lines();
    let lines = lines.map(|line| line.split("    # ").next().unwrap_or(line));
    lines.filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Outcome of the first directive that starts with `directive`.
#[track_caller]
pub(crate) fn outcome(conversion: &Conversion, directive: &str) -> Outcome {
    let is_it = |note: &&Note| note.directive.starts_with(directive);
    let note = conversion.notes.iter().find(is_it);
    note.unwrap_or_else(|| panic!("no note on {directive}"))
        .outcome
        .clone()
}
