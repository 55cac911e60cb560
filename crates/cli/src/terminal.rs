//! Standard output and standard error for people: control characters are replaced, lines are limited, and failed writes
//! become an exit code.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::OnceLock;

use rustix::io::Errno;

/// Maximum characters of a line: ten lines of a wide terminal. Longer ones are names from files.
const LINE_MAX: usize = 2000;

/// The first failure to write standard output, which `main` turns into an exit code.
static FAILED: OnceLock<io::Error> = OnceLock::new();

/// Stream for text that people read. Writing never fails: work in progress is completed, and [`exit_code`] reports the
/// failure.
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
    pub(crate) fn standard() -> Out {
        Out {
            stream: Stream::Output,
            column: 0,
        }
    }

    /// Standard error, used when standard output carries a file.
    pub(crate) fn error() -> Out {
        Out {
            stream: Stream::Error,
            column: 0,
        }
    }

    /// The visible part of `text`.
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
                ..=LINE_MAX => shown.push(printable(letter)),
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
            // A failure cannot be reported anywhere.
            Stream::Error => drop(io::stderr().write_all(shown.as_bytes())),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Stream::Output = self.stream {
            record_write(io::stdout().flush());
        }
        Ok(())
    }
}

/// Replaces characters that control a terminal (ECMA-48) or change the text direction (UAX 9).
fn printable(letter: char) -> char {
    match letter {
        '\t' => '\t',
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => char::REPLACEMENT_CHARACTER,
        letter if letter.is_control() => char::REPLACEMENT_CHARACTER,
        letter => letter,
    }
}

/// Writes output for programs, such as JSON, to standard output.
pub(crate) fn write_raw(bytes: &[u8]) {
    record_write(opened().and_then(|()| io::stdout().write_all(bytes)));
}

/// Checks that standard output was open when the program started.
///
/// # Errors
/// When it was closed: writes would go nowhere without an error.
pub(crate) fn opened() -> io::Result<()> {
    match onrush_engine::was_output_closed() {
        true => Err(Errno::BADF.into()),
        false => Ok(()),
    }
}

/// Records the result of a write to standard output.
pub(crate) fn record_write(written: io::Result<()>) {
    if let Err(error) = written {
        // The first error is the cause.
        let _ = FAILED.set(error);
    }
}

/// Writes a line to standard error; a failure is ignored.
pub(crate) fn print_error(line: fmt::Arguments<'_>) {
    let line = format!("{line}\n");
    let shown = Out::error().shown(&line);
    // In one write, so that lines of several programs on one terminal do not mix.
    let _ = io::stderr().write_all(shown.as_bytes());
}

/// Exit code of the program: 1 instead of `code` when standard output could not be written. A reader that closes the
/// pipe early (`| head`) is not a failure.
pub(crate) fn exit_code(code: ExitCode) -> ExitCode {
    record_write(io::stdout().flush());
    match FAILED.get() {
        Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            print_error(format_args!(
                "onrush: cannot write to standard output: {error}"
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
    fn control_characters_are_replaced() {
        let mut out = Out::standard();
        assert_eq!(
            out.shown("a\u{1b}[31m\tb\r\u{9b}c\u{202e}ü\n"),
            "a\u{fffd}[31m\tb\u{fffd}\u{fffd}c\u{fffd}ü\n"
        );
    }

    #[test]
    fn long_lines_are_truncated() {
        let mut out = Out::standard();
        let mut shown = String::new();
        for _ in 0..10 {
            shown += &out.shown(&"x".repeat(LINE_MAX / 4));
        }
        shown += &out.shown("\nnext\n");
        assert_eq!(shown, format!("{}…\nnext\n", "x".repeat(LINE_MAX)));
    }
}
