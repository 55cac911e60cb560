//! Rules about Rust files: names, first lines, restricted code, and no leftovers.

use super::problem::Problem;
use crate::code;
use crate::tree::Tree;

/// File names without meaning.
const EMPTY_NAMES: [&str; 7] = [
    "common", "helper", "helpers", "misc", "shared", "util", "utils",
];

/// Markers of unfinished work. In two parts, so that this file does not match.
const LEFTOVER_MARKERS: [&str; 3] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];

/// Code that must not be committed.
const LEFTOVER_CODE: [&str; 3] = ["dbg!(", "todo!(", "unimplemented!("];

const READS_TIME: [&str; 4] = [
    "Instant::now",
    "SystemTime::now",
    "clock_gettime",
    "gettimeofday",
];

/// Files that may read the time: the engine's clock, and programs around the engine rather than on it.
const MAY_READ_TIME: [&str; 4] = [
    "crates/engine/src/clock.rs",
    "crates/bench/",
    "crates/cli/",
    "xtask/",
];

pub(crate) fn problems(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in tree.ending(".rs") {
        let source = Source {
            path,
            text,
            code: code::without_comments_and_literals(text),
        };
        source.check_name(&mut problems);
        source.check_first_line(&mut problems);
        source.check_unsafe(&mut problems);
        source.check_time(&mut problems);
        source.check_loose_ends(&mut problems);
        source.check_limits(&mut problems);
    }
    problems
}

struct Source<'tree> {
    path: &'tree str,
    text: &'tree str,
    /// Text without comments and the contents of literals; lines stay.
    code: String,
}

impl Source<'_> {
    fn check_name(&self, problems: &mut Vec<Problem>) {
        let names = self.path.trim_end_matches(".rs").split('/');
        for name in names.filter(|name| EMPTY_NAMES.contains(name)) {
            problems.push(self.problem(
                1,
                format!("{name:?} does not describe the content: name the file with one noun"),
            ));
        }
    }

    fn check_first_line(&self, problems: &mut Vec<Problem>) {
        if !self.text.starts_with("//! ") {
            problems.push(self.problem(1, "line 1 is not `//! ` with the purpose of the file"));
        }
    }

    /// Only the engine may use `unsafe`; every other crate forbids it at its root, and its tests must not use it
    /// either.
    fn check_unsafe(&self, problems: &mut Vec<Problem>) {
        if self.path.starts_with("crates/engine/") {
            return;
        }
        let is_root = ["src/lib.rs", "src/main.rs"]
            .iter()
            .any(|root| self.path.ends_with(root));
        if is_root
            && !self.path.starts_with("fuzz/")
            && !self.code.contains("#![forbid(unsafe_code)]")
        {
            problems.push(self.problem(1, "missing #![forbid(unsafe_code)]"));
        }
        for line in self.lines_with_word("unsafe") {
            problems.push(self.problem(line, "unsafe code outside the engine"));
        }
    }

    fn check_time(&self, problems: &mut Vec<Problem>) {
        let is_allowed = self.is_test()
            || MAY_READ_TIME
                .iter()
                .any(|place| self.path.starts_with(place));
        if is_allowed {
            return;
        }
        let before_tests = code::lines_before_tests(&self.code);
        for word in READS_TIME {
            for line in self
                .lines_with_word(word)
                .filter(|line| *line <= before_tests)
            {
                problems
                    .push(self.problem(line, format!("{word}: only engine::clock reads the time")));
            }
        }
    }

    fn check_loose_ends(&self, problems: &mut Vec<Problem>) {
        for word in LEFTOVER_MARKERS {
            let lines = lines_with(self.text, word);
            problems.extend(
                lines.map(|line| self.problem(line, format!("{word}: do it, or open an issue"))),
            );
        }
        for word in LEFTOVER_CODE {
            let lines = lines_with(&self.code, word);
            problems.extend(lines.map(|line| self.problem(line, format!("{word}…): remove it"))));
        }
    }

    /// Checks that every limit has a comment above it.
    fn check_limits(&self, problems: &mut Vec<Problem>) {
        if !self.path.ends_with("/limits.rs") {
            return;
        }
        let mut has_reason = false;
        for (at, line) in self.text.lines().enumerate() {
            let line = line.trim_start();
            let words = line
                .strip_prefix("pub")
                .map_or(line, |rest| rest.trim_start_matches("(crate)").trim_start());
            if words.starts_with("const ") && !words.starts_with("const fn") && !has_reason {
                problems.push(
                    self.problem(at + 1, "a limit without a comment above it with the reason"),
                );
            }
            has_reason = line.starts_with("//") || (has_reason && line.starts_with("#["));
        }
    }

    /// Whether the file is for tests, examples, benches or fuzzing.
    fn is_test(&self) -> bool {
        let folders = ["tests", "examples", "benches", "fuzz"];
        self.path.ends_with("/tests.rs") || self.path.split('/').any(|part| folders.contains(&part))
    }

    /// Lines, from 1, whose code contains the word; `unsafe_code` does not contain `unsafe`.
    fn lines_with_word<'here>(
        &'here self,
        word: &'here str,
    ) -> impl Iterator<Item = usize> + 'here {
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
        let has_word = move |line: &str| {
            line.match_indices(word).any(|(at, _)| {
                let (before, after) = (&line[..at], &line[at + word.len()..]);
                !before.ends_with(is_part) && !after.starts_with(is_part)
            })
        };
        self.code
            .lines()
            .enumerate()
            .filter(move |(_, line)| has_word(line))
            .map(|(at, _)| at + 1)
    }

    fn problem(&self, line: usize, message: impl Into<String>) -> Problem {
        Problem::new(self.path, line, message)
    }
}

