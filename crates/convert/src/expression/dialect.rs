//! Translates regular expressions of PCRE into Rust's `regex` with the same meaning.
//!
//! The parser is an allow-list: it accepts syntax that has the same meaning in both or can be written differently. It
//! works on bytes, as PCRE does without UTF mode. `pcre.rs` handles `$` and the flag for bytes.

mod class;
mod escape;

#[cfg(test)]
mod tests;

use crate::expression::pcre::{group_length, without_look_ahead};

/// Matches any bytes.
const ANYTHING: &str = "(?s-u:.*)";

/// Treatment of syntax that cannot be translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unknown {
    /// The expression is refused.
    Refused,
    /// The syntax is replaced by any bytes, so the expression matches more texts.
    Widened,
}

/// The same expression for Rust's `regex`.
pub(crate) fn translate(pattern: &str) -> Result<String, String> {
    let spelt_out = without_look_ahead(pattern);
    parsed(spelt_out.as_deref().unwrap_or(pattern), Unknown::Refused)
}

/// An expression that matches every text that `pattern` matches, and possibly others: look-arounds are dropped, and
/// unknown parts match any bytes. None if the end of an unknown part cannot be found.
pub(crate) fn wider(pattern: &str) -> Option<String> {
    parsed(pattern, Unknown::Widened).ok()
}

fn parsed(pattern: &str, unknown: Unknown) -> Result<String, String> {
    const LOOSE: &str = "(?i)";
    if pattern.contains(char::REPLACEMENT_CHARACTER) {
        return Err("the expression has bytes that are not UTF-8".to_owned());
    }
    let bare = pattern.trim_start_matches(LOOSE);
    let mut parser = Parser {
        text: bare,
        at: 0,
        out: if bare.len() < pattern.len() {
            LOOSE
        } else {
            ""
        }
        .to_owned(),
        open: Vec::new(),
        branch: Branch::default(),
        groups: 0,
        can_repeat: false,
        ends_group: false,
        has_any_dot: false,
        unknown,
    };
    while let Some(byte) = parser.take() {
        parser.part(byte)?;
    }
    match parser.open.is_empty() {
        true => Ok(parser.out),
        false => Err("an opening parenthesis of the expression is not closed".to_owned()),
    }
}

struct Parser<'p> {
    text: &'p str,
    at: usize,
    out: String,
    /// Branches around the current one, one for each open group.
    open: Vec<Branch>,
    branch: Branch,
    /// Number of capturing groups so far.
    groups: usize,
    /// Whether a quantifier may follow.
    can_repeat: bool,
    /// Whether the last part is a group with `$`.
    ends_group: bool,
    /// Whether a dot may match a line break somewhere.
    has_any_dot: bool,
    unknown: Unknown,
}

/// Position of `$` in a sequence of parts. `pcre.rs` lets `$` consume a final line break, so no part after it may match
/// one.
#[derive(Clone, Copy, Debug, Default)]
struct Branch {
    /// Whether there is a `$` before the group.
    is_before_group: bool,
    is_in_other_branch: bool,
    is_before: bool,
}

/// The error for syntax that is not on the list.
fn unsupported(what: &str) -> String {
    format!("{what} of PCRE has no equivalent in regular expressions of Onrush")
}

