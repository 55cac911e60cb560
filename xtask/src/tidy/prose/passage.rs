//! Lines and string literals that people read: comments, documents and messages.

use std::sync::LazyLock;

use regex::Regex;

use crate::code;
use crate::tables::BEGIN as RESULTS_BEGIN;
use crate::tree::Tree;

/// A line of a comment or a document, or a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Passage<'tree> {
    pub(super) kind: Kind,
    pub(super) path: &'tree str,
    /// From 1.
    pub(super) line: usize,
    pub(super) text: &'tree str,
}

/// Kind of a passage; each has its own limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A line of a comment in Rust, tests included.
    Comment,
    /// A line of a document outside code blocks and tables of results.
    Document,
    /// A string literal of three words or more in Rust outside tests.
    Message,
}

impl Kind {
    /// Plural, for figures.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Comment => "comments",
            Kind::Document => "documents",
            Kind::Message => "messages",
        }
    }
}

/// Words that a string literal needs to be a message.
pub(crate) const MESSAGE_WORDS_MIN: usize = 3;

/// A string literal that ends on its line. Longer ones are not read.
static LITERAL: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#""((?:[^"\\]|\\.)*)""#).expect("a valid pattern"));

/// Passages of all sources and documents, except results of runs.
pub(super) fn passages(tree: &Tree) -> Vec<Passage<'_>> {
    let mut passages = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| !path.starts_with("runs/")) {
        if path.ends_with(".md") {
            read_document(path, text, &mut passages);
        } else if path.ends_with(".rs") {
            read_source(path, text, &mut passages);
        }
    }
    passages
}

fn read_document<'tree>(path: &'tree str, text: &'tree str, passages: &mut Vec<Passage<'tree>>) {
    let mut in_code = false;
    let mut in_results = false;
    for (line, text) in (1..).zip(text.lines()) {
        let content = text.trim_start();
        if content.starts_with("```") {
            in_code = !in_code;
        } else if content.starts_with("<!--") {
            in_results = text.starts_with(RESULTS_BEGIN);
        } else if !in_code && !in_results && has_words(text) {
            let is_mark = |letter: char| {
                letter.is_whitespace() || letter.is_ascii_digit() || ">*#|.-".contains(letter)
            };
            passages.push(Passage {
                kind: Kind::Document,
                path,
                line,
                text: text.trim_start_matches(is_mark),
            });
        }
    }
}

fn read_source<'tree>(path: &'tree str, text: &'tree str, passages: &mut Vec<Passage<'tree>>) {
    let before_tests = match is_test(path) {
        true => 0,
        false => code::lines_before_tests(&code::without_comments_and_literals(text)),
    };
    for (line, text) in (1..).zip(text.lines()) {
        if let Some(comment) = comment(text) {
            if has_words(comment) {
                passages.push(Passage {
                    kind: Kind::Comment,
                    path,
                    line,
                    text: comment,
                });
            }
        } else if line <= before_tests {
            let literals = LITERAL.captures_iter(text).map(|found| found.extract());
            let messages = literals.filter(|(_, [content])| is_message(content));
            passages.extend(messages.map(|(_, [text])| Passage {
                kind: Kind::Message,
                path,
                line,
                text,
            }));
        }
    }
}

/// Whether the whole file is for tests.
fn is_test(path: &str) -> bool {
    path.starts_with("tests/") || path.contains("/tests/") || path.ends_with("tests.rs")
}

/// Text of a line that is a comment.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?;
    Some(text.strip_prefix(['/', '!']).unwrap_or(text).trim())
}

/// Whether there are two words, and not only code or figures.
fn has_words(text: &str) -> bool {
    text.as_bytes().windows(3).any(|window| {
        window[0].is_ascii_lowercase() && window[1] == b' ' && window[2].is_ascii_lowercase()
    })
}

/// Whether the content of a literal is a sentence: three words, and neither code nor an address.
fn is_message(content: &str) -> bool {
    words(content) >= MESSAGE_WORDS_MIN
        && !is_code(content)
        && !["http://", "https://"]
            .iter()
            .any(|part| content.contains(part))
}

/// Words of a string that end with two letters.
pub(crate) fn words(content: &str) -> usize {
    let is_word = |word: &&str| {
        let mut letters = word.bytes().rev().take(2);
        word.len() >= 2 && letters.all(|letter| letter.is_ascii_alphabetic())
    };
    content.split(' ').filter(is_word).count()
}

/// Whether a string contains operators, or sections of a configuration.
pub(crate) fn is_code(content: &str) -> bool {
    let is_operator = |pair: &[u8]| pair.iter().all(|letter| b"<>;=".contains(letter));
    content.as_bytes().windows(2).any(is_operator) || content.contains("\\n[")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the passages, as `line: text`, of one file; all have the same kind.
    #[track_caller]
    fn check(path: &str, text: &str, kind: Kind, expected: &[&str]) {
        let tree = Tree::of(&[(path, text)]);
        let found: Vec<String> = passages(&tree)
            .iter()
            .inspect(|passage| assert_eq!(passage.kind, kind, "{passage:?}"))
            .map(|passage| format!("{}: {}", passage.line, passage.text))
            .collect();
        assert_eq!(found, expected, "of {path}\n{text}");
    }

    #[test]
    fn comment_lines_with_words_are_read() {
        let text = "//! The pool.\nfn f() {\n    // x = 1\n    /// in the body\n    g(); // after code\n}\n";
        let tests = "#[cfg(test)]\nmod tests {\n    // in a test\n}\n";
        let text = format!("{text}{tests}");
        check(
            "crates/a/src/lib.rs",
            &text,
            Kind::Comment,
            &["1: The pool.", "4: in the body", "9: in a test"],
        );
    }

    #[test]
    fn document_lines_outside_code_are_read() {
        let text = "# The title\n\n> - 1. a quoted list\n```text\nin a block\n```\n| a cell | b |\n| 1 |\n";
        let expected = ["1: The title", "3: a quoted list", "7: a cell | b |"];
        check("docs/a.md", text, Kind::Document, &expected);
    }

    #[test]
    fn result_directories_are_not_read() {
        let table = "<!-- table: runs/a/summary.md -->\n| a measured row |\n<!-- end of table -->\nafter the table\n";
        check("README.md", table, Kind::Document, &["4: after the table"]);
        check(
            "runs/a/README.md",
            "what was measured\n",
            Kind::Document,
            &[],
        );
    }

    #[test]
    fn messages_have_three_words() {
        let text = r#"
f("cannot bind {address}: {error}", "two words", "no such \"file\" here");
f("a <<= b and more words", "see https://example.com for more on it", "x y z w");
"#;
        check(
            "crates/a/src/lib.rs",
            text,
            Kind::Message,
            &["2: no such \\\"file\\\" here"],
        );
    }

    #[test]
    fn messages_of_tests_are_not_read() {
        let message = "f(\"the server has stopped\");\n";
        let expected = ["1: the server has stopped"];
        check("crates/a/src/lib.rs", message, Kind::Message, &expected);
        let in_tests = format!("{message}#[cfg(test)]\nmod tests {{\n{message}}}\n");
        check("crates/a/src/lib.rs", &in_tests, Kind::Message, &expected);
        for path in [
            "tests/a.rs",
            "crates/a/tests/all/b.rs",
            "crates/a/src/b/tests.rs",
        ] {
            check(path, message, Kind::Message, &[]);
        }
    }
}
