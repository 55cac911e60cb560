//! One answer on its way: its bytes are stepped over where they were received, and none are kept.

use super::answer::{self, Answer, Said};
use super::line::{self, Found};
use super::reading::Reading;
use super::value::Value;
use crate::memcached::ratio::Command;
use crate::memcached::workload::{self, Key};
use crate::memcached::{Dialect, Verify};
use crate::protocol::response::{Met, Outcome, Response, Stage, Step};

/// The answer to one request, as far as it has come.
pub(crate) struct Incoming<'c> {
    reading: &'c Reading,
    command: Command,
    /// The number of the request.
    number: u64,
    /// How many requests were sent behind it at once.
    following: u64,
    state: State,
    /// Of the keys of a get, the place behind the one whose value came last.
    next_key: u64,
    /// Values that came, the wrong ones among them.
    values: u64,
    wrong: u64,
    /// Bytes of values that came.
    value_bytes: u64,
}

#[expect(
    clippy::enum_variant_names,
    reason = "a state is named for what it waits for"
)]
enum State {
    ExpectLine,
    ExpectValue(Value),
    /// The end of its line.
    ExpectValueEnd,
    /// This was said to the last request of a quiet batch, and the end of the batch has not come.
    ExpectBatchEnd(Said),
}

/// What comes of a line.
enum Next {
    /// It is a part of the answer.
    Part,
    /// It is the last part.
    Last(Said),
    /// It is not of this answer: this is what was said by silence.
    Unsaid(Said),
    Refused(&'static str),
}

const OTHER_OPAQUE: &str = "an answer with the opaque of another command";

impl<'c> Incoming<'c> {
    /// The answer to request `number`, behind which so many were sent at once.
    pub(super) fn new(reading: &'c Reading, number: u64, following: u64) -> Incoming<'c> {
        Incoming {
            reading,
            command: reading.workload.command(number),
            number,
            following,
            state: State::ExpectLine,
            next_key: 0,
            values: 0,
            wrong: 0,
            value_bytes: 0,
        }
    }

    /// See [`crate::protocol::Incoming::step`].
    #[inline]
    pub(crate) fn step(&mut self, input: &[u8]) -> (usize, Step) {
        let mut at = 0;
        loop {
            let rest = &input[at..];
            match &mut self.state {
                State::ExpectLine | State::ExpectBatchEnd(_) => {
                    if let Some(bytes) = self.plain_value(rest) {
                        at += bytes;
                        continue;
                    }
                    let (line, bytes) = match line::find(rest) {
                        Found::Line(line, bytes) => (line, bytes),
                        Found::Partial => return (at, Step::Partial(self.stage())),
                        Found::Refused(reason) => return (at, Step::Refused(reason)),
                    };
                    match self.line(line) {
                        Next::Part => at += bytes,
                        Next::Last(said) => return (at + bytes, self.done(said)),
                        Next::Unsaid(said) => return (at, self.done(said)),
                        Next::Refused(reason) => return (at, Step::Refused(reason)),
                    }
                }
                State::ExpectValue(value) => {
                    let here = value.left.min(rest.len() as u64) as usize;
                    if value.is_looked_at(self.reading)
                        && let Some(key) = value.key
                    {
                        let from = value.at as usize;
                        value.is_right = self.reading.workload.has(key, from, &rest[..here]);
                    }
                    value.pass(here as u64);
                    at += here;
                    if value.left > 0 {
                        return (at, Step::Partial(Stage::Body));
                    }
                    self.wrong += u64::from(!value.is_right);
                    self.state = State::ExpectValueEnd;
                }
                State::ExpectValueEnd => match rest {
                    [b'\r', b'\n', ..] => {
                        at += 2;
                        if let Some(said) = self.value_ended() {
                            return (at, self.done(said));
                        }
                    }
                    [] | [b'\r'] => return (at, Step::Partial(Stage::Body)),
                    _ => {
                        return (at, Step::Refused("a value that is longer than announced"));
                    }
                },
            }
        }
    }

    /// Begins a value that is this answer's and has nothing but its size and opaque. How long its line is; none where the
    /// words of the line are to be looked at.
    #[inline]
    fn plain_value(&mut self, input: &[u8]) -> Option<usize> {
        let is_awaited = match self.state {
            State::ExpectLine => self.command == Command::Get && self.values == 0,
            State::ExpectValue(_) | State::ExpectValueEnd | State::ExpectBatchEnd(_) => false,
        };
        if !is_awaited || self.reading.workload.dialect() == Dialect::Text {
            return None;
        }
        let (bytes, opaque, length) = line::plain_value(input)?;
        if opaque != workload::opaque(self.number) {
            return None;
        }
        match self.value(None, bytes) {
            Next::Part => Some(length),
            Next::Last(_) | Next::Unsaid(_) | Next::Refused(_) => None,
        }
    }

    /// How far the answer has come that waits for a line.
    fn stage(&self) -> Stage {
        match self.state {
            State::ExpectLine if self.values == 0 => Stage::Head,
            State::ExpectLine
            | State::ExpectValue(_)
            | State::ExpectValueEnd
            | State::ExpectBatchEnd(_) => Stage::Body,
        }
    }

    #[inline]
    fn line(&mut self, line: &[u8]) -> Next {
        if let State::ExpectBatchEnd(said) = self.state {
            return match line {
                b"MN" => Next::Last(said),
                _ => Next::Refused(line::unknown(line)),
            };
        }
        match self.reading.workload.dialect() {
            Dialect::Text => match answer::text(self.command, line) {
                Some(answer) => self.answered(answer),
                None => self.erred(line),
            },
            Dialect::Meta => self.meta_line(line),
            Dialect::MetaQuiet => self.quiet_line(line),
        }
    }

    fn meta_line(&mut self, line: &[u8]) -> Next {
        let Some(answer) = answer::meta(self.command, line) else {
            return self.erred(line);
        };
        match answer::opaque(line) {
            Some(opaque) if opaque == workload::opaque(self.number) => self.answered(answer),
            // Older servers leave it out of misses.
            None if answer == Answer::Done(Said::Miss) => self.answered(answer),
            Some(_) => Next::Refused(OTHER_OPAQUE),
            None => Next::Refused("an answer without the opaque of its command"),
        }
    }

    /// A line that is of this answer, or of a later one of the batch, before which this one was silent.
    fn quiet_line(&mut self, line: &[u8]) -> Next {
        let silence = Next::Unsaid(answer::silence(self.command));
        if line == b"MN" {
            return match self.following {
                0 => Next::Last(answer::silence(self.command)),
                _ => silence,
            };
        }
        let Some(opaque) = answer::opaque(line) else {
            // Errors have no opaque: one about storing is the next set's.
            let is_of_set = self.command != Command::Set && answer::is_about_storing(line);
            return match is_of_set && self.following > 0 {
                true => silence,
                false => self.erred(line),
            };
        };
        let ahead = opaque.wrapping_sub(self.number) & workload::opaque(u64::MAX);
        if ahead > 0 {
            return match ahead <= self.following {
                true => silence,
                false => Next::Refused(OTHER_OPAQUE),
            };
        }
        match answer::meta(self.command, line) {
            Some(answer) => self.answered(answer),
            None => Next::Refused(line::unknown(line)),
        }
    }

    /// A line that is no answer to the command: an error, or not of the protocol.
    fn erred(&mut self, line: &[u8]) -> Next {
        let Some(said) = answer::error(line) else {
            return Next::Refused(line::unknown(line));
        };
        self.reading.counts.borrow_mut().note_error(line);
        self.said(said)
    }

    #[inline]
    fn answered(&mut self, answer: Answer<'_>) -> Next {
        match answer {
            Answer::Value { key, bytes } => self.value(key, bytes),
            Answer::Done(Said::Miss) => {
                let said = self.said_of_keys();
                self.said(said)
            }
            Answer::Done(said) => self.said(said),
        }
    }

    /// Everything is said, unless the end of a batch is still to come.
    fn said(&mut self, said: Said) -> Next {
        let is_batch_over = self.following == 0;
        match self.reading.workload.dialect() {
            Dialect::MetaQuiet if is_batch_over => {
                self.state = State::ExpectBatchEnd(said);
                Next::Part
            }
            Dialect::Text | Dialect::Meta | Dialect::MetaQuiet => Next::Last(said),
        }
    }

    /// A value begins, in the text protocol that of the key that was written.
    fn value(&mut self, written: Option<&[u8]>, bytes: u64) -> Next {
        let workload = &self.reading.workload;
        if self.values == workload.keys_of(self.command) {
            return Next::Refused("more values than keys that were asked for");
        }
        let (key, is_right) = match (written, workload.verify()) {
            // Nobody looks at it, and the opaque says whose it is.
            (None, Verify::No) => (None, true),
            (Some(written), Verify::No) => {
                let key = self.find_key(written);
                (key, key.is_some())
            }
            (written, Verify::Yes) => {
                let key = match written {
                    Some(written) => self.find_key(written),
                    None => Some(workload.key(self.command, self.number, 0)),
                };
                let is_size = |key| workload.value_bytes(key) as u64 == bytes;
                (key, key.is_some_and(is_size))
            }
        };
        self.values += 1;
        self.value_bytes += bytes;
        self.state = State::ExpectValue(Value {
            key,
            at: 0,
            left: bytes,
            is_right,
        });
        Next::Part
    }

    /// Which of the keys that were asked for is written so. Servers answer in the order of the keys, so it is nearly always
    /// the next, or one behind those that are misses.
    fn find_key(&mut self, written: &[u8]) -> Option<Key> {
        let workload = &self.reading.workload;
        let keys = workload.keys_of(self.command);
        let mut own = self.reading.key.borrow_mut();
        for ahead in 0..keys {
            let index = (self.next_key + ahead) % keys;
            let key = workload.key(self.command, self.number, index);
            own.clear();
            workload.write_key(key, &mut own);
            if *own == written {
                self.next_key = (index + 1) % keys;
                return Some(key);
            }
        }
        None
    }

    /// A value is there with its end: what that says, where it is the whole answer.
    fn value_ended(&mut self) -> Option<Said> {
        self.state = State::ExpectLine;
        if self.reading.workload.dialect() == Dialect::Text {
            return None;
        }
        let said = self.said_of_keys();
        match self.said(said) {
            Next::Last(said) => Some(said),
            Next::Part | Next::Unsaid(_) | Next::Refused(_) => None,
        }
    }

    /// What a get comes to, by the values that came.
    fn said_of_keys(&self) -> Said {
        match self.values {
            _ if self.wrong > 0 => Said::WrongValue,
            0 => Said::Miss,
            all if all == self.reading.workload.keys_of(self.command) => Said::Hit,
            _ => Said::Partial,
        }
    }

    /// The answer is complete.
    fn done(&self, said: Said) -> Step {
        self.count(said);
        Step::Done(Response {
            outcome: Outcome {
                number: said as u16,
                class: said.class(),
            },
            keep_alive: true,
            met: match said {
                Said::WrongValue => Met::OtherBody,
                _ if said.is_error() => Met::OtherOutcome,
                _ => Met::Yes,
            },
        })
    }

    fn count(&self, said: Said) {
        let counts = &mut *self.reading.counts.borrow_mut();
        match self.command {
            Command::Get => {
                let keys = self.reading.workload.keys_of(self.command);
                counts.gets += 1;
                counts.keys_asked += keys;
                counts.hits += self.values;
                counts.wrong_values += self.wrong;
                counts.value_bytes_read += self.value_bytes;
                if !said.is_error() {
                    counts.misses += keys - self.values;
                }
            }
            Command::Set => {
                counts.sets += 1;
                if said == Said::Stored {
                    let workload = &self.reading.workload;
                    let key = workload.key(self.command, self.number, 0);
                    counts.stored += 1;
                    counts.value_bytes_written += workload.value_bytes(key) as u64;
                }
            }
            Command::Delete => {
                counts.deletes += 1;
                counts.deleted += u64::from(said == Said::Deleted);
            }
            Command::Increment => {
                counts.increments += 1;
                counts.incremented += u64::from(said == Said::Incremented);
            }
        }
    }

    /// How many bytes of a value are still to come, where nobody looks into them.
    #[inline]
    pub(crate) fn unseen(&self) -> u64 {
        match &self.state {
            State::ExpectValue(value) if !value.is_looked_at(self.reading) => value.left,
            State::ExpectLine
            | State::ExpectValue(_)
            | State::ExpectValueEnd
            | State::ExpectBatchEnd(_) => 0,
        }
    }

    /// So many of them have come, and were dropped.
    pub(crate) fn pass_unseen(&mut self, count: u64) {
        let State::ExpectValue(value) = &mut self.state else {
            unreachable!("lines are looked at");
        };
        value.pass(count);
    }
}
