//! The rules of STYLE.md and ARCHITECTURE.md that a program can check. Pure: files in, problems out.

mod crates;
mod cycles;
mod documents;
mod functions;
mod lengths;
mod prose;
mod rooms;
mod sources;

mod problem;

use self::problem::Problem;
pub(crate) use self::prose::{MESSAGE_WORDS_MIN, is_code, words};
use crate::syntax::Syntax;
use crate::tree::Tree;

/// All violations, sorted by path and line.
pub(crate) fn problems(tree: &Tree) -> Vec<Problem> {
    let syntax = Syntax::parse(tree);
    let mut problems = [
        crates::problems(tree),
        cycles::problems(&syntax),
        functions::problems(&syntax),
        lengths::problems(tree, &syntax),
        rooms::problems(tree, &syntax),
        sources::problems(tree),
        documents::problems(tree),
        prose::problems(tree),
    ]
    .concat();
    problems.sort();
    problems
}

/// Measured figures of each crate, and of comments, documents and messages.
pub(crate) fn figures(tree: &Tree) -> String {
    let rooms = rooms::figures(tree, &Syntax::parse(tree));
    format!("{rooms}\n{}", prose::figures(tree))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repository_is_tidy() {
        let tree = Tree::read(&crate::tree::root()).expect("the repository can be read");
        let problems: Vec<String> = problems(&tree).iter().map(Problem::to_string).collect();
        assert!(problems.is_empty(), "\n{}", problems.join("\n"));
    }
}
