//! Regular expressions that are known to compile.

/// A regular expression; matching takes time linear in the length of the text.
#[derive(Clone, Debug)]
pub struct Pattern(regex::bytes::Regex);

impl Pattern {
    pub(crate) fn new(regex: regex::bytes::Regex) -> Pattern {
        Pattern(regex)
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// What its groups match where it is found in `text`.
    pub(crate) fn groups<'t>(&self, text: &'t [u8]) -> Option<regex::bytes::Captures<'t>> {
        self.0.captures(text)
    }

    /// The number of the group with this name or number, but for the whole.
    pub(crate) fn group(&self, name: &str) -> Option<usize> {
        let number = name.parse().ok();
        let mut names = self.0.capture_names().enumerate().skip(1);
        names
            .find(|(at, known)| Some(*at) == number || *known == Some(name))
            .map(|(at, _)| at)
    }

    /// Whether it is found in `text`.
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
