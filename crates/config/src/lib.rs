//! Configuration: text -> what was written -> a [`Plan`] that cannot be wrong. Pure: it reads no
//! file, resolves no name and looks at no directory; text comes in, and a plan or every error found
//! comes out.
//!
//! Three types, one for each step: the text, `Section` (what was written, each value with its place)
//! and [`Plan`] (what it means). The one-liners of the command line make the same plan from the
//! same parse functions: [`Plan::one_liner`], [`address`], [`value`].
#![forbid(unsafe_code)]

pub mod plan;

pub mod changes;
pub mod masked;

mod read;
mod section;
mod written;

pub mod address;
pub mod value;

pub mod diagnostic;
mod nearest;

pub mod limits;

use std::path::Path;

pub use diagnostic::{Diagnostic, Errors, Findings};
pub use plan::Plan;

/// A configuration that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// What it means.
    pub plan: Plan,
    /// What is allowed but hardly meant, such as a route that is never reached; in the order of the
    /// text.
    pub warnings: Vec<Diagnostic>,
}

/// Reads the text of a configuration file. `path` is where it came from: its name stands in front
/// of every finding, and relative paths in the text are taken from its directory. Nothing is read
/// from there.
///
/// Fails with everything found to be wrong, not only the first of it.
pub fn parse(text: &str, path: &Path) -> Result<Parsed, Errors> {
    let mut findings = diagnostic::Findings::new(text, path);
    let plan = understood(text, &mut findings);
    let warnings = findings.finish()?;
    Ok(Parsed {
        plan: plan.expect("text without an error has a plan"),
        warnings,
    })
}

/// The line in which each `[[route]]` of a text begins, from 1 and in their order; none where there are no such tables. For who
/// has to say which of them is meant: a plan does not remember.
pub fn route_lines(text: &str) -> Vec<usize> {
    let findings = Findings::new(text, Path::new(""));
    let (root, _) = toml::de::DeTable::parse_recoverable(text);
    let routes = root.get_ref().get("route");
    let routes = routes.and_then(|routes| routes.get_ref().as_array());
    let tables = routes.into_iter().flat_map(|routes| routes.iter());
    tables
        .map(|table| findings.line_of(&table.span()))
        .collect()
}

/// The plan, or none when the text was no configuration at all; only worth something when nothing
/// was found wrong.
fn understood(text: &str, findings: &mut diagnostic::Findings<'_>) -> Option<Plan> {
    if text.len() > limits::TEXT_MAX {
        let (length, max) = (text.len(), limits::TEXT_MAX);
        findings.error(
            0..0,
            format!("a configuration of {length} bytes is too long: expected at most {max}"),
        );
        return None;
    }
    // Before the parser makes something of each, which takes fifty times the memory of the text.
    for (what, max, of_line) in [
        ("keys", limits::KEYS_MAX, equals_signs as fn(&str) -> usize),
        ("[[tables]]", limits::TABLES_MAX, tables),
    ] {
        let count: usize = text.lines().map(of_line).sum();
        if count > max {
            let message =
                format!("a configuration with {count} {what} is too long: expected at most {max}");
            findings.error(0..0, message);
            return None;
        }
    }
    read::read(text, findings)
}

fn equals_signs(line: &str) -> usize {
    line.bytes().filter(|byte| *byte == b'=').count()
}

fn tables(line: &str) -> usize {
    usize::from(line.trim_start().starts_with("[["))
}
