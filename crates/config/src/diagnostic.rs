//! Errors and warnings about a configuration, with file, line, column and an excerpt of the line.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::limits;
use crate::sources::{Sources, floor_boundary};

pub use crate::sources::Span;

/// An error or warning and its place. Displayed in the style of a compiler:
///
/// ```text
/// onrush.toml:12:1: unknown key "forwrad" in [[route]]; nearest: "forward"
///    12 | forwrad = "app"
///       | ^^^^^^^
/// ```
///
/// The alternate form (`{:#}`) omits the excerpt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// Path of the file as the user named it.
    pub path: PathBuf,
    /// Line, from 1.
    pub line: usize,
    /// Character in the line, from 1.
    pub column: usize,
    /// One sentence: what is wrong and what was expected.
    pub message: String,
    excerpt: Excerpt,
}

/// Severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The configuration cannot be used.
    Error,
    /// The configuration can be used, but is probably not what was meant.
    Warning,
}

/// Part of the line to show and part of it to underline, in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Excerpt {
    text: String,
    blank: usize,
    underlined: usize,
}

/// Maximum number of characters shown of a line; more would wrap.
const EXCERPT_MAX: usize = 120;
/// Number of characters shown before the diagnostic if the line is longer than that.
const EXCERPT_BEFORE: usize = 40;

impl Diagnostic {
    fn new(finding: PendingDiagnostic, sources: &Sources) -> Diagnostic {
        let source = sources.file(&finding.span);
        let (text, span) = (source.text(), source.to_file_range(&finding.span));
        let start = floor_boundary(text, span.start);
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[start..]
            .find('\n')
            .map_or(text.len(), |newline| start + newline);
        let end = floor_boundary(text, span.end).clamp(start, line_end);
        let before = text[line_start..start].chars().count();
        let length = text[start..end].chars().count();
        Diagnostic {
            severity: finding.severity,
            path: source.path().to_owned(),
            line: sources.line(&finding.span),
            column: before + 1,
            message: finding.message,
            excerpt: Excerpt::of(&text[line_start..line_end], before, length),
        }
    }
}

impl Excerpt {
    /// Excerpt of a line with the diagnostic after `before` characters; it is `length` characters long.
    fn of(line: &str, before: usize, length: usize) -> Excerpt {
        let skipped = if line.chars().count() > EXCERPT_MAX {
            before.saturating_sub(EXCERPT_BEFORE)
        } else {
            0
        };
        // Control characters could change the terminal. A tab counts as one character, so it becomes one space.
        let printable = |letter: char| if letter.is_control() { ' ' } else { letter };
        let text: String = line
            .chars()
            .skip(skipped)
            .take(EXCERPT_MAX)
            .map(printable)
            .collect();
        let text = text.trim_end().to_owned();
        let blank = before - skipped;
        let underlined = length
            .min(text.chars().count().saturating_sub(blank))
            .max(1);
        Excerpt {
            text,
            blank,
            underlined,
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "",
            Severity::Warning => "warning: ",
        };
        write!(
            out,
            "{}:{}:{}: {severity}{}",
            self.path.display(),
            self.line,
            self.column,
            self.message
        )?;
        // The short form is for logs, which others may read: a line of the file may contain a secret.
        if out.alternate() {
            return Ok(());
        }
        let Excerpt {
            text,
            blank,
            underlined,
        } = &self.excerpt;
        write!(out, "\n{:>5} | {text}\n", self.line)?;
        write!(out, "      | {:blank$}{:^<underlined$}", "", "")
    }
}

/// All errors of a configuration in the order of the text; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errors {
    listed: Vec<Diagnostic>,
    more: usize,
}

impl Errors {
    /// The errors, at most [`limits::DIAGNOSTICS_MAX`].
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.listed.iter()
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, finding) in self.listed.iter().enumerate() {
            let end = if at == 0 { "" } else { "\n" };
            match out.alternate() {
                true => write!(out, "{end}{finding:#}")?,
                false => write!(out, "{end}{finding}")?,
            }
        }
        match self.more {
            0 => Ok(()),
            more => write!(out, "\nand {more} more"),
        }
    }
}

impl std::error::Error for Errors {}

/// A diagnostic that has not been rendered.
#[derive(Debug)]
struct PendingDiagnostic {
    severity: Severity,
    span: Span,
    message: String,
}

/// Collects diagnostics while a configuration is read, and later diagnostics of the files that it names (see
/// [`FilePath::place`](crate::plan::FilePath::place)).
pub struct Diagnostics<'s> {
    sources: &'s Sources,
    errors: BoundedFindings,
    warnings: BoundedFindings,
}

