//! Meaning of response lines of the text and the meta protocol (memcached, doc/protocol.txt). Pure.

use super::line::{Words, number};
use crate::requests::memcached::opaque::Opaque;
use crate::requests::memcached::ratio::Command;

/// Outcome of a request, over all of its keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CommandOutcome {
    Hit,
    /// A get found some of its keys.
    Partial,
    Miss,
    Stored,
    NotStored,
    Exists,
    Deleted,
    NotFound,
    Incremented,
    /// In quiet mode a delete has no response, whether the key existed or not.
    DeletedOrNotFound,
    /// A value does not belong to its key.
    WrongValue,
    Error,
    ClientError,
    ServerError,
}

impl CommandOutcome {
    pub(super) const ALL: [CommandOutcome; 14] = [
        CommandOutcome::Hit,
        CommandOutcome::Partial,
        CommandOutcome::Miss,
        CommandOutcome::Stored,
        CommandOutcome::NotStored,
        CommandOutcome::Exists,
        CommandOutcome::Deleted,
        CommandOutcome::NotFound,
        CommandOutcome::Incremented,
        CommandOutcome::DeletedOrNotFound,
        CommandOutcome::WrongValue,
        CommandOutcome::Error,
        CommandOutcome::ClientError,
        CommandOutcome::ServerError,
    ];

    /// Returns its key in results.
    pub(super) fn name(self) -> &'static str {
        match self {
            CommandOutcome::Hit => "hit",
            CommandOutcome::Partial => "partial_hit",
            CommandOutcome::Miss => "miss",
            CommandOutcome::Stored => "stored",
            CommandOutcome::NotStored => "not_stored",
            CommandOutcome::Exists => "exists",
            CommandOutcome::Deleted => "deleted",
            CommandOutcome::NotFound => "not_found",
            CommandOutcome::Incremented => "incremented",
            CommandOutcome::DeletedOrNotFound => "deleted_or_not_found",
            CommandOutcome::WrongValue => "wrong_value",
            CommandOutcome::Error => "error",
            CommandOutcome::ClientError => "client_error",
            CommandOutcome::ServerError => "server_error",
        }
    }

    /// Whether the server refused the request or failed.
    pub(super) fn is_error(self) -> bool {
        match self {
            CommandOutcome::Error | CommandOutcome::ClientError | CommandOutcome::ServerError => {
                true
            }
            CommandOutcome::Hit
            | CommandOutcome::Partial
            | CommandOutcome::Miss
            | CommandOutcome::Stored
            | CommandOutcome::NotStored
            | CommandOutcome::Exists
            | CommandOutcome::Deleted
            | CommandOutcome::NotFound
            | CommandOutcome::Incremented
            | CommandOutcome::DeletedOrNotFound
            | CommandOutcome::WrongValue => false,
        }
    }

    /// Returns its class in [`OUTCOMES`](super::OUTCOMES).
    pub(super) const fn class(self) -> u8 {
        match self {
            CommandOutcome::Partial => 0,
            CommandOutcome::Hit => 1,
            CommandOutcome::Miss => 2,
            CommandOutcome::Stored
            | CommandOutcome::NotStored
            | CommandOutcome::Exists
            | CommandOutcome::Deleted
            | CommandOutcome::NotFound
            | CommandOutcome::Incremented
            | CommandOutcome::DeletedOrNotFound => 3,
            CommandOutcome::WrongValue
            | CommandOutcome::Error
            | CommandOutcome::ClientError
            | CommandOutcome::ServerError => 4,
        }
    }
}

/// Meaning of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ResponseLine<'l> {
    /// A value of `bytes` bytes follows; in the text protocol the line has its key.
    Value { key: Option<&'l [u8]>, bytes: u64 },
    /// The response is complete.
    Done(CommandOutcome),
}

