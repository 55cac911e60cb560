//! The outcome of each directive.

use std::collections::BTreeMap;
use std::fmt;

use crate::limits;
use crate::source::directive::{Directive, Place};

/// Outcome of a directive, from best to worst.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The result has the same meaning.
    Carried,
    /// The result has no equivalent and responses do not differ; with the reason.
    WithoutEffect(String),
    /// The result has a similar setting; with the difference.
    Approximated(String),
    /// The result has no equivalent and responses differ; with the reason.
    LeftOut(String),
}

impl Outcome {
    /// Adds the reason of another outcome if that outcome changes responses.
    fn add_difference(&mut self, other: Outcome) {
        if matches!(other, Outcome::Approximated(_)) {
            self.add_reason(other);
        }
    }

    /// Adds the reason of another outcome if it fits within [`limits::REASONS_MAX`].
    fn add_reason(&mut self, other: Outcome) {
        let (Outcome::WithoutEffect(why) | Outcome::Approximated(why) | Outcome::LeftOut(why)) =
            self
        else {
            return;
        };
        let (Outcome::WithoutEffect(more) | Outcome::Approximated(more) | Outcome::LeftOut(more)) =
            other
        else {
            return;
        };
        if !why.contains(&more) && why.len() + more.len() < limits::REASONS_MAX {
            *why += &format!("; {more}");
        }
    }
}

/// A directive and its outcome. Displays as one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The words of the directive, cut to one line.
    pub directive: String,
    /// The outcome.
    pub outcome: Outcome,
}

impl fmt::Display for Note {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Note {
            file,
            line,
            directive,
            outcome,
        } = self;
        let (what, why) = match outcome {
            Outcome::Carried => return write!(out, "{file}:{line}: carried: {directive}"),
            Outcome::WithoutEffect(why) => ("without effect", why),
            Outcome::Approximated(how) => ("approximated", how),
            Outcome::LeftOut(why) => ("left out", why),
        };
        write!(out, "{file}:{line}: {what}: {directive}: {why}")
    }
}

/// Outcomes of the directives that the converter has handled. If one directive gets several, the worst is kept, with
/// all reasons.
#[derive(Debug, Default)]
pub(crate) struct Notes(BTreeMap<usize, Outcome>);

impl Notes {
    fn note(&mut self, directive: &Directive, outcome: Outcome) {
        let known = self.0.entry(directive.number).or_insert(Outcome::Carried);
        if std::mem::discriminant(known) == std::mem::discriminant(&outcome) {
            known.add_reason(outcome);
        } else if *known < outcome {
            let before = std::mem::replace(known, outcome);
            known.add_difference(before);
        } else {
            known.add_difference(outcome);
        }
    }

    pub(crate) fn carried(&mut self, directive: &Directive) {
        self.note(directive, Outcome::Carried);
    }

    pub(crate) fn without_effect(&mut self, directive: &Directive, why: impl Into<String>) {
        self.note(directive, Outcome::WithoutEffect(why.into()));
    }

    pub(crate) fn approximated(&mut self, directive: &Directive, how: impl Into<String>) {
        self.note(directive, Outcome::Approximated(how.into()));
    }

    pub(crate) fn left_out(&mut self, directive: &Directive, why: impl Into<String>) {
        self.note(directive, Outcome::LeftOut(why.into()));
    }

    /// Returns the notes of `directives` and of the directives in their blocks, in the order of reading. `unread`
    /// decides about directives without an outcome. The block of a directive that was left out or has no effect gets no
    /// notes, and neither do the blocks named in `tables`, whose entries are not directives.
    pub(crate) fn finish(
        self,
        directives: &[Directive],
        tables: &[&str],
        unread: &dyn Fn(&Directive) -> Outcome,
    ) -> Vec<Note> {
        let mut notes = Vec::new();
        let mut rest: Vec<&Directive> = directives.iter().rev().collect();
        while let Some(directive) = rest.pop() {
            let outcome = self.0.get(&directive.number).cloned();
            let outcome = outcome.unwrap_or_else(|| unread(directive));
            let is_whole = matches!(outcome, Outcome::Carried | Outcome::Approximated(_))
                && !tables.contains(&directive.name());
            let Place { file, line } = &directive.place;
            notes.push(Note {
                file: file.to_string(),
                line: *line,
                directive: directive.shown(),
                outcome,
            });
            if is_whole {
                rest.extend(directive.inside().iter().rev());
            }
        }
        notes
    }
}
