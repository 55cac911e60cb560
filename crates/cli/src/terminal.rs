//! Standard output and standard error, as people read them: names out of files tell a terminal nothing, a line has an end,
//! and what could not be written is an exit code.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::OnceLock;

use rustix::io::Errno;

/// Characters of a line that are shown: ten lines of a wide terminal. Longer ones are names from files that nobody reads to
/// their end.
const LINE_MAX: usize = 2000;

/// The first failure to write standard output, of which `main` makes an exit code.
static FAILED: OnceLock<io::Error> = OnceLock::new();

/// Where text for people goes. Writing to it never fails: what was begun is brought to its end, and [`ended`] tells what
/// could not be said.
pub(crate) struct Out {
    stream: Stream,
    /// Characters of the line so far.
    column: usize,
}

#[derive(Clone, Copy)]
enum Stream {
    Output,
    Error,
}

impl Out {
    /// Standard output.
    pub(crate) fn standard() -> Out {
        Out {
            stream: Stream::Output,
            column: 0,
        }
    }

    /// Standard error, where the other one is a file's.
    pub(crate) fn error() -> Out {
        Out {
            stream: Stream::Error,
            column: 0,
        }
    }

    /// What of `text` is shown.
    fn shown(&mut self, text: &str) -> String {
        let mut shown = String::with_capacity(text.len().min(LINE_MAX));
        for letter in text.chars() {
            if letter == '\n' {
                self.column = 0;
                shown.push('\n');
                continue;
            }
            self.column += 1;
            match self.column {
                ..=LINE_MAX => shown.push(harmless(letter)),
                column if column == LINE_MAX + 1 => shown.push('…'),
                _ => {}
            }
        }
        shown
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let shown = self.shown(&String::from_utf8_lossy(bytes));
        match self.stream {
            Stream::Output => write_raw(shown.as_bytes()),
            // There is nobody to tell.
            Stream::Error => drop(io::stderr().write_all(shown.as_bytes())),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Stream::Output = self.stream {
            note(io::stdout().flush());
        }
        Ok(())
    }
}

/// A character that does nothing to a terminal: neither controls it (ECMA-48) nor turns the direction of what follows
/// (UAX 9).
fn harmless(letter: char) -> char {
    match letter {
        '\t' => '\t',
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => char::REPLACEMENT_CHARACTER,
        letter if letter.is_control() => char::REPLACEMENT_CHARACTER,
        letter => letter,
    }
}

/// Writes to standard output what is for a program, such as JSON.
pub(crate) fn write_raw(bytes: &[u8]) {
    note(opened().and_then(|()| io::stdout().write_all(bytes)));
}

/// Whether there was a standard output when the program began.
///
/// # Errors
/// When there was none: what is written goes nowhere, and nothing else says so.
pub(crate) fn opened() -> io::Result<()> {
    match onrush_engine::was_output_closed() {
        true => Err(Errno::BADF.into()),
        false => Ok(()),
    }
}

/// Keeps what standard output said.
pub(crate) fn note(written: io::Result<()>) {
    if let Err(error) = written {
        // The first one says why.
        let _ = FAILED.set(error);
    }
}

/// A line on standard error, unless that has gone: no program ends because nobody listens to it.
pub(crate) fn say(line: fmt::Arguments<'_>) {
    let line = format!("{line}\n");
    let shown = Out::error().shown(&line);
    // In one piece, so that the lines of several programs on one terminal stay lines.
    let _ = io::stderr().write_all(shown.as_bytes());
}

/// The exit code of a program that would end with `code`: 1 when its standard output could not be written. A reader that
/// has seen enough (`| head`) is no failure.
pub(crate) fn ended(code: ExitCode) -> ExitCode {
    note(io::stdout().flush());
    match FAILED.get() {
        Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            say(format_args!(
                "onrush: standard output cannot be written: {error}"
            ));
            ExitCode::from(1)
        }
        _ => code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_a_terminal_nothing() {
        let mut out = Out::standard();
        assert_eq!(
            out.shown("a\u{1b}[31m\tb\r\u{9b}c\u{202e}ü\n"),
            "a\u{fffd}[31m\tb\u{fffd}\u{fffd}c\u{fffd}ü\n"
        );
    }

    #[test]
    fn a_line_has_an_end_however_it_comes() {
        let mut out = Out::standard();
        let mut shown = String::new();
        for _ in 0..10 {
            shown += &out.shown(&"x".repeat(LINE_MAX / 4));
        }
        shown += &out.shown("\nnext\n");
        assert_eq!(shown, format!("{}…\nnext\n", "x".repeat(LINE_MAX)));
    }
}
