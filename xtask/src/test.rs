//! `cargo xtask test`: builds the workspace's tests with Clippy's lints and runs them in parallel, each in its own
//! process.
//!
//! `cargo test` runs one test program after the other, although end-to-end tests mostly wait. With one process per
//! test, each test has its own duration and time limit, and a test killed by a signal is known by name.

mod process;
mod report;
mod schedule;
mod suites;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::bail;

use self::suites::{Build, Selection, Suite};

/// Runs the tests selected by `arguments`; fails if one of them fails.
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
    // Named tests are for use while writing code, when warnings can wait.
    if warnings > 0 && !matches!(selection, Selection::Named(_)) {
        bail!("{warnings} warnings, so no test was run: fix them, or name the tests to run");
    }
    suites::check_names(&suites, schedule::ALONE)?;
    let jobs = suites::jobs(&suites, &selection);
    if jobs.is_empty() {
        bail!("no test name contains one of these strings");
    }
    let start = Instant::now();
    let outcomes = schedule::run(&jobs)?;
    print!("{}", report::summary(&outcomes, start.elapsed()));
    if selection == Selection::Fast {
        let left_out = suites.iter().flat_map(Suite::slow_tests).count();
        println!("skipped {left_out} slow tests: run `make test-all`");
    }
    let is_success = outcomes.iter().all(|(_, outcome)| outcome.is_success());
    Ok(if is_success {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Prints each test with its suite and marks slow ones.
fn list() -> anyhow::Result<ExitCode> {
    for suite in suites::build()?.suites {
        for test in &suite.tests {
            let mark = if test.is_slow { "  slow" } else { "" };
            println!("{} {}{mark}", suite.title(), test.name);
        }
    }
    Ok(ExitCode::SUCCESS)
}