/// Parses an error line, which can respond to any command.
pub(super) fn error(line: &[u8]) -> Option<CommandOutcome> {
    match Words::of(line).next()? {
        b"ERROR" => Some(CommandOutcome::Error),
        b"CLIENT_ERROR" => Some(CommandOutcome::ClientError),
        b"SERVER_ERROR" => Some(CommandOutcome::ServerError),
        _ => None,
    }
}

/// Whether an error line is about storing a value.
pub(super) fn is_about_storing(line: &[u8]) -> bool {
    let about: [&[u8]; 3] = [b"storing object", b"too large for cache", b"bad data chunk"];
    about
        .iter()
        .any(|words| memchr::memmem::find(line, words).is_some())
}

/// Parses a line of the text protocol as a response to `command`; `None` if it is not one.
pub(super) fn text(command: Command, line: &[u8]) -> Option<ResponseLine<'_>> {
    if command == Command::Get
        && let Some(rest) = line.strip_prefix(b"VALUE ")
    {
        let mut words = Words::of(rest);
        let key = words.next()?;
        // Flags; this generator stores 0.
        number(words.next()?)?;
        let bytes = number(words.next()?)?;
        return Some(ResponseLine::Value {
            key: Some(key),
            bytes,
        });
    }
    let said = match (command, line) {
        // A miss unless values preceded it.
        (Command::Get, b"END") => CommandOutcome::Miss,
        (Command::Set, b"STORED") => CommandOutcome::Stored,
        (Command::Set, b"NOT_STORED") => CommandOutcome::NotStored,
        (Command::Set, b"EXISTS") => CommandOutcome::Exists,
        (Command::Set | Command::Delete | Command::Increment, b"NOT_FOUND") => {
            CommandOutcome::NotFound
        }
        (Command::Delete, b"DELETED") => CommandOutcome::Deleted,
        // memcached pads a counter with spaces if it has become shorter.
        (Command::Increment, digits) => {
            let mut words = Words::of(digits);
            number(words.next()?).filter(|_| words.next().is_none())?;
            CommandOutcome::Incremented
        }
        (Command::Get | Command::Set | Command::Delete, _) => return None,
    };
    Some(ResponseLine::Done(said))
}

/// Parses a line of the meta protocol as a response to `command`.
pub(super) fn meta(command: Command, line: &[u8]) -> Option<ResponseLine<'_>> {
    let mut words = Words::of(line);
    let code = words.next()?;
    let said = match (command, code) {
        (Command::Get, b"VA") => {
            let bytes = number(words.next()?)?;
            return Some(ResponseLine::Value { key: None, bytes });
        }
        (Command::Get, b"EN") => CommandOutcome::Miss,
        (Command::Set, b"HD") => CommandOutcome::Stored,
        (Command::Set, b"NS") => CommandOutcome::NotStored,
        (Command::Delete, b"HD") => CommandOutcome::Deleted,
        (Command::Increment, b"HD") => CommandOutcome::Incremented,
        (Command::Set | Command::Delete | Command::Increment, b"EX") => CommandOutcome::Exists,
        (Command::Set | Command::Delete | Command::Increment, b"NF") => CommandOutcome::NotFound,
        (Command::Increment, b"NS") => CommandOutcome::NotStored,
        _ => return None,
    };
    Some(ResponseLine::Done(said))
}

pub(super) fn opaque(line: &[u8]) -> Option<Opaque> {
    let flag = Words::of(line)
        .skip(1)
        .find(|word| word.first() == Some(&b'O'))?;
    Opaque::read(&flag[1..])
}

