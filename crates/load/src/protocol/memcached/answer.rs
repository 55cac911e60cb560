//! Meaning of response lines of the text and the meta protocol (memcached, doc/protocol.txt). Pure.

use super::line::{Words, number};
use crate::requests::memcached::opaque::Opaque;
use crate::requests::memcached::ratio::Command;

/// Outcome of a request, over all of its keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Said {
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

impl Said {
    pub(super) const ALL: [Said; 14] = [
        Said::Hit,
        Said::Partial,
        Said::Miss,
        Said::Stored,
        Said::NotStored,
        Said::Exists,
        Said::Deleted,
        Said::NotFound,
        Said::Incremented,
        Said::DeletedOrNotFound,
        Said::WrongValue,
        Said::Error,
        Said::ClientError,
        Said::ServerError,
    ];

    /// Returns its key in results.
    pub(super) fn name(self) -> &'static str {
        match self {
            Said::Hit => "hit",
            Said::Partial => "partial_hit",
            Said::Miss => "miss",
            Said::Stored => "stored",
            Said::NotStored => "not_stored",
            Said::Exists => "exists",
            Said::Deleted => "deleted",
            Said::NotFound => "not_found",
            Said::Incremented => "incremented",
            Said::DeletedOrNotFound => "deleted_or_not_found",
            Said::WrongValue => "wrong_value",
            Said::Error => "error",
            Said::ClientError => "client_error",
            Said::ServerError => "server_error",
        }
    }

    /// Whether the server refused the request or failed.
    pub(super) fn is_error(self) -> bool {
        match self {
            Said::Error | Said::ClientError | Said::ServerError => true,
            Said::Hit
            | Said::Partial
            | Said::Miss
            | Said::Stored
            | Said::NotStored
            | Said::Exists
            | Said::Deleted
            | Said::NotFound
            | Said::Incremented
            | Said::DeletedOrNotFound
            | Said::WrongValue => false,
        }
    }

    /// Returns its class in [`OUTCOMES`](super::OUTCOMES).
    pub(super) const fn class(self) -> u8 {
        match self {
            Said::Partial => 0,
            Said::Hit => 1,
            Said::Miss => 2,
            Said::Stored
            | Said::NotStored
            | Said::Exists
            | Said::Deleted
            | Said::NotFound
            | Said::Incremented
            | Said::DeletedOrNotFound => 3,
            Said::WrongValue | Said::Error | Said::ClientError | Said::ServerError => 4,
        }
    }
}

/// Meaning of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answer<'l> {
    /// A value of `bytes` bytes follows; in the text protocol the line has its key.
    Value { key: Option<&'l [u8]>, bytes: u64 },
    /// The response is complete.
    Done(Said),
}

/// Parses an error line, which can respond to any command.
pub(super) fn error(line: &[u8]) -> Option<Said> {
    match Words::of(line).next()? {
        b"ERROR" => Some(Said::Error),
        b"CLIENT_ERROR" => Some(Said::ClientError),
        b"SERVER_ERROR" => Some(Said::ServerError),
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
pub(super) fn text(command: Command, line: &[u8]) -> Option<Answer<'_>> {
    if command == Command::Get
        && let Some(rest) = line.strip_prefix(b"VALUE ")
    {
        let mut words = Words::of(rest);
        let key = words.next()?;
        // Flags; this generator stores 0.
        number(words.next()?)?;
        let bytes = number(words.next()?)?;
        return Some(Answer::Value {
            key: Some(key),
            bytes,
        });
    }
    let said = match (command, line) {
        // A miss unless values preceded it.
        (Command::Get, b"END") => Said::Miss,
        (Command::Set, b"STORED") => Said::Stored,
        (Command::Set, b"NOT_STORED") => Said::NotStored,
        (Command::Set, b"EXISTS") => Said::Exists,
        (Command::Set | Command::Delete | Command::Increment, b"NOT_FOUND") => Said::NotFound,
        (Command::Delete, b"DELETED") => Said::Deleted,
        // memcached pads a counter with spaces if it has become shorter.
        (Command::Increment, digits) => {
            let mut words = Words::of(digits);
            number(words.next()?).filter(|_| words.next().is_none())?;
            Said::Incremented
        }
        (Command::Get | Command::Set | Command::Delete, _) => return None,
    };
    Some(Answer::Done(said))
}

/// Parses a line of the meta protocol as a response to `command`.
pub(super) fn meta(command: Command, line: &[u8]) -> Option<Answer<'_>> {
    let mut words = Words::of(line);
    let code = words.next()?;
    let said = match (command, code) {
        (Command::Get, b"VA") => {
            let bytes = number(words.next()?)?;
            return Some(Answer::Value { key: None, bytes });
        }
        (Command::Get, b"EN") => Said::Miss,
        (Command::Set, b"HD") => Said::Stored,
        (Command::Set, b"NS") => Said::NotStored,
        (Command::Delete, b"HD") => Said::Deleted,
        (Command::Increment, b"HD") => Said::Incremented,
        (Command::Set | Command::Delete | Command::Increment, b"EX") => Said::Exists,
        (Command::Set | Command::Delete | Command::Increment, b"NF") => Said::NotFound,
        (Command::Increment, b"NS") => Said::NotStored,
        _ => return None,
    };
    Some(Answer::Done(said))
}

