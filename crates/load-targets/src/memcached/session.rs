//! Session of a client of memcached's text protocol. Pure: it takes received bytes in any pieces and writes responses.

use std::mem;

use super::cache::Cache;
use super::classic::{self, ReplyWriter};
use super::command::{Command, Mode, Store};
use super::item::{END, Moment};
use super::keys::{self, Keys, KeysProgress, LineStart};
use super::limits::{LINE_MAX, VALUE_PREALLOCATED_MAX};
use super::line::{self, Words};
use super::meta::Meta;
use super::meta_commands;
use super::output::ResponseBuffer;
use super::reply::{Refusal, Reply};

/// State of a session between two receives.
#[derive(Debug, Default)]
pub(crate) struct Session {
    expect: Expect,
}

#[derive(Debug, Default)]
enum Expect {
    #[default]
    Line,
    /// More keys of a command.
    Keys(Keys),
    /// The data block of a command: its line, the block's length, and the bytes received.
    Data {
        line: Box<[u8]>,
        bytes: usize,
        come: Vec<u8>,
    },
    /// This many bytes to skip.
    Skip(u64),
    /// The rest of a line to skip.
    SkipLine,
}

/// Next action for the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    Receive,
    /// Send the responses.
    Flush,
    /// Send the responses and close the connection.
    Close,
}

/// Result of a step.
enum Step {
    /// This many bytes were consumed.
    Done(usize),
    Stop(Next),
    Last(usize, Next),
}

struct CommandContext<'a> {
    cache: &'a mut Cache,
    now: Moment,
    answers: &'a mut ResponseBuffer,
}

impl Session {
    /// Executes the complete commands in `input` and returns the number of bytes consumed. Where more bytes must
    /// arrive, the rest fits in a buffer.
    pub(crate) fn execute(
        &mut self,
        input: &[u8],
        cache: &mut Cache,
        now: Moment,
        answers: &mut ResponseBuffer,
    ) -> (usize, Next) {
        let mut at = CommandContext {
            cache,
            now,
            answers,
        };
        let mut done = 0;
        loop {
            let rest = &input[done..];
            if rest.is_empty() {
                return (done, Next::Receive);
            }
            if at.answers.are_full() {
                return (done, Next::Flush);
            }
            match self.step(rest, &mut at) {
                Step::Done(bytes) => done += bytes,
                Step::Stop(next) => return (done, next),
                Step::Last(bytes, next) => return (done + bytes, next),
            }
        }
    }

    fn step(&mut self, rest: &[u8], at: &mut CommandContext<'_>) -> Step {
        match mem::take(&mut self.expect) {
            Expect::Line => self.hear_line(rest, at),
            Expect::Keys(keys) => self.hear_keys(keys, 0, rest, at),
            Expect::Data { line, bytes, come } => self.hear_data((line, bytes, come), rest, at),
            Expect::Skip(bytes) => {
                let skipped = bytes.min(rest.len() as u64);
                if skipped < bytes {
                    self.expect = Expect::Skip(bytes - skipped);
                }
                Step::Done(skipped as usize)
            }
            Expect::SkipLine => match memchr::memchr(b'\n', rest) {
                Some(end) => Step::Done(end + 1),
                None => {
                    self.expect = Expect::SkipLine;
                    Step::Done(rest.len())
                }
            },
        }
    }

    fn hear_line(&mut self, rest: &[u8], at: &mut CommandContext<'_>) -> Step {
        if rest[0] == BINARY {
            let text = b"CLIENT_ERROR the binary protocol is not spoken here";
            at.answers.line(text);
            return Step::Stop(Next::Close);
        }
        let found = line::first(rest);
        if found.is_none() && rest.len() <= LINE_MAX {
            return Step::Stop(Next::Receive);
        }
        match keys::begin(rest, found.map(|(line, _)| line)) {
            LineStart::Keys(keys, behind) => return self.hear_keys(keys, behind, rest, at),
            LineStart::Bad(text) => {
                at.answers.line(text.as_bytes());
                let bytes = found.map_or(rest.len(), |(_, bytes)| bytes);
                return Step::Done(bytes);
            }
            LineStart::No => {}
        }
        let Some((line, bytes)) = found else {
            // No client sends such a command.
            at.answers.line(b"CLIENT_ERROR line too long");
            return Step::Stop(Next::Close);
        };
        let words = Words::of(line);
        let block = &rest[bytes..];
        match Command::read(words.all()) {
            Ok(Command::Store(store)) => self.begin_data((line, bytes), store.length, block, at),
            Ok(Command::MetaStore(_, _, length)) => {
                self.begin_data((line, bytes), length, block, at)
            }
            Ok(Command::Quit) => Step::Last(bytes, Next::Close),
            Ok(command) => {
                if let Err(refusal) = execute_command(command, at) {
                    self.refuse(refusal, at);
                }
                Step::Done(bytes)
            }
            Err(refusal) => {
                self.refuse(refusal, at);
                Step::Done(bytes)
            }
        }
    }

    fn refuse(&mut self, refusal: Refusal, at: &mut CommandContext<'_>) {
        if let Some(text) = refusal.text {
            at.answers.line(text.as_bytes());
        }
        if refusal.skip > 0 {
            self.expect = Expect::Skip(refusal.skip);
        }
    }

