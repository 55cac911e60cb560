//! Parses command lines of memcached's text protocol (protocol.txt of memcached 1.6). `keys.rs` parses gets. Pure.

use super::limits::KEY_BYTES_MAX;
use super::meta::Meta;
use super::number::{signed_32, unsigned, unsigned_32};
use super::reply::{Refusal, Reply};

#[derive(Debug)]
pub(super) enum Command<'l> {
    /// A data block follows.
    Store(Store<'l>),
    Delete(&'l [u8], Reply),
    Count(&'l [u8], Step, Reply),
    Touch(&'l [u8], i32, Reply),
    /// With the delay in seconds.
    FlushAll(i32, Reply),
    Version,
    Verbosity(Reply),
    Stats(Option<&'l [u8]>),
    Quit,
    MetaGet(Meta<'l>),
    /// A data block of this length follows.
    MetaStore(Meta<'l>, Mode, u32),
    MetaDelete(Meta<'l>),
    MetaCount(Meta<'l>, Direction),
    MetaNoop,
    MetaDebug(Meta<'l>),
}

/// Classic storage command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Store<'l> {
    pub(super) key: &'l [u8],
    pub(super) mode: Mode,
    pub(super) flags: u32,
    pub(super) exptime: i32,
    /// Length of the value.
    pub(super) length: u32,
    pub(super) reply: Reply,
}

/// Condition and kind of a storage command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    Set,
    Add,
    Replace,
    Append,
    Prepend,
    /// If the item has this CAS unique.
    Cas(u64),
}

/// Amount of an increment or decrement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) direction: Direction,
    pub(super) by: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    Up,
    Down,
}

const ERROR: Refusal = Refusal {
    text: Some("ERROR"),
    skip: 0,
};
const BAD_LINE: &str = "CLIENT_ERROR bad command line format";

impl<'l> Command<'l> {
    pub(super) fn read(words: &'l [&'l [u8]]) -> Result<Self, Refusal> {
        let Some((&name, arguments)) = words.split_first() else {
            return Err(ERROR);
        };
        match name {
            b"set" => store(Mode::Set, arguments),
            b"add" => store(Mode::Add, arguments),
            b"replace" => store(Mode::Replace, arguments),
            b"append" => store(Mode::Append, arguments),
            b"prepend" => store(Mode::Prepend, arguments),
            b"cas" => cas(arguments),
            b"delete" => delete(arguments),
            b"incr" => count(Direction::Up, arguments),
            b"decr" => count(Direction::Down, arguments),
            b"touch" => touch(arguments),
            b"flush_all" => flush_all(arguments),
            b"version" => Ok(Command::Version),
            b"verbosity" => verbosity(arguments),
            b"stats" => Ok(Command::Stats(arguments.first().copied())),
            b"quit" => Ok(Command::Quit),
            b"mn" => Ok(Command::MetaNoop),
            b"mg" | b"ms" | b"md" | b"ma" | b"me" => Self::read_meta(name, words),
            _ => Err(ERROR),
        }
    }

    fn read_meta(name: &[u8], words: &'l [&'l [u8]]) -> Result<Self, Refusal> {
        const BAD_FLAG: &str = "CLIENT_ERROR invalid or duplicate flag";
        if words.len() < 2 {
            return Err(match name {
                b"me" => Refusal::with_text(BAD_LINE),
                _ => ERROR,
            });
        }
        // memcached reports most mistakes in the flags of these commands by a common message.
        let unnamed = |refusal: Refusal| match refusal.text {
            Some("CLIENT_ERROR options flags too long" | BAD_LINE) => refusal,
            Some("CLIENT_ERROR opaque token too long") => refusal,
            _ => Refusal::with_text(BAD_FLAG),
        };
        match name {
            b"mg" => Meta::read(words, 2).map(Command::MetaGet),
            b"ms" => meta_store(words),
            b"md" => Meta::read(words, 2)
                .map(Command::MetaDelete)
                .map_err(unnamed),
            b"ma" => {
                let meta = Meta::read(words, 2).map_err(unnamed)?;
                let direction = match meta.mode {
                    None | Some(b'I' | b'+') => Direction::Up,
                    Some(b'D' | b'-') => Direction::Down,
                    Some(_) => {
                        return Err(Refusal::with_text(
                            "CLIENT_ERROR invalid mode for ma M token",
                        ));
                    }
                };
                Ok(Command::MetaCount(meta, direction))
            }
            _ => {
                // memcached accepts one flag and ignores others.
                let encoded = words.get(2).is_some_and(|flag| *flag == b"b");
                let words = &words[..2 + usize::from(encoded)];
                let meta = Meta::read(words, 2).map_err(|_| Refusal::with_text(BAD_LINE))?;
                Ok(Command::MetaDebug(meta))
            }
        }
    }
}

/// Returns whether the last argument is `noreply`.
fn reply(arguments: &[&[u8]]) -> Reply {
    match arguments.last() {
        Some(&b"noreply") => Reply::Unwanted,
        _ => Reply::Wanted,
    }
}

fn store<'l>(mode: Mode, arguments: &[&'l [u8]]) -> Result<Command<'l>, Refusal> {
    let (4 | 5, &[key, flags, exptime, length, ..]) = (arguments.len(), arguments) else {
        return Err(ERROR);
    };
    let reply = reply(arguments);
    let read = || {
        Some(Store {
            key: Some(key).filter(|key| key.len() <= KEY_BYTES_MAX)?,
            mode,
            flags: unsigned_32(flags)?,
            exptime: signed_32(exptime)?,
            length: length_of(length)?,
            reply,
        })
    };
    match read() {
        Some(store) => Ok(Command::Store(store)),
        None => Err(Refusal::if_wanted(reply, BAD_LINE)),
    }
}

/// Parses a length that leaves room for the line end.
fn length_of(text: &[u8]) -> Option<u32> {
    let length = signed_32(text).filter(|&length| length <= i32::MAX - 2)?;
    length.try_into().ok()
}

fn cas<'l>(arguments: &[&'l [u8]]) -> Result<Command<'l>, Refusal> {
    let (5 | 6, &[key, flags, exptime, length, cas, ..]) = (arguments.len(), arguments) else {
        return Err(ERROR);
    };
    let reply = reply(arguments);
    let Some(cas) = unsigned(cas) else {
        return Err(Refusal::if_wanted(reply, BAD_LINE));
    };
    let fixed = [key, flags, exptime, length];
    let Ok(Command::Store(store)) = store(Mode::Cas(cas), &fixed) else {
        return Err(Refusal::if_wanted(reply, BAD_LINE));
    };
    Ok(Command::Store(Store { reply, ..store }))
}

