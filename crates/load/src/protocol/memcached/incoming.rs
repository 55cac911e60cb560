//! Parser of one response. It works on the receive buffer and copies nothing.

mod counting;

mod meta;

use super::line::{self, LineSearch};
use super::reading::Reading;
use super::response::{self, CommandOutcome, ResponseLine};
use super::value::Value;
use crate::requests::memcached::ratio::Command;
use crate::requests::memcached::workload::Key;
use crate::requests::memcached::{Dialect, Verify};
use crate::requests::response::{ExpectationResult, Outcome, Response, Stage, Step};

pub(crate) struct Incoming<'c> {
    reading: &'c Reading,
    command: Command,
    number: u64,
    /// Number of requests sent after it in the same batch.
    following: u64,
    state: State,
    /// For a get: index after the key whose value was received last; in the meta protocols, after the key that was
    /// answered last, with or without a value.
    next_key: u64,
    /// First error in place of the answer for one of several keys.
    first_error: Option<CommandOutcome>,
    /// Received values, including wrong ones.
    values: u64,
    wrong: u64,
    value_bytes: u64,
}

#[expect(
    clippy::enum_variant_names,
    reason = "a state is named after what it waits for"
)]
enum State {
    ExpectLine,
    ExpectValue(Value),
    ExpectValueEnd,
    /// The last request of a quiet batch has this outcome; the end of the batch is missing.
    ExpectBatchEnd(CommandOutcome),
}