/// First diagnostics of one severity in the order of the text, with a bounded number kept.
#[derive(Default)]
struct BoundedFindings {
    /// Unordered; up to twice as many as are shown.
    found: Vec<PendingDiagnostic>,
    /// Total number, including the dropped ones.
    count: usize,
    /// Diagnostics beyond this position are not shown.
    end: Option<usize>,
}

impl BoundedFindings {
    /// Counts a diagnostic; builds the message only if it may be shown.
    fn push(&mut self, severity: Severity, span: Span, message: impl FnOnce() -> String) {
        self.count += 1;
        if self.end.is_some_and(|end| span.start > end) {
            return;
        }
        self.found.push(PendingDiagnostic {
            severity,
            span,
            message: message(),
        });
        if self.found.len() >= 2 * limits::DIAGNOSTICS_MAX {
            self.cut();
            self.end = self.found.last().map(|finding| finding.span.start);
        }
    }

    /// Sorts by position and drops hidden diagnostics. The sort is stable.
    fn cut(&mut self) {
        self.found.sort_by_key(|finding| finding.span.start);
        self.found.truncate(limits::DIAGNOSTICS_MAX);
    }
}

impl<'s> Diagnostics<'s> {
    /// Creates an empty collection.
    pub fn new(sources: &'s Sources) -> Diagnostics<'s> {
        Diagnostics {
            sources,
            errors: BoundedFindings::default(),
            warnings: BoundedFindings::default(),
        }
    }

    /// Adds an error.
    pub fn error(&mut self, span: Span, message: impl Into<String>) {
        self.error_with(span, || message.into());
    }

    /// Like [`Findings::error`], but the message is built only if it may be shown: there may be a million.
    pub(crate) fn error_with(&mut self, span: Span, message: impl FnOnce() -> String) {
        let fitting = || fit_one_line(&message());
        self.errors.push(Severity::Error, span, fitting);
    }

    /// Adds a warning.
    pub fn warning(&mut self, span: Span, message: impl Into<String>) {
        let fitting = || fit_one_line(&message.into());
        self.warnings.push(Severity::Warning, span, fitting);
    }

    /// Resolves `path`, which is written at `span`, against the directory of its file, not the working directory.
    pub(crate) fn resolve(&self, path: &Path, span: &Span) -> PathBuf {
        self.sources.file(span).directory().join(path)
    }

    pub(crate) fn errors(&self) -> usize {
        self.errors.count
    }

    /// Line where a span begins, from 1; with the file if there are several: `3 of conf.d/a.toml`.
    pub(crate) fn line_of(&self, span: &Span) -> String {
        let line = self.sources.line(span);
        match self.sources.has_several_files() {
            true => format!("{line} of {}", self.sources.file(span).path().display()),
            false => line.to_string(),
        }
    }

    /// Returns the warnings, in the order of the text and at most [`limits::DIAGNOSTICS_MAX`].
    ///
    /// # Errors
    /// If there are errors; the warnings are then omitted.
    pub fn finish(self) -> Result<Vec<Diagnostic>, Errors> {
        let (severity, mut kept) = match self.errors.count {
            0 => (Severity::Warning, self.warnings),
            _ => (Severity::Error, self.errors),
        };
        kept.cut();
        let more = kept.count - kept.found.len();
        let listed = kept.found.into_iter();
        let listed = listed
            .map(|finding| Diagnostic::new(finding, self.sources))
            .collect();
        match severity {
            Severity::Error => Err(Errors { listed, more }),
            Severity::Warning => Ok(listed),
        }
    }
}

/// Maximum number of characters of a quoted value in a message.
const QUOTED_MAX: usize = 120;

/// Makes a message fit one line: replaces control characters and shortens quoted values, which come from the file and
/// may be of any length.
///
/// A quoted value is the output of `{:?}`: it ends at the next quotation mark without a backslash.
pub(crate) fn fit_one_line(message: &str) -> String {
    let mut fitting = String::with_capacity(message.len().min(1024));
    let (mut is_quoted, mut is_escaped, mut length) = (false, false, 0);
    for letter in message.chars() {
        let is_mark = letter == '"' && !is_escaped;
        is_escaped = is_quoted && letter == '\\' && !is_escaped;
        if is_mark {
            is_quoted = !is_quoted;
            length = 0;
        }
        length += usize::from(is_quoted);
        if !is_quoted || length <= QUOTED_MAX {
            fitting.push(if letter.is_control() { ' ' } else { letter });
        } else if length == QUOTED_MAX + 1 {
            fitting.push('…');
        }
    }
    fitting
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, span: Span) -> String {
        let sources = Sources::of(text.to_owned(), "a.toml".into());
        let mut findings = Diagnostics::new(&sources);
        findings.error(span, "wrong");
        findings
            .finish()
            .expect_err("an error was found")
            .to_string()
    }

