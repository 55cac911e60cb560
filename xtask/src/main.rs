//! Automation of the repository in Rust: `cargo xtask test`, `cargo xtask tidy`, `cargo xtask tables`.
#![forbid(unsafe_code)]

mod messages;
mod test;
mod tidy;

mod code;
mod modules;
mod syntax;
mod tables;
mod tree;

use std::process::ExitCode;

use anyhow::{Context, bail};

use crate::tree::Tree;

const USAGE: &str = "usage: cargo xtask test      runs the tests side by side, without the slow ones
       cargo xtask test NAME...    runs the tests with one of these strings in their name, slow ones too
       cargo xtask test --rest    runs the slow tests
       cargo xtask test --list    prints the names of all tests
       cargo xtask tidy      checks the rules of STYLE.md and ARCHITECTURE.md that a program can check
       cargo xtask tidy --figures    prints entries, lines and circles of rooms of each crate, and marked lines of prose
       cargo xtask messages [CRATE...]    prints every message, its arguments filled in, as path:line: text
       cargo xtask tables    copies measured tables of runs/ into the documents that show them";

fn main() -> anyhow::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => tidy(),
        ["tidy", "--figures"] => figures(),
        ["tables"] => tables(),
        ["messages", ref crates @ ..] => messages(crates),
        ["test", ref arguments @ ..] => test::run(arguments),
        _ => bail!("{USAGE}"),
    }
}

/// Prints every problem as `file:line: message`; succeeds if there are none.
fn tidy() -> anyhow::Result<ExitCode> {
    let tree = Tree::read(&tree::root())?;
    let problems = tidy::problems(&tree);
    for problem in &problems {
        println!("{problem}");
    }
    if problems.is_empty() {
        println!("tidy: {} files, no problems", tree.files().count());
        return Ok(ExitCode::SUCCESS);
    }
    println!("tidy: {} problems", problems.len());
    Ok(ExitCode::FAILURE)
}

fn figures() -> anyhow::Result<ExitCode> {
    let tree = Tree::read(&tree::root())?;
    print!("{}", tidy::figures(&tree));
    Ok(ExitCode::SUCCESS)
}

fn messages(crates: &[&str]) -> anyhow::Result<ExitCode> {
    let tree = Tree::read(&tree::root())?;
    print!("{}", messages::listed(&tree, crates)?);
    Ok(ExitCode::SUCCESS)
}

/// Updates the tables in documents from the results of runs; prints the documents that changed.
fn tables() -> anyhow::Result<ExitCode> {
    let root = tree::root();
    let tree = Tree::read(&root)?;
    for (path, text) in tree.ending(".md") {
        let filled = match tables::filled(text, &tree) {
            Ok(filled) => filled,
            Err(broken) => bail!("{path}:{}: {}", broken.line, broken.what),
        };
        if filled != text {
            std::fs::write(root.join(path), filled).with_context(|| format!("writing {path}"))?;
            println!("{path}");
        }
    }
    Ok(ExitCode::SUCCESS)
}