impl<'p> Parser<'p> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    /// The remaining text; empty inside a multi-byte character, where no syntax starts.
    fn rest(&self) -> &'p str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn part(&mut self, byte: u8) -> Result<(), String> {
        match byte {
            b'\\' => self.escape(),
            b'[' => self.class(),
            b'(' => self.open(),
            b')' if self.open.is_empty() => {
                Err("a closing parenthesis of the expression has no opening one".to_owned())
            }
            b')' => {
                let inner = self.branch;
                self.branch = self.open.pop().unwrap_or_default();
                self.ends_group = inner.is_before || inner.is_in_other_branch;
                self.branch.is_before |= self.ends_group;
                self.out.push(')');
                self.can_repeat = true;
                Ok(())
            }
            b'|' => {
                self.branch.is_in_other_branch |= self.branch.is_before;
                self.branch.is_before = self.branch.is_before_group;
                self.out.push('|');
                self.can_repeat = false;
                Ok(())
            }
            b'^' => self.edge("^"),
            b'$' => self.edge("$"),
            b'*' | b'+' | b'?' => self.repeat(1),
            b'{' => match quantifier(self.rest()) {
                Bounds::Quantifier(length) => self.repeat(1 + length),
                Bounds::Literal => self.put("\\{"),
                Bounds::Unclear => Err(unsupported(
                    "a quantifier without a lower bound or with spaces",
                )),
            },
            byte if byte.is_ascii_graphic() || byte == b' ' => {
                self.put(char::from(byte).encode_utf8(&mut [0; 4]))
            }
            byte => self.literal(byte),
        }
    }

    /// Writes a part that a quantifier may follow.
    fn put(&mut self, text: &str) -> Result<(), String> {
        if self.branch.is_before && self.takes_line_break(text) {
            return Err(unsupported("a line break after $"));
        }
        self.out += text;
        self.can_repeat = true;
        self.ends_group = false;
        Ok(())
    }

    /// Writes an anchor: an edge of the text or of a word.
    fn edge(&mut self, text: &str) -> Result<(), String> {
        match (text, self.branch.is_before) {
            ("$", _) => self.branch.is_before = true,
            (_, true) => return Err(unsupported("another anchor after $")),
            _ => {}
        }
        self.out += text;
        self.can_repeat = false;
        Ok(())
    }

    /// Whether a part may match a line break.
    fn takes_line_break(&self, part: &str) -> bool {
        let flags = if self.has_any_dot { "s" } else { "" };
        let regex = regex::bytes::Regex::new(&format!("(?{flags}-u)^(?:{part})$"));
        regex.is_ok_and(|regex| regex.is_match(b"\n"))
    }

    /// Writes one literal byte.
    fn literal(&mut self, byte: u8) -> Result<(), String> {
        let text = match byte {
            0x80.. => format!("(?-u:\\x{byte:02X})"),
            byte if byte.is_ascii_graphic() || byte == b' ' => {
                regex::escape(char::from(byte).encode_utf8(&mut [0; 4]))
            }
            byte => format!("\\x{byte:02X}"),
        };
        self.put(&text)
    }

    /// Writes a quantifier of `length` bytes; its first byte is read.
    fn repeat(&mut self, length: usize) -> Result<(), String> {
        if !self.can_repeat {
            return Err(unsupported(
                "a quantifier after nothing, an anchor or another quantifier",
            ));
        }
        let begin = self.at - 1;
        if self.ends_group && !self.text[begin..].starts_with('?') {
            return Err(unsupported("a repeated $"));
        }
        self.at = begin + length;
        self.out += &self.text[begin..self.at];
        match (self.peek(), self.unknown) {
            (Some(b'?'), _) => {
                self.at += 1;
                self.out.push('?');
            }
            (Some(b'+'), Unknown::Refused) => return Err(unsupported("a possessive quantifier")),
            // Without possession the expression matches more texts.
            (Some(b'+'), Unknown::Widened) => self.at += 1,
            _ => {}
        }
        self.can_repeat = false;
        Ok(())
    }

    /// Reads a group or flags; the parenthesis is read.
    fn open(&mut self) -> Result<(), String> {
        let rest = self.rest();
        let Some(kind) = rest.strip_prefix('?') else {
            if rest.starts_with('*') {
                return Err(unsupported("a verb (*…)"));
            }
            self.groups += 1;
            self.enter("(", 0);
            return Ok(());
        };
        if let Some((name, length)) = named(kind) {
            let group = format!("(?P<{name}>");
            self.groups += 1;
            self.enter(&group, 1 + length);
            return Ok(());
        }
        let flags = kind.find(|letter| !matches!(letter, 'i' | 's' | '-'));
        let (flags, end) = kind.split_at(flags.unwrap_or(kind.len()));
        self.has_any_dot |= flags.contains('s');
        let is_known = flags.matches('-').count() <= 1 && !flags.ends_with('-');
        if end.starts_with(':') && (is_known || flags.is_empty()) {
            let group = format!("(?{flags}:");
            self.enter(&group, 2 + flags.len());
            return Ok(());
        }
        if end.starts_with(')') && is_known && !flags.is_empty() {
            self.out += &format!("(?{flags})");
            self.at += 2 + flags.len();
            self.can_repeat = false;
            return Ok(());
        }
        match self.unknown {
            Unknown::Refused => Err(unsupported("look-around or another group (?…)")),
            Unknown::Widened => self.widen_group(),
        }
    }

    /// Writes the start of a group whose name or flags are `length` bytes long.
    fn enter(&mut self, group: &str, length: usize) {
        self.out += group;
        self.at += length;
        self.open.push(self.branch);
        self.branch = Branch {
            is_before_group: self.branch.is_before,
            is_in_other_branch: false,
            is_before: self.branch.is_before,
        };
        self.can_repeat = false;
    }

    /// Drops a look-around; turns an atomic group into a backtracking one.
    fn widen_group(&mut self) -> Result<(), String> {
        const LOOKS: [&str; 4] = ["?=", "?!", "?<=", "?<!"];
        let rest = self.rest();
        if rest.starts_with("?>") {
            self.enter("(?:", 2);
            return Ok(());
        }
        let is_look = LOOKS.iter().any(|look| rest.starts_with(look));
        let length = group_length(rest).filter(|_| is_look);
        let inside = length.map(|length| &rest[..length]);
        // Parentheses do not count in a quotation and in a comment.
        let length = inside.filter(|inside| !inside.contains("\\Q") && !inside.contains("(?#"));
        let length = length
            .map(str::len)
            .ok_or_else(|| unsupported("a group (?…)"))?;
        self.at += length + 1;
        self.put("(?:)")
    }
}

/// The name of a group and its length with brackets, given the text after the question mark.
fn named(kind: &str) -> Option<(&str, usize)> {
    const NAME_MAX: usize = 32;
    let (begin, end) = match kind {
        kind if kind.starts_with("P<") => (2, '>'),
        kind if kind.starts_with('<') => (1, '>'),
        kind if kind.starts_with('\'') => (1, '\''),
        _ => return None,
    };
    let (name, _) = kind[begin..].split_once(end)?;
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_name =
        name.bytes().all(is_part) && !name.starts_with(|first: char| first.is_ascii_digit());
    let is_name = is_name && (1..=NAME_MAX).contains(&name.len());
    is_name.then_some((name, begin + name.len() + 1))
}

enum Bounds {
    /// Number of bytes after the brace.
    Quantifier(usize),
    Literal,
    /// Versions of PCRE disagree.
    Unclear,
}

/// Meaning of a brace, given the text after it.
fn quantifier(rest: &str) -> Bounds {
    let Some((inside, _)) = rest.split_once('}') else {
        return Bounds::Literal;
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (low, high) = inside.split_once(',').unwrap_or((inside, ""));
    if is_number(low) && (high.is_empty() || is_number(high)) {
        return Bounds::Quantifier(inside.len() + 1);
    }
    let is_part = |byte: u8| byte.is_ascii_digit() || b", \t".contains(&byte);
    let has_digit = inside.bytes().any(|byte| byte.is_ascii_digit());
    match has_digit && inside.bytes().all(is_part) {
        true => Bounds::Unclear,
        false => Bounds::Literal,
    }
}