    #[test]
    fn excerpt_is_underlined() {
        assert_eq!(
            shown("a = 1\nbc = 22\n", 11..13),
            "a.toml:2:6: wrong\n    2 | bc = 22\n      |      ^^"
        );
    }

    #[test]
    fn columns_count_characters_not_bytes() {
        assert_eq!(
            shown("\"ü\" = 2", 7..8),
            "a.toml:1:7: wrong\n    1 | \"ü\" = 2\n      |       ^"
        );
    }

    #[test]
    fn multi_line_span_is_underlined_on_first_line() {
        assert_eq!(
            shown("a = [\n1]", 4..8),
            "a.toml:1:5: wrong\n    1 | a = [\n      |     ^"
        );
    }

    #[test]
    fn diagnostic_at_end_of_file_has_position() {
        assert_eq!(shown("", 0..0), "a.toml:1:1: wrong\n    1 | \n      | ^");
        assert_eq!(
            shown("a\n", 9..12),
            "a.toml:2:1: wrong\n    2 | \n      | ^"
        );
    }

    #[test]
    fn long_lines_are_truncated_and_control_chars_blanked() {
        let text = format!("\u{1b}[31m{}X{}\r", "a".repeat(500), "b".repeat(500));
        let shown = shown(&text, 505..506);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[0], "a.toml:1:506: wrong");
        assert_eq!(
            lines[1],
            format!("    1 | {}X{}", "a".repeat(40), "b".repeat(79))
        );
        assert_eq!(lines[2].find('^'), lines[1].find('X'));
        assert!(!self::shown("\u{1b}[31m", 0..1).contains('\u{1b}'));
    }

    #[test]
    fn errors_are_sorted_and_limited() {
        let text = "x\n".repeat(100);
        let sources = Sources::of(text, "a".into());
        let mut findings = Diagnostics::new(&sources);
        for line in (0..60).rev() {
            findings.error(line * 2..line * 2 + 1, format!("no {line}"));
            findings.warning(0..0, "not seen while there are errors");
        }
        let errors = findings.finish().expect_err("errors were found");
        assert_eq!(errors.iter().count(), 50);
        assert!(errors.to_string().starts_with("a:1:1: no 0\n"));
        assert!(errors.to_string().ends_with("\nand 10 more"));
    }

    #[test]
    fn million_errors_use_bounded_memory() {
        let text = "x\n".repeat(1000);
        let sources = Sources::of(text, "a".into());
        let mut findings = Diagnostics::new(&sources);
        let mut made = 0;
        for at in 0..1_000_000 {
            findings.error_with(at..at + 1, || {
                made += 1;
                format!("no {at}")
            });
        }
        assert_eq!(made, 2 * limits::DIAGNOSTICS_MAX);
        assert!(findings.errors.found.len() <= 2 * limits::DIAGNOSTICS_MAX);
        let errors = findings.finish().expect_err("errors were found");
        assert_eq!(errors.iter().count(), limits::DIAGNOSTICS_MAX);
        assert!(errors.to_string().ends_with("\nand 999950 more"));
    }

    #[test]
    fn long_quoted_values_are_truncated() {
        let long = format!("\\\"{}", "x".repeat(1_000_000));
        let message = fit_one_line(&format!(
            "unknown key {long:?} in {:?}; nearest: \"a\"",
            "b\u{1b}"
        ));
        let start = r#"unknown key "\\\"xxx"#;
        assert!(message.starts_with(start), "{message}");
        let end = r#"xxx…" in "b\u{1b}"; nearest: "a""#;
        assert!(message.ends_with(end), "{message}");
        assert!(message.chars().count() < 200, "{message}");
        assert_eq!(fit_one_line("it isn't \"a\" or b"), "it isn't \"a\" or b");
    }

    #[test]
    fn lines_are_counted_from_one() {
        let mut sources = Sources::of("a\nb\n\nc".to_owned(), "a".into());
        let lines = |sources: &Sources, places: [usize; 7]| {
            let findings = Diagnostics::new(sources);
            places.map(|at| findings.line_of(&(at..at)))
        };
        let found = lines(&sources, [0, 1, 2, 3, 4, 5, 99]);
        assert_eq!(found, ["1", "1", "2", "2", "3", "4", "4"]);
        sources.push("d/b".into(), "x\ny".to_owned());
        let found = lines(&sources, [0, 2, 5, 6, 7, 8, 99]);
        assert_eq!(
            found,
            [
                "1 of a", "2 of a", "4 of a", "4 of a", "1 of d/b", "1 of d/b", "2 of d/b"
            ]
        );
    }
}
