//! `cargo xtask test`: builds the tests of the workspace with Clippy's lints and runs them side by side, each in a process of its own.
//!
//! Cargo runs one test program after the other, although tests of whole programs mostly wait. With one process per test, each can be
//! timed and limited, and a test that was killed by a signal is known by name.

mod process;
mod report;
mod schedule;
mod suites;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::bail;

use self::suites::{Build, Selection, Suite};

/// Runs the tests that `arguments` select; fails when one of them fails.
pub(crate) fn run(arguments: &[&str]) -> anyhow::Result<ExitCode> {
    let selection = match arguments {
        [] => Selection::Fast,
        ["--rest"] => Selection::Rest,
        ["--list"] => return list(),
        names if names.iter().all(|name| !name.starts_with('-')) => {
            Selection::Named(names.iter().map(|&name| name.to_owned()).collect())
        }
        _ => bail!("usage: cargo xtask test [--rest | --list | NAME...]"),
    };
    let Build { suites, warnings } = suites::build()?;
    // Tests that are named are run while somebody writes: warnings can wait.
    if warnings > 0 && !matches!(selection, Selection::Named(_)) {
        bail!("{warnings} warnings: no test was run; mend them, or name the tests to run");
    }
    suites::check_names(&suites, schedule::ALONE)?;
    let jobs = suites::jobs(&suites, &selection);
    if jobs.is_empty() {
        bail!("no test has such a name");
    }
    let start = Instant::now();
    let outcomes = schedule::run(&jobs)?;
    print!("{}", report::summary(&outcomes, start.elapsed()));
    if selection == Selection::Fast {
        let left_out = suites.iter().flat_map(Suite::slow_tests).count();
        println!("{left_out} slow tests are left to `make test-all`");
    }
    let is_success = outcomes.iter().all(|(_, outcome)| outcome.is_success());
    Ok(if is_success {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Prints each test with its suite; slow ones are marked.
fn list() -> anyhow::Result<ExitCode> {
    for suite in suites::build()?.suites {
        for test in &suite.tests {
            let mark = if test.is_slow { "  slow" } else { "" };
            println!("{} {}{mark}", suite.title(), test.name);
        }
    }
    Ok(ExitCode::SUCCESS)
}