    /// Starts a data block of `length` bytes plus its line end, which follows the line.
    fn begin_data(
        &mut self,
        (line, bytes): (&[u8], usize),
        length: u32,
        block: &[u8],
        at: &mut CommandContext<'_>,
    ) -> Step {
        let block_bytes = length as usize + END.len();
        if !at.cache.takes(length) {
            refuse_too_large(line, at);
            self.expect = Expect::Skip(block_bytes as u64);
            return Step::Done(bytes);
        }
        if block.len() >= block_bytes {
            store(line, &block[..block_bytes], at);
            return Step::Done(bytes + block_bytes);
        }
        let mut come = Vec::with_capacity(block_bytes.min(VALUE_PREALLOCATED_MAX));
        come.extend_from_slice(block);
        self.expect = Expect::Data {
            line: line.into(),
            bytes: block_bytes,
            come,
        };
        Step::Done(bytes + block.len())
    }

    fn hear_data(
        &mut self,
        (line, bytes, mut come): (Box<[u8]>, usize, Vec<u8>),
        rest: &[u8],
        at: &mut CommandContext<'_>,
    ) -> Step {
        let wanted = (bytes - come.len()).min(rest.len());
        come.extend_from_slice(&rest[..wanted]);
        if come.len() < bytes {
            self.expect = Expect::Data { line, bytes, come };
        } else {
            store(&line, &come, at);
        }
        Step::Done(wanted)
    }

    fn hear_keys(
        &mut self,
        keys: Keys,
        behind: usize,
        rest: &[u8],
        at: &mut CommandContext<'_>,
    ) -> Step {
        let (done, answered) = keys.answer(&rest[behind..], at.cache, at.now, at.answers);
        let done = behind + done;
        match answered {
            KeysProgress::All => Step::Done(done),
            KeysProgress::SoFar => {
                self.expect = Expect::Keys(keys);
                Step::Last(done, Next::Receive)
            }
            KeysProgress::UpTo => {
                self.expect = Expect::Keys(keys);
                Step::Last(done, Next::Flush)
            }
            KeysProgress::Bad => {
                at.answers.line(b"CLIENT_ERROR bad command line format");
                self.expect = Expect::SkipLine;
                Step::Done(done)
            }
        }
    }
}

/// First byte of requests in the binary protocol; no text command begins with it.
const BINARY: u8 = 0x80;

/// Refuses a value that is too large, and removes the old one: a client must not read an outdated value.
fn refuse_too_large(line: &[u8], at: &mut CommandContext<'_>) {
    let words = Words::of(line);
    let (key, is_said, replaces) = match Command::read(words.all()) {
        Ok(Command::Store(Store {
            key, mode, reply, ..
        })) => (key.to_vec(), reply == Reply::Wanted, mode == Mode::Set),
        Ok(Command::MetaStore(meta, _, _)) => (meta.key.into_owned(), true, true),
        Ok(_) | Err(_) => return,
    };
    if replaces {
        at.cache.remove(&key, at.now.seconds);
    }
    if is_said {
        at.answers.line(b"SERVER_ERROR object too large for cache");
    }
}

/// Executes a storage command whose data block, including its line end, is complete.
fn store(line: &[u8], block: &[u8], at: &mut CommandContext<'_>) {
    let words = Words::of(line);
    let value = block.strip_suffix(END);
    let bad = "CLIENT_ERROR bad data chunk";
    match Command::read(words.all()) {
        Ok(Command::Store(store)) => {
            let text = match value {
                Some(value) => classic::put(at.cache, store, value, at.now),
                None => bad,
            };
            let reply = store.reply;
            let answers = &mut *at.answers;
            ReplyWriter { answers, reply }.write(text);
        }
        Ok(Command::MetaStore(meta, mode, _)) => match value {
            Some(value) => put_meta((&meta, mode, value), at),
            None => at.answers.line(bad.as_bytes()),
        },
        // Other commands have no data block.
        Ok(_) | Err(_) => {}
    }
}

fn put_meta(what: (&Meta<'_>, Mode, &[u8]), at: &mut CommandContext<'_>) {
    meta_commands::put(at.cache, what, at.now, at.answers);
}

/// Executes a command without a data block.
fn execute_command(command: Command<'_>, at: &mut CommandContext<'_>) -> Result<(), Refusal> {
    let CommandContext {
        cache,
        now,
        answers,
    } = at;
    let now = *now;
    match command {
        Command::Delete(key, reply) => {
            let text = classic::delete(cache, key, now.seconds);
            ReplyWriter { answers, reply }.write(text);
        }
        Command::Count(key, step, reply) => {
            classic::step(
                cache,
                key,
                step,
                now.seconds,
                ReplyWriter { answers, reply },
            );
        }
        Command::Touch(key, exptime, reply) => {
            let text = classic::touch(cache, key, exptime, now);
            ReplyWriter { answers, reply }.write(text);
        }
        Command::FlushAll(delay, reply) => {
            let text = classic::flush_all(cache, delay, now);
            ReplyWriter { answers, reply }.write(text);
        }
        Command::Version => classic::version(answers),
        // The verbosity is fixed.
        Command::Verbosity(reply) => ReplyWriter { answers, reply }.write("OK"),
        Command::Stats(topic) => classic::stats(cache, topic, now, answers),
        Command::MetaGet(meta) => meta_commands::get(cache, &meta, now, answers),
        Command::MetaDelete(meta) => meta_commands::delete(cache, &meta, now, answers),
        Command::MetaCount(meta, direction) => {
            return meta_commands::step(cache, (&meta, direction), now, answers);
        }
        Command::MetaNoop => answers.line(b"MN"),
        Command::MetaDebug(meta) => meta_commands::debug(cache, &meta, now, answers),
        Command::Store(_) | Command::MetaStore(..) | Command::Quit => {
            unreachable!("the line's reader took these bytes")
        }
    }
    Ok(())
}
