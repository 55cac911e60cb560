//! Output of `onrush tune`, and its stream.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use onrush_tune::report;

use crate::terminal;

/// Prints to standard output. A failed write becomes the exit code at the end, and stops nothing.
pub(super) fn print(text: &str) -> anyhow::Result<ExitCode> {
    terminal::write_raw(text.as_bytes());
    Ok(ExitCode::SUCCESS)
}

/// Prints lines for people, without control characters.
pub(super) fn print_lines(lines: &str) -> anyhow::Result<ExitCode> {
    print(&report::printable(lines))
}

/// Prints a message to standard error; a failure is ignored, as the session may have ended.
pub(super) fn say(words: &str) {
    let _ = writeln!(io::stderr(), "{}", report::one_line(words));
}

/// Columns of the terminal, which the variable COLUMNS overrides; `None` without a terminal.
pub(super) fn columns() -> Option<usize> {
    /// Smaller values are unusable, and may be a mistake.
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