pub(super) fn opaque(line: &[u8]) -> Option<Opaque> {
    let flag = Words::of(line)
        .skip(1)
        .find(|word| word.first() == Some(&b'O'))?;
    Opaque::read(&flag[1..])
}

/// Returns the outcome of a quiet command without a response.
pub(super) fn silence(command: Command) -> Said {
    match command {
        Command::Get => Said::Miss,
        Command::Set => Said::Stored,
        Command::Delete => Said::DeletedOrNotFound,
        Command::Increment => Said::Incremented,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_has_its_number_a_name_and_a_class() {
        for (number, said) in Said::ALL.into_iter().enumerate() {
            assert_eq!(said as usize, number);
            assert!(!said.name().is_empty() && said.class() < 5);
        }
    }

    #[test]
    fn lines_of_the_text_protocol_mean_what_the_protocol_says() {
        let done = |said| Some(Answer::Done(said));
        let value = |key, bytes| {
            Some(Answer::Value {
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
            (Command::Get, b"END", done(Said::Miss)),
            (Command::Get, b"STORED", None),
            (Command::Get, b"ENDE", None),
            (Command::Set, b"STORED", done(Said::Stored)),
            (Command::Set, b"NOT_STORED", done(Said::NotStored)),
            (Command::Set, b"END", None),
            (Command::Set, b"VALUE k 0 4", None),
            (Command::Delete, b"DELETED", done(Said::Deleted)),
            (Command::Delete, b"NOT_FOUND", done(Said::NotFound)),
            (Command::Increment, b"12", done(Said::Incremented)),
            (Command::Increment, b"9  ", done(Said::Incremented)),
            (Command::Increment, b"", None),
            (Command::Increment, b"1 2", None),
            (Command::Increment, b"NOT_FOUND", done(Said::NotFound)),
        ] {
            assert_eq!(text(command, line), expected, "{command:?} {line:?}");
        }
    }

    #[test]
    fn lines_of_the_meta_protocol_mean_what_the_protocol_says() {
        let done = |said| Some(Answer::Done(said));
        for (command, line, expected) in [
            (
                Command::Get,
                &b"VA 4 O1"[..],
                Some(Answer::Value {
                    key: None,
                    bytes: 4,
                }),
            ),
            (Command::Get, b"EN", done(Said::Miss)),
            (Command::Get, b"HD O1", None),
            (Command::Set, b"HD O1", done(Said::Stored)),
            (Command::Set, b"NS O1", done(Said::NotStored)),
            (Command::Set, b"EX O1", done(Said::Exists)),
            (Command::Set, b"NF O1", done(Said::NotFound)),
            (Command::Delete, b"HD", done(Said::Deleted)),
            (Command::Delete, b"NF", done(Said::NotFound)),
            (Command::Increment, b"HD", done(Said::Incremented)),
            (Command::Increment, b"NF", done(Said::NotFound)),
            (Command::Set, b"MN", None),
            (Command::Set, b"", None),
        ] {
            assert_eq!(meta(command, line), expected, "{command:?} {line:?}");
        }
    }

    #[test]
    fn an_opaque_is_found_among_flags() {
        assert_eq!(opaque(b"VA 4 f0 Oaabc c3"), Some(Opaque::of(18)));
        assert_eq!(opaque(b"HD"), None);
        assert_eq!(opaque(b"HD O12"), None);
    }

    #[test]
    fn errors_are_those_lines_that_say_so() {
        for (line, expected) in [
            (&b"ERROR"[..], Some(Said::Error)),
            (b"ERROR Too many open connections", Some(Said::Error)),
            (b"CLIENT_ERROR bad data chunk", Some(Said::ClientError)),
            (
                b"SERVER_ERROR out of memory storing object",
                Some(Said::ServerError),
            ),
            (b"ERRORS", None),
            (b"", None),
        ] {
            assert_eq!(error(line), expected);
        }
    }
}