fn delete<'l>(arguments: &[&'l [u8]]) -> Result<Command<'l>, Refusal> {
    let (1..=3, Some(&key)) = (arguments.len(), arguments.first()) else {
        return Err(ERROR);
    };
    let reply = match arguments.len() {
        1 => Reply::Wanted,
        _ => reply(arguments),
    };
    // The obsolete time argument must be 0.
    let is_good = match arguments {
        [_] | [_, b"0"] | [_, b"noreply"] => true,
        [_, b"0", _] => reply == Reply::Unwanted,
        _ => false,
    };
    if !is_good {
        let text = "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]";
        return Err(Refusal::if_wanted(reply, text));
    }
    match key.len() <= KEY_BYTES_MAX {
        true => Ok(Command::Delete(key, reply)),
        false => Err(Refusal::if_wanted(reply, BAD_LINE)),
    }
}

fn count<'l>(direction: Direction, arguments: &[&'l [u8]]) -> Result<Command<'l>, Refusal> {
    let (2 | 3, &[key, by, ..]) = (arguments.len(), arguments) else {
        return Err(ERROR);
    };
    let reply = reply(arguments);
    if key.len() > KEY_BYTES_MAX {
        return Err(Refusal::if_wanted(reply, BAD_LINE));
    }
    match unsigned(by) {
        Some(by) => Ok(Command::Count(key, Step { direction, by }, reply)),
        None => {
            let text = "CLIENT_ERROR invalid numeric delta argument";
            Err(Refusal::if_wanted(reply, text))
        }
    }
}

fn touch<'l>(arguments: &[&'l [u8]]) -> Result<Command<'l>, Refusal> {
    let (2 | 3, &[key, exptime, ..]) = (arguments.len(), arguments) else {
        return Err(ERROR);
    };
    let reply = reply(arguments);
    if key.len() > KEY_BYTES_MAX {
        return Err(Refusal::if_wanted(reply, BAD_LINE));
    }
    match signed_32(exptime) {
        Some(exptime) => Ok(Command::Touch(key, exptime, reply)),
        None => {
            let text = "CLIENT_ERROR invalid exptime argument";
            Err(Refusal::if_wanted(reply, text))
        }
    }
}

fn flush_all<'l>(arguments: &[&'l [u8]]) -> Result<Command<'l>, Refusal> {
    let reply = reply(arguments);
    let delay = match (arguments, reply) {
        ([], _) | ([_], Reply::Unwanted) => Some(0),
        ([delay] | [delay, _], _) => signed_32(delay),
        _ => return Err(ERROR),
    };
    match delay {
        Some(delay) => Ok(Command::FlushAll(delay, reply)),
        None => {
            let text = "CLIENT_ERROR invalid exptime argument";
            Err(Refusal::if_wanted(reply, text))
        }
    }
}

fn verbosity<'l>(arguments: &[&'l [u8]]) -> Result<Command<'l>, Refusal> {
    let (1 | 2, Some(level)) = (arguments.len(), arguments.first()) else {
        return Err(ERROR);
    };
    let reply = reply(arguments);
    match unsigned_32(level) {
        Some(_) => Ok(Command::Verbosity(reply)),
        None => Err(Refusal::if_wanted(reply, BAD_LINE)),
    }
}

/// After the length of the data block is known, an error skips the block.
fn meta_store<'l>(words: &'l [&'l [u8]]) -> Result<Command<'l>, Refusal> {
    Meta::check(words)?;
    let bad = Refusal::with_text(BAD_LINE);
    let length = words
        .get(2)
        .and_then(|length| length_of(length))
        .ok_or(bad)?;
    let skipping = |refusal: Refusal| Refusal {
        skip: u64::from(length) + 2,
        ..refusal
    };
    let meta = Meta::read(words, 3).map_err(skipping)?;
    let mode = match (meta.mode, meta.cas) {
        (None | Some(b'S'), None) => Mode::Set,
        // Replacing an item with this CAS unique is the same as cas.
        (None | Some(b'S' | b'R'), Some(cas)) => Mode::Cas(cas),
        (Some(b'R'), None) => Mode::Replace,
        (Some(b'E'), _) => Mode::Add,
        (Some(b'A'), _) => Mode::Append,
        (Some(b'P'), _) => Mode::Prepend,
        (Some(_), _) => {
            let refusal = Refusal::with_text("CLIENT_ERROR invalid mode for ms M token");
            return Err(skipping(refusal));
        }
    };
    Ok(Command::MetaStore(meta, mode, length))
}
