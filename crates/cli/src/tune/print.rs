//! What is said, and on which of the two streams.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use onrush_tune::report;

use crate::terminal;

/// Prints to standard output. What cannot be written there is an exit code at the end, and keeps nothing from being done.
pub(super) fn print(text: &str) -> anyhow::Result<ExitCode> {
    terminal::write_raw(text.as_bytes());
    Ok(ExitCode::SUCCESS)
}

/// Prints lines for people: names of a machine tell a terminal nothing.
pub(super) fn print_lines(lines: &str) -> anyhow::Result<ExitCode> {
    print(&report::printable(lines))
}

/// Says something on standard error, as long as there is one: a session that ends takes it along.
pub(super) fn say(words: &str) {
    let _ = writeln!(io::stderr(), "{}", report::one_line(words));
}

/// The columns of the terminal that is printed to, which COLUMNS may say otherwise; none when it is no terminal.
pub(super) fn columns() -> Option<usize> {
    /// Narrower ones are no use to anybody, and may be a mistake.
    const COLUMNS_MIN: usize = 40;
    let said = std::env::var("COLUMNS")
        .ok()
        .and_then(|text| text.parse().ok());
    let seen = || {
        let is_terminal = io::stdout().is_terminal();
        let size = is_terminal.then(ratatui::crossterm::terminal::size)?;
        size.ok().map(|(columns, _)| usize::from(columns))
    };
    said.or_else(seen)
        .map(|columns: usize| columns.max(COLUMNS_MIN))
}
