//! A parsed directive: its words, and its block. A section of HAProxy is a directive, too, with its lines as the block.

use std::fmt;
use std::rc::Rc;

use crate::limits;

/// Position of a directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: Rc<str>,
    /// From 1.
    pub(crate) line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.file, self.line)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Directive {
    /// Number of the directive in the configuration, in the order of reading. Notes use it as their key.
    pub(crate) number: usize,
    pub(crate) place: Place,
    /// Name and arguments, without quotes; never empty.
    pub(crate) words: Vec<String>,
    /// Directives in its braces, if it has a block.
    pub(crate) block: Option<Vec<Directive>>,
}

impl Directive {
    pub(crate) fn name(&self) -> &str {
        &self.words[0]
    }

    pub(crate) fn arguments(&self) -> &[String] {
        &self.words[1..]
    }

    /// An argument, from 0; empty if it is missing.
    pub(crate) fn argument(&self, at: usize) -> &str {
        self.words.get(at + 1).map_or("", String::as_str)
    }

    pub(crate) fn inside(&self) -> &[Directive] {
        self.block.as_deref().unwrap_or_default()
    }

    /// Words on one line, cut to [`limits::SHOWN_MAX`] characters.
    pub(crate) fn shown(&self) -> String {
        let mut shown = String::new();
        for word in &self.words {
            if !shown.is_empty() {
                shown.push(' ');
            }
            match word.is_empty() || word.contains(char::is_whitespace) {
                true => shown += &format!("\"{word}\""),
                false => shown += word,
            }
            if shown.len() > limits::SHOWN_MAX {
                break;
            }
        }
        let letters = shown.chars().map(|letter| match letter.is_control() {
            true => ' ',
            false => letter,
        });
        let mut shown: String = letters.take(limits::SHOWN_MAX + 1).collect();
        if let Some((cut, _)) = shown.char_indices().nth(limits::SHOWN_MAX) {
            shown.truncate(cut);
            shown.pop();
            shown.push('…');
        }
        shown
    }

    /// Position and words, for comments of the result.
    pub(crate) fn origin(&self) -> String {
        format!("{}: {}", self.place, self.shown())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_text_is_truncated_to_one_line() {
        let of = |words: &[&str]| Directive {
            number: 0,
            place: Place {
                file: "f".into(),
                line: 3,
            },
            words: words.iter().map(|&word| word.to_owned()).collect(),
            block: None,
        };
        let directive = of(&["return", "200", "two words\n"]);
        assert_eq!(directive.origin(), "f:3: return 200 \"two words \"");
        let long = of(&["x", &"ü".repeat(300)]).shown();
        assert_eq!(long.chars().count(), limits::SHOWN_MAX);
        assert!(long.ends_with("ü…"), "{long}");
    }
}
