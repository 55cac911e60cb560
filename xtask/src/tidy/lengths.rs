//! A rule about the length of files. Older exceptions are listed here with their lines, and may only shrink.

use super::problem::Problem;
use crate::code;
use crate::syntax::Syntax;
use crate::tree::Tree;

/// Maximum lines of a file before its tests.
const LINES_MAX: usize = 400;

/// Longer files, with their lines.
const STATED: &[(&str, usize)] = &[];

const OWN_PATH: &str = "xtask/src/tidy/lengths.rs";

pub(crate) fn problems(tree: &Tree, syntax: &Syntax) -> Vec<Problem> {
    compared(tree, syntax, STATED)
}

/// Files longer than allowed, and numbers listed too large.
fn compared(tree: &Tree, syntax: &Syntax, stated: &[(&str, usize)]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, _) in syntax.files() {
        let of_file = stated.iter().find(|(stated, _)| *stated == path);
        let limit = of_file.map_or(LINES_MAX, |(_, limit)| *limit);
        let lines = lines(tree, path);
        if lines > limit {
            let said = format!("{lines} lines before its tests (limit {limit})");
            problems.push(Problem::new(path, 1, said));
        }
    }
    for (path, limit) in stated {
        let lines = lines(tree, path);
        let what_to_do = match lines {
            ..=LINES_MAX => "remove it",
            lines if lines < *limit => "lower the number",
            _ => continue,
        };
        let said = format!("{path} has a limit of {limit} lines and {lines} lines: {what_to_do}");
        problems.push(Problem::new(OWN_PATH, 1, said));
    }
    problems
}

/// Lines before the tests of a file; 0 if it does not exist.
fn lines(tree: &Tree, path: &str) -> usize {
    let text = tree.file(path).map_or("", |(_, text)| text);
    code::lines_before_tests(&code::without_comments_and_literals(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/http/src/lib.rs";

    /// Checks the problems reported for a root file of the crate `http` that is listed with this many lines, or not at
    /// all.
    #[track_caller]
    fn check(text: &str, stated: Option<usize>, expected: &[&str]) {
        let tree = Tree::of(&[(PATH, text)]);
        let stated: Vec<(&str, usize)> = stated.map(|lines| (PATH, lines)).into_iter().collect();
        let problems = compared(&tree, &Syntax::parse(&tree), &stated);
        let found: Vec<String> = problems.iter().map(Problem::to_string).collect();
        assert_eq!(found, expected, "of {} lines", text.lines().count());
    }

    #[test]
    fn file_has_at_most_400_lines_before_tests() {
        let lines = |count: usize| "// x\n".repeat(count);
        check(&lines(400), None, &[]);
        check(
            &lines(401),
            None,
            &["crates/http/src/lib.rs:1: 401 lines before its tests (limit 400)"],
        );
        let with_tests = format!("{}#[cfg(test)]\nmod tests {{\n{}}}", lines(400), lines(9));
        check(&with_tests, None, &[]);
        let with_support = format!("#[cfg(test)]\nmod support;\n{}", lines(399));
        check(
            &with_support,
            None,
            &["crates/http/src/lib.rs:1: 401 lines before its tests (limit 400)"],
        );
    }

    #[test]
    fn listed_file_length_must_match() {
        let lines = |count: usize| "// x\n".repeat(count);
        check(&lines(500), Some(500), &[]);
        check(
            &lines(501),
            Some(500),
            &["crates/http/src/lib.rs:1: 501 lines before its tests (limit 500)"],
        );
        check(
            &lines(499),
            Some(500),
            &[
                "xtask/src/tidy/lengths.rs:1: crates/http/src/lib.rs has a limit of 500 lines and 499 lines: lower the number",
            ],
        );
        check(
            &lines(400),
            Some(500),
            &[
                "xtask/src/tidy/lengths.rs:1: crates/http/src/lib.rs has a limit of 500 lines and 400 lines: remove it",
            ],
        );
    }
}
