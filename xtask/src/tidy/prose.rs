//! A rule about language: few lines of comments, documents and messages may have a construction that reads as translated.
//!
//! A marked line may still be right, so the rule limits the share of marked lines and does not forbid them.

mod construction;
mod passage;

use std::cmp::Reverse;
use std::fmt::Write;

use self::construction::{CONSTRUCTIONS, Construction};
use self::passage::{Kind, Passage, passages};
pub(crate) use self::passage::{MESSAGE_WORDS_MIN, is_code, words};
use super::problem::Problem;
use crate::tree::Tree;

/// Maximum marked lines per 1,000 lines of a kind. Well-kept projects have 3 to 14. The limits are a little above the present
/// shares.
const LIMITS: [(Kind, usize); 3] = [(Kind::Comment, 8), (Kind::Document, 5), (Kind::Message, 6)];

/// Maximum number of lines printed for a kind that is above its limit.
const WORST_LINES_MAX: usize = 20;

/// Maximum number of letters printed of a line: paragraphs and cells of tables may be long.
const LETTERS_MAX: usize = 150;

const OWN_PATH: &str = "xtask/src/tidy/prose.rs";

pub(crate) fn problems(tree: &Tree) -> Vec<Problem> {
    compared(&tallies(tree, LIMITS))
}

/// For each kind above its limit the share, and the lines with the most constructions.
fn compared(tallies: &[Tally]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for tally in tallies.iter().filter(|tally| tally.is_above_limit()) {
        let summary = format!("{}; reword the lines listed", tally.summary());
        problems.push(Problem::new(OWN_PATH, 1, summary));
        let mut worst = Vec::from_iter(&tally.marked);
        worst.sort_by_key(|(_, constructions)| Reverse(constructions.len()));
        let worst = worst.into_iter().take(WORST_LINES_MAX);
        problems.extend(worst.map(|(passage, constructions)| {
            let names: Vec<&str> = constructions.iter().map(|known| &*known.name).collect();
            let text: String = passage.text.chars().take(LETTERS_MAX).collect();
            let message = format!("{}: {text}", names.join(", "));
            Problem::new(passage.path, passage.line, message)
        }));
    }
    problems
}

pub(crate) fn figures(tree: &Tree) -> String {
    listed(&tallies(tree, LIMITS))
}

/// One line per kind: its share, and the number of lines with each construction.
fn listed(tallies: &[Tally]) -> String {
    let mut out = String::new();
    for tally in tallies {
        write!(out, "{}", tally.summary()).expect("it is a string");
        let mut counts: Vec<(usize, &str)> = CONSTRUCTIONS
            .iter()
            .map(|known| (tally.count(known), &*known.name))
            .collect();
        counts.sort_by_key(|(count, _)| Reverse(*count));
        for (count, name) in counts {
            write!(out, "; {name} {count}").expect("it is a string");
        }
        out.push('\n');
    }
    out
}

fn tallies(tree: &Tree, limits: [(Kind, usize); 3]) -> [Tally<'_>; 3] {
    let mut tallies = limits.map(|(kind, limit)| Tally {
        kind,
        limit,
        lines: 0,
        marked: Vec::new(),
    });
    for passage in passages(tree) {
        let mut of_kind = tallies.iter_mut();
        let tally = of_kind.find(|tally| tally.kind == passage.kind);
        tally.expect("every kind has a limit").add(passage);
    }
    tallies
}

/// Passages of one kind.
struct Tally<'tree> {
    kind: Kind,
    /// Marked lines per 1,000.
    limit: usize,
    lines: usize,
    marked: Vec<(Passage<'tree>, Vec<&'static Construction>)>,
}

impl<'tree> Tally<'tree> {
    fn add(&mut self, passage: Passage<'tree>) {
        self.lines += 1;
        let found = CONSTRUCTIONS
            .iter()
            .filter(|known| known.is_in(passage.text));
        let found: Vec<&Construction> = found.collect();
        if !found.is_empty() {
            self.marked.push((passage, found));
        }
    }

    fn is_above_limit(&self) -> bool {
        self.marked.len() * 1000 > self.limit * self.lines
    }

    /// Lines with this construction.
    fn count(&self, construction: &Construction) -> usize {
        let constructions = self.marked.iter().flat_map(|(_, found)| found);
        constructions
            .filter(|found| found.name == construction.name)
            .count()
    }

    fn summary(&self) -> String {
        let (name, lines, marked) = (self.kind.name(), self.lines, self.marked.len());
        let share = 100.0 * marked as f64 / lines.max(1) as f64;
        let limit = self.limit as f64 / 10.0;
        format!("{name}: {marked} of {lines} lines marked, {share:.2} % (limit {limit:.1} %)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: [(Kind, usize); 3] = [
        (Kind::Comment, 500),
        (Kind::Document, 0),
        (Kind::Message, 0),
    ];

    /// Asserts that exactly the `expected` problems are found in `files`.
    #[track_caller]
    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let tree = Tree::of(files);
        let problems = compared(&tallies(&tree, LIMITS));
        let found: Vec<String> = problems.iter().map(Problem::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn share_above_limit_is_reported_with_its_lines() {
        let source = "//! The pool.\n// Whose turn it is.\n// What comes of it.\nf();\n";
        check(
            &[("src/a.rs", source)],
            &[
                "xtask/src/tidy/prose.rs:1: comments: 2 of 3 lines marked, 66.67 % (limit 50.0 %); reword the lines listed",
                "src/a.rs:3: noun clause for a noun, old or odd word: What comes of it.",
                "src/a.rs:2: noun clause for a noun: Whose turn it is.",
            ],
        );
    }

    #[test]
    fn share_at_limit_is_allowed() {
        let source = "//! The pool.\n// Whose turn it is.\n";
        check(&[("src/a.rs", source)], &[]);
    }

    #[test]
    fn each_kind_has_its_own_limit() {
        let source =
            "//! The pool.\nfn f() { g(\"it is no file name\", \"the file is said to be\") }\n";
        check(
            &[("src/a.rs", source), ("a.md", "a plain line\n")],
            &[
                "xtask/src/tidy/prose.rs:1: messages: 1 of 2 lines marked, 50.00 % (limit 0.0 %); reword the lines listed",
                "src/a.rs:2: say/tell for report: the file is said to be",
            ],
        );
    }

    #[test]
    fn report_has_line_per_kind() {
        let tree = Tree::of(&[("a.md", "behind the body\n")]);
        let figures = listed(&tallies(&tree, LIMITS));
        let lines: Vec<&str> = figures.lines().collect();
        assert_eq!(lines.len(), 3, "{figures}");
        assert!(
            lines[1].starts_with(
                "documents: 1 of 1 lines marked, 100.00 % (limit 0.0 %); 'behind' for after 1; "
            ),
            "{figures}"
        );
    }
}