/// Lines, from 1, that contain `part`.
fn lines_with<'text>(text: &'text str, part: &'text str) -> impl Iterator<Item = usize> + 'text {
    text.lines()
        .enumerate()
        .filter(move |(_, line)| line.contains(part))
        .map(|(at, _)| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the problems, as `line: message`, of one file, whose first line is added.
    #[track_caller]
    fn check(path: &str, rest: &str, expected: &[&str]) {
        let text = format!("//! A file.\n{rest}");
        let problems = problems(&Tree::of(&[(path, &text)]));
        let found: Vec<String> = problems
            .iter()
            .map(|problem| format!("{}: {}", problem.line, problem.message))
            .collect();
        assert_eq!(found, expected, "of {path}\n{rest}");
    }

    #[test]
    fn first_line_is_module_doc() {
        let tree = Tree::of(&[("crates/http/src/a.rs", "fn a() {}\n")]);
        let expected = Problem::new(
            "crates/http/src/a.rs",
            1,
            "line 1 is not `//! ` with the purpose of the file",
        );
        assert_eq!(problems(&tree), [expected]);
    }

    #[test]
    fn meaningless_file_names_are_problems() {
        check(
            "crates/http/src/utils.rs",
            "",
            &["1: \"utils\" does not describe the content: name the file with one noun"],
        );
        check(
            "tests/common/mod.rs",
            "",
            &["1: \"common\" does not describe the content: name the file with one noun"],
        );
        check("crates/http/src/utilisation.rs", "", &[]);
    }

    #[test]
    fn unsafe_is_allowed_only_in_engine() {
        check("crates/engine/src/a.rs", "unsafe { x() }", &[]);
        check(
            "crates/http/src/a.rs",
            "unsafe { x() }",
            &["2: unsafe code outside the engine"],
        );
        check(
            "crates/http/src/a.rs",
            "// unsafe\nlet unsafe_code = \"unsafe\";",
            &[],
        );
        check(
            "crates/http/src/lib.rs",
            "",
            &["1: missing #![forbid(unsafe_code)]"],
        );
        check("crates/http/src/lib.rs", "#![forbid(unsafe_code)]", &[]);
        check(
            "crates/http/src/lib.rs",
            "// #![forbid(unsafe_code)]",
            &["1: missing #![forbid(unsafe_code)]"],
        );
    }

    #[test]
    fn time_is_read_only_through_engine_clock() {
        let reads = "let t = std::time::Instant::now();";
        check(
            "crates/serve/src/a.rs",
            reads,
            &["2: Instant::now: only engine::clock reads the time"],
        );
        check(
            "crates/serve/src/a.rs",
            &format!("#[cfg(test)]\nmod tests {{\n{reads}\n}}"),
            &[],
        );
        check("crates/serve/src/a.rs", "// Instant::now", &[]);
        for path in [
            "crates/engine/src/clock.rs",
            "crates/bench/src/run.rs",
            "crates/serve/tests/a.rs",
        ] {
            check(path, reads, &[]);
        }
    }

    #[test]
    fn todo_markers_are_problems() {
        let [first, second, _] = LEFTOVER_MARKERS;
        check(
            "tests/a.rs",
            &format!("// {first}"),
            &[&format!("2: {first}: do it, or open an issue")],
        );
        check(
            "tests/a.rs",
            &format!("// {second}: x"),
            &[&format!("2: {second}: do it, or open an issue")],
        );
        check("tests/a.rs", "dbg!(x);", &["2: dbg!(…): remove it"]);
        check("tests/a.rs", "// dbg!(x);", &[]);
    }

    #[test]
    fn limits_require_a_reason() {
        let limits =
            "/// Why.\n#[rustfmt::skip]\npub const A: u8 = 1;\npub(crate) const B: u8 = 2;\n";
        check(
            "crates/http/src/limits.rs",
            limits,
            &["5: a limit without a comment above it with the reason"],
        );
        check("crates/http/src/other.rs", limits, &[]);
    }
}