/// Returns the outcome of a quiet command without a response.
pub(super) fn implied_outcome(command: Command) -> CommandOutcome {
    match command {
        Command::Get => CommandOutcome::Miss,
        Command::Set => CommandOutcome::Stored,
        Command::Delete => CommandOutcome::DeletedOrNotFound,
        Command::Increment => CommandOutcome::Incremented,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_has_index_name_and_class() {
        for (number, said) in CommandOutcome::ALL.into_iter().enumerate() {
            assert_eq!(said as usize, number);
            assert!(!said.name().is_empty() && said.class() < 5);
        }
    }

    #[test]
    fn text_protocol_response_lines_are_parsed() {
        let done = |said| Some(ResponseLine::Done(said));
        let value = |key, bytes| {
            Some(ResponseLine::Value {
                key: Some(key),
                bytes,
            })
        };
        for (command, line, expected) in [
            (Command::Get, &b"VALUE k 0 4"[..], value(&b"k"[..], 4)),
            (Command::Get, b"VALUE k 0 4 77", value(b"k", 4)),
            (Command::Get, b"VALUE k 0", None),
            (Command::Get, b"VALUE k 0 -4", None),
            (Command::Get, b"VALUE k x 4", None),
            (Command::Get, b"END", done(CommandOutcome::Miss)),
            (Command::Get, b"STORED", None),
            (Command::Get, b"ENDE", None),
            (Command::Set, b"STORED", done(CommandOutcome::Stored)),
            (Command::Set, b"NOT_STORED", done(CommandOutcome::NotStored)),
            (Command::Set, b"END", None),
            (Command::Set, b"VALUE k 0 4", None),
            (Command::Delete, b"DELETED", done(CommandOutcome::Deleted)),
            (
                Command::Delete,
                b"NOT_FOUND",
                done(CommandOutcome::NotFound),
            ),
            (Command::Increment, b"12", done(CommandOutcome::Incremented)),
            (
                Command::Increment,
                b"9  ",
                done(CommandOutcome::Incremented),
            ),
            (Command::Increment, b"", None),
            (Command::Increment, b"1 2", None),
            (
                Command::Increment,
                b"NOT_FOUND",
                done(CommandOutcome::NotFound),
            ),
        ] {
            assert_eq!(text(command, line), expected, "{command:?} {line:?}");
        }
    }

    #[test]
    fn meta_protocol_response_lines_are_parsed() {
        let done = |said| Some(ResponseLine::Done(said));
        for (command, line, expected) in [
            (
                Command::Get,
                &b"VA 4 O1"[..],
                Some(ResponseLine::Value {
                    key: None,
                    bytes: 4,
                }),
            ),
            (Command::Get, b"EN", done(CommandOutcome::Miss)),
            (Command::Get, b"HD O1", None),
            (Command::Set, b"HD O1", done(CommandOutcome::Stored)),
            (Command::Set, b"NS O1", done(CommandOutcome::NotStored)),
            (Command::Set, b"EX O1", done(CommandOutcome::Exists)),
            (Command::Set, b"NF O1", done(CommandOutcome::NotFound)),
            (Command::Delete, b"HD", done(CommandOutcome::Deleted)),
            (Command::Delete, b"NF", done(CommandOutcome::NotFound)),
            (Command::Increment, b"HD", done(CommandOutcome::Incremented)),
            (Command::Increment, b"NF", done(CommandOutcome::NotFound)),
            (Command::Set, b"MN", None),
            (Command::Set, b"", None),
        ] {
            assert_eq!(meta(command, line), expected, "{command:?} {line:?}");
        }
    }

    #[test]
    fn opaque_is_parsed_from_meta_flags() {
        assert_eq!(opaque(b"VA 4 f0 Oaabc c3"), Some(Opaque::of(18)));
        assert_eq!(opaque(b"HD"), None);
        assert_eq!(opaque(b"HD O12"), None);
    }

    #[test]
    fn error_lines_are_recognized() {
        for (line, expected) in [
            (&b"ERROR"[..], Some(CommandOutcome::Error)),
            (
                b"ERROR Too many open connections",
                Some(CommandOutcome::Error),
            ),
            (
                b"CLIENT_ERROR bad data chunk",
                Some(CommandOutcome::ClientError),
            ),
            (
                b"SERVER_ERROR out of memory storing object",
                Some(CommandOutcome::ServerError),
            ),
            (b"ERRORS", None),
            (b"", None),
        ] {
            assert_eq!(error(line), expected);
        }
    }
}
