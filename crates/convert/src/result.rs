//! The result of a conversion, and that it is a configuration of Onrush.

use std::fmt;
use std::path::Path;

use crate::document::Section;
use crate::source::note::{Note, Outcome};

/// A configuration of Onrush, and what became of each directive that it was made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// TOML.
    pub text: String,
    /// In the order of reading.
    pub notes: Vec<Note>,
}

/// The result is no configuration of Onrush, which is a mistake of the converter. Displays as what is wrong with it.
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

    /// How many directives came to each end: carried, without effect, approximated, left out.
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

    /// Whether nothing was left out that makes responses differ.
    pub fn is_complete(&self) -> bool {
        self.counts()[3] == 0
    }

    /// That the text is a configuration, as far as that can be told without its files.
    ///
    /// # Errors
    /// With all that Onrush finds wrong in it: none of that is the fault of whoever wrote the original.
    pub fn verify(&self) -> Result<(), Defect> {
        match onrush_config::parse(&self.text, Path::new("result")) {
            Ok(_) => Ok(()),
            Err(errors) => Err(Defect(errors.to_string())),
        }
    }
}
