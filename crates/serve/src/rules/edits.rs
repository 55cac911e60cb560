//! Edits of header fields: remove, set, add. Prepared once, applied to heads as they are written.

use onrush_config::plan::{FieldEdits, Piece, Template, Variable};
use onrush_http::hop::equals_ignoring_punctuation;
use onrush_http::write::HeadWriter;

use crate::routing::variables::VariableValues;
use crate::rules::location::Location;

/// The edits of one kind of message.
#[derive(Debug, Default)]
pub(crate) struct Edits {
    /// Fields to remove; includes fields that are set.
    dropped: FieldNames,
    /// Fields to write.
    written: Vec<(String, Template)>,
}

/// Equality of names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum NameComparison {
    /// Also ignores separators (such as `_` and `-`), which many servers do not distinguish.
    #[default]
    Loose,
    /// Names that differ in case only (RFC 9110 5.1).
    Exact,
}

/// Field names, in lower case.
#[derive(Debug, Default)]
pub(crate) struct FieldNames {
    /// With `-` for all separators, if the spelling is loose.
    names: Vec<String>,
    spelling: NameComparison,
    /// Bit n is set if a name has n bytes; the last bit covers longer names. Excludes nearly all fields.
    lengths: u64,
}

impl FieldNames {
    pub(crate) fn of(names: &[String], spelling: NameComparison) -> FieldNames {
        let mut all = FieldNames {
            spelling,
            ..FieldNames::default()
        };
        names.iter().for_each(|name| all.push(name));
        all
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    fn push(&mut self, name: &str) {
        self.lengths |= length_bit(name);
        let plain = |letter: char| match self.spelling {
            NameComparison::Loose if !letter.is_ascii_alphanumeric() => '-',
            NameComparison::Loose | NameComparison::Exact => letter.to_ascii_lowercase(),
        };
        self.names.push(name.chars().map(plain).collect());
    }

    /// Removes a name, ignoring case.
    fn take(&mut self, name: &str) {
        self.names.retain(|known| !known.eq_ignore_ascii_case(name));
        self.lengths = self
            .names
            .iter()
            .fold(0, |lengths, known| lengths | length_bit(known));
    }

    #[inline]
    pub(crate) fn contain(&self, name: &str) -> bool {
        self.lengths & length_bit(name) != 0
            && self.names.iter().any(|known| match self.spelling {
                NameComparison::Loose => equals_ignoring_punctuation(name, known),
                NameComparison::Exact => name.eq_ignore_ascii_case(known),
            })
    }
}

#[inline]
fn length_bit(name: &str) -> u64 {
    1 << name.len().min(63)
}

impl Edits {
    pub(crate) fn new(plan: &FieldEdits, spelling: NameComparison) -> Self {
        let mut dropped = FieldNames::of(&plan.remove, spelling);
        let set = plan.set.iter().map(|(name, _)| name);
        set.for_each(|name| dropped.push(name));
        Self {
            dropped,
            written: plan.set.iter().chain(&plan.add).cloned().collect(),
        }
    }

    /// Adds a field to remove.
    pub(crate) fn remove_field(&mut self, name: &str) {
        self.dropped.push(name);
    }

    /// Whether a field of this name is removed.
    #[inline]
    pub(crate) fn drops(&self, name: &str) -> bool {
        self.dropped.contain(name)
    }

    pub(crate) fn drops_one_of(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.drops(name))
    }

    /// Removes the field called `name` from these edits. Returns whether it was removed by them, and its template.
    pub(crate) fn take(&mut self, name: &str) -> (bool, Option<Template>) {
        let dropped = self.drops(name);
        let is_it = |field: &(String, Template)| field.0.eq_ignore_ascii_case(name);
        let at = self.written.iter().position(is_it);
        let template = at.map(|at| self.written[at].1.clone());
        self.written.retain(|field| !is_it(field));
        self.dropped.take(name);
        (dropped, template)
    }

    /// Takes the Location fields that depend on the request. Existing fields are still removed by these edits.
    pub(crate) fn take_locations(&mut self) -> Vec<Location> {
        let is_place = |(name, template): &mut (String, Template)| {
            name.eq_ignore_ascii_case("location") && template.as_text().is_none()
        };
        let taken = self.written.extract_if(.., is_place);
        taken.map(|(_, place)| Location::new(&place)).collect()
    }

    /// Number of variables in the fields to write, and bytes of the remaining text.
    pub(crate) fn template_size(&self) -> (usize, usize) {
        let (mut variables, mut bytes) = (0, 0);
        for (name, template) in &self.written {
            bytes += name.len() + ": \r\n".len();
            for piece in &template.0 {
                match piece {
                    Piece::Text(text) => bytes += text.len(),
                    Piece::Variable(_) => variables += 1,
                }
            }
        }
        (variables, bytes)
    }

    /// Whether `{request_id}` is used in a field to write.
    pub(crate) fn needs_request_id(&self) -> bool {
        let pieces = self.written.iter().flat_map(|(_, template)| &template.0);
        pieces
            .into_iter()
            .any(|piece| *piece == Piece::Variable(Variable::RequestId))
    }

    /// Calls `put` with each piece of the fields to write.
    pub(crate) fn render(&self, facts: &VariableValues<'_>, put: &mut impl FnMut(&[u8])) {
        for (name, template) in &self.written {
            put(name.as_bytes());
            put(b": ");
            facts.render(template, put);
            put(b"\r\n");
        }
    }

    /// The fields to write, if they do not depend on the request.
    pub(crate) fn text(&self) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        for (name, template) in &self.written {
            text.extend_from_slice(name.as_bytes());
            text.extend_from_slice(b": ");
            text.extend_from_slice(template.as_text()?.as_bytes());
            text.extend_from_slice(b"\r\n");
        }
        Some(text)
    }

    /// Removes fields from `head`, except lines for which `stays` returns true. Returns the new length.
    pub(crate) fn strip(&self, head: &mut [u8], stays: fn(&[u8]) -> bool) -> usize {
        let line_end = |from: &[u8]| memchr::memchr(b'\n', from).map_or(from.len(), |at| at + 1);
        let mut read = line_end(head);
        let mut written = read;
        while read < head.len() {
            let line = read..read + line_end(&head[read..]);
            read = line.end;
            let name = head[line.clone()].split(|&byte| byte == b':').next();
            let goes = name
                .and_then(|name| str::from_utf8(name).ok())
                .is_some_and(|name| self.drops(name));
            if !goes || stays(&head[line.clone()]) {
                head.copy_within(line.clone(), written);
                written += line.len();
            }
        }
        written
    }

    /// Edits a request's head, the first `length` bytes of `room`. Returns the new length, or `None` if it does not
    /// fit.
    pub(crate) fn rewrite(
        &self,
        room: &mut [u8],
        length: usize,
        facts: &VariableValues<'_>,
    ) -> Option<usize> {
        let length = self.strip(&mut room[..length], |_| false);
        let end = length.checked_sub(b"\r\n".len())?;
        let mut writer = HeadWriter::new(&mut room[end..]);
        self.render(facts, &mut |bytes| {
            writer.raw(bytes);
        });
        writer.end().finish().map(|written| end + written)
    }
}
