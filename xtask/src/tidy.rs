//! The rules of STYLE.md and ARCHITECTURE.md that a program can check; the rest is for readers.
//! Pure: files in, problems out.

mod crates;
mod documents;
mod sources;

use std::fmt;

use crate::tree::Tree;

/// A rule broken at a place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Problem {
    path: String,
    /// From 1.
    line: usize,
    message: String,
}

impl Problem {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Problem {
        Problem {
            path: path.to_owned(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Everything that is not as the rules say, in the order of paths and lines.
pub(crate) fn problems(tree: &Tree) -> Vec<Problem> {
    let mut problems = [
        crates::problems(tree),
        sources::problems(tree),
        documents::problems(tree),
    ]
    .concat();
    problems.sort();
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        let tree = Tree::read(&crate::tree::root()).expect("the repository can be read");
        let problems: Vec<String> = problems(&tree).iter().map(Problem::to_string).collect();
        assert!(problems.is_empty(), "\n{}", problems.join("\n"));
    }
}
