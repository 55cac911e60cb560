//! Compiled regular expressions.

/// A regular expression; the time to match is linear in the length of the text.
#[derive(Clone, Debug)]
pub struct Pattern(regex::bytes::Regex);

impl Pattern {
    pub(crate) fn new(regex: regex::bytes::Regex) -> Pattern {
        Pattern(regex)
    }

    /// The expression as written.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Capture groups of the first match in `text`.
    pub(crate) fn groups<'t>(&self, text: &'t [u8]) -> Option<regex::bytes::Captures<'t>> {
        self.0.captures(text)
    }

    /// Index of the group with this name or number; group 0 is excluded.
    pub(crate) fn group(&self, name: &str) -> Option<usize> {
        let number = name.parse().ok();
        let mut names = self.0.capture_names().enumerate().skip(1);
        names
            .find(|(at, known)| Some(*at) == number || *known == Some(name))
            .map(|(at, _)| at)
    }

    /// Whether the expression matches anywhere in `text`.
    pub fn matches(&self, text: &[u8]) -> bool {
        self.0.is_match(text)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Pattern {}