enum Next {
    /// A part of the response.
    Part,
    /// The last part.
    Last(CommandOutcome),
    /// Not part of this response; the missing line means this outcome.
    Implied(CommandOutcome),
    Refused(&'static str),
}

impl<'c> Incoming<'c> {
    pub(super) fn new(reading: &'c Reading, number: u64, following: u64) -> Incoming<'c> {
        Incoming {
            reading,
            command: reading.workload.command(number),
            number,
            following,
            state: State::ExpectLine,
            next_key: 0,
            first_error: None,
            values: 0,
            wrong: 0,
            value_bytes: 0,
        }
    }

    #[inline]
    pub(crate) fn step(&mut self, input: &[u8]) -> (usize, Step) {
        let mut at = 0;
        loop {
            let rest = &input[at..];
            match &mut self.state {
                State::ExpectLine | State::ExpectBatchEnd(_) => {
                    let (line, bytes) = match line::find(rest) {
                        LineSearch::Line(line, bytes) => (line, bytes),
                        LineSearch::Partial => return (at, Step::Partial(self.stage())),
                        LineSearch::Refused(reason) => return (at, Step::Refused(reason)),
                    };
                    match self.line(line) {
                        Next::Part => at += bytes,
                        Next::Last(said) => return (at + bytes, self.done(said)),
                        Next::Implied(said) => return (at, self.done(said)),
                        Next::Refused(reason) => return (at, Step::Refused(reason)),
                    }
                }
                State::ExpectValue(value) => {
                    let here = value.left.min(rest.len() as u64) as usize;
                    if value.needs_verification(self.reading)
                        && let Some(key) = value.key
                    {
                        let from = value.at as usize;
                        value.is_right = self.reading.workload.matches(key, from, &rest[..here]);
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
            Dialect::Text => match response::text(self.command, line) {
                Some(answer) => self.answered(answer),
                None => self.first_error(line),
            },
            Dialect::Meta => self.meta_line(line),
            Dialect::MetaQuiet => self.quiet_line(line),
        }
    }

    /// Handles a line that does not answer the command: an error, or invalid.
    fn first_error(&mut self, line: &[u8]) -> Next {
        let Some(said) = response::error(line) else {
            return Next::Refused(line::unknown(line));
        };
        self.reading.counts.borrow_mut().note_error(line);
        match self.reading.workload.dialect() {
            Dialect::Text => self.finish(said),
            Dialect::Meta | Dialect::MetaQuiet => {
                self.first_error.get_or_insert(said);
                self.command_ended()
            }
        }
    }

    fn keys(&self) -> u64 {
        self.reading.workload.keys_of(self.command)
    }

    /// Returns the outcome if no further line arrives for this request.
    fn implied_outcome(&self) -> CommandOutcome {
        match self.command {
            Command::Get => self.outcome_of_keys(),
            Command::Set | Command::Delete | Command::Increment => self
                .first_error
                .unwrap_or(response::implied_outcome(self.command)),
        }
    }

    /// Handles the end of one of the request's meta commands: a get of several keys has one per key.
    fn command_ended(&mut self) -> Next {
        self.next_key += 1;
        if self.next_key < self.keys() {
            self.state = State::ExpectLine;
            return Next::Part;
        }
        let said = self.outcome_of_keys();
        self.finish(said)
    }

    #[inline]
    fn answered(&mut self, answer: ResponseLine<'_>) -> Next {
        match answer {
            ResponseLine::Value { key, bytes } => self.value(key, bytes),
            ResponseLine::Done(CommandOutcome::Miss)
                if self.reading.workload.dialect() != Dialect::Text =>
            {
                self.command_ended()
            }
            ResponseLine::Done(CommandOutcome::Miss) => {
                let said = self.outcome_of_keys();
                self.finish(said)
            }
            ResponseLine::Done(said) => self.finish(said),
        }
    }

    /// Ends the response, unless the end of the batch is missing.
    fn finish(&mut self, said: CommandOutcome) -> Next {
        let is_batch_over = self.following == 0;
        match self.reading.workload.dialect() {
            Dialect::MetaQuiet if is_batch_over => {
                self.state = State::ExpectBatchEnd(said);
                Next::Part
            }
            Dialect::Text | Dialect::Meta | Dialect::MetaQuiet => Next::Last(said),
        }
    }

    /// Starts a value; in the text protocol `written` is its key.
    fn value(&mut self, written: Option<&[u8]>, bytes: u64) -> Next {
        let workload = &self.reading.workload;
        if self.values == workload.keys_of(self.command) {
            return Next::Refused("more values than requested keys");
        }
        let (key, is_right) = match (written, workload.verify()) {
            // The value is not verified, and the opaque identifies the key.
            (None, Verify::No) => (None, true),
            (Some(written), Verify::No) => {
                let key = self.find_key(written);
                (key, key.is_some())
            }
            (written, Verify::Yes) => {
                let key = match written {
                    Some(written) => self.find_key(written),
                    None => Some(workload.key(self.command, self.number, self.next_key)),
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

    /// Finds the requested key that equals `written`. Servers respond in the order of the keys, so it is usually the
    /// next key, or the first one after misses.
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

    /// Handles the end of a value; returns the outcome if this completes the response.
    fn value_ended(&mut self) -> Option<CommandOutcome> {
        self.state = State::ExpectLine;
        if self.reading.workload.dialect() == Dialect::Text {
            return None;
        }
        match self.command_ended() {
            Next::Last(said) => Some(said),
            Next::Part | Next::Implied(_) | Next::Refused(_) => None,
        }
    }

    /// Returns the outcome of a get from the received values.
    fn outcome_of_keys(&self) -> CommandOutcome {
        if let Some(said) = self.first_error {
            return said;
        }
        match self.values {
            _ if self.wrong > 0 => CommandOutcome::WrongValue,
            0 => CommandOutcome::Miss,
            all if all == self.reading.workload.keys_of(self.command) => CommandOutcome::Hit,
            _ => CommandOutcome::Partial,
        }
    }

    fn done(&self, said: CommandOutcome) -> Step {
        self.count(said);
        Step::Done(Response {
            outcome: Outcome {
                number: said as u16,
                class: said.class(),
            },
            keep_alive: true,
            expectation: match said {
                CommandOutcome::WrongValue => ExpectationResult::OtherBody,
                _ if said.is_error() => ExpectationResult::OtherOutcome,
                _ => ExpectationResult::Yes,
            },
        })
    }

    /// Returns how many of the value's remaining bytes may be skipped without being read.
    #[inline]
    pub(crate) fn skippable_bytes(&self) -> u64 {
        match &self.state {
            State::ExpectValue(value) if !value.needs_verification(self.reading) => value.left,
            State::ExpectLine
            | State::ExpectValue(_)
            | State::ExpectValueEnd
            | State::ExpectBatchEnd(_) => 0,
        }
    }

    pub(crate) fn skip_bytes(&mut self, count: u64) {
        let State::ExpectValue(value) = &mut self.state else {
            unreachable!("the line was parsed");
        };
        value.pass(count);
    }
}
