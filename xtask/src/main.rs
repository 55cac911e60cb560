//! Automation of the repository, in Rust: `cargo xtask tidy`.
#![forbid(unsafe_code)]

mod tidy;

mod code;
mod modules;
mod syntax;
mod tree;

use std::process::ExitCode;

use anyhow::bail;

use crate::tree::Tree;

const USAGE: &str = "usage: cargo xtask tidy    checks the rules of STYLE.md and ARCHITECTURE.md that a program can check";

fn main() -> anyhow::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => tidy(),
        _ => bail!("{USAGE}"),
    }
}

/// Prints every problem as `file:line: what is wrong`; succeeds when there are none.
fn tidy() -> anyhow::Result<ExitCode> {
    let tree = Tree::read(&tree::root())?;
    let problems = tidy::problems(&tree);
    for problem in &problems {
        println!("{problem}");
    }
    if problems.is_empty() {
        println!("tidy: {} files, nothing to say", tree.files().count());
        return Ok(ExitCode::SUCCESS);
    }
    println!("tidy: {} problems", problems.len());
    Ok(ExitCode::FAILURE)
}
