//! The result of a conversion, and a check that Onrush accepts it.

use std::fmt;
use std::path::Path;

use crate::document::Section;
use crate::source::note::{Note, Outcome};

/// A configuration of Onrush, with the outcome of each converted directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// The configuration, as TOML.
    pub text: String,
    /// Notes in the order of the input.
    pub notes: Vec<Note>,
}

/// The result is not a valid configuration of Onrush, which is a bug of the converter. Displays the errors.
#[derive(Clone, Debug)]
pub struct Defect(String);

impl fmt::Display for Defect {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Defect {}

impl Conversion {
    pub(crate) fn new(comments: Vec<String>, sections: &[Section], notes: Vec<Note>) -> Conversion {
        let mut head = Section::default();
        head.comments = comments;
        let mut text = head.to_string();
        for section in sections {
            text += &format!("\n{section}");
        }
        Conversion { text, notes }
    }

    /// Number of directives by outcome: carried, without effect, approximated, left out.
    pub fn counts(&self) -> [usize; 4] {
        let mut counts = [0; 4];
        for note in &self.notes {
            counts[match note.outcome {
                Outcome::Carried => 0,
                Outcome::WithoutEffect(_) => 1,
                Outcome::Approximated(_) => 2,
                Outcome::LeftOut(_) => 3,
            }] += 1;
        }
        counts
    }

    /// Whether no directive was left out.
    pub fn is_complete(&self) -> bool {
        self.counts()[3] == 0
    }

    /// Checks that the text is a valid configuration, without reading the files that it names.
    ///
    /// # Errors
    /// With all errors that Onrush finds. They are bugs of the converter, not of the input.
    pub fn verify(&self) -> Result<(), Defect> {
        match onrush_config::parse(&self.text, Path::new("result")) {
            Ok(_) => Ok(()),
            Err(errors) => Err(Defect(errors.to_string())),
        }
    }
}
